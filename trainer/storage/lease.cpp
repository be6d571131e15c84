#include "trainer/storage/lease.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "configs/base/atomic_file.hpp"
#include "configs/base/clock.hpp"
#include "configs/base/lax_json.hpp"
#include "configs/base/running.hpp"
#include "configs/base/standard_error.hpp"
#include "configs/base/text.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kOwner = "owner-";
constexpr std::uint64_t kRecord_bytes = 64 << 10;

std::string owner_name(std::int64_t number) { return fmt::format("{}{:08}.json", kOwner, number); }

/// 0: no name of a record.
std::int64_t number_of(const std::string& name) {
  std::int64_t number = 0;
  if (name.starts_with(kOwner)) std::from_chars(name.data() + kOwner.size(), name.data() + name.size(), number);
  return number > 0 && name == owner_name(number) ? number : 0;
}

/// Where process ids mean the same: this boot of this machine, and of its containers this one.
std::string numbering_of_processes() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(in, boot);
  std::error_code none;
  return boot + " " + fs::read_symlink("/proc/self/ns/pid", none).string();
}

pid_t process_of(const json& record) {
  return record.is_object() && record.contains("process") && record.at("process").is_number_integer()
             ? record.at("process").get<pid_t>()
             : -1;
}

std::string owner_in_words(const json& record) {
  return fmt::format("process {} on {}, since {}, run {}", process_of(record), text_at(record, "host"),
                     text_at(record, "since"), text_at(record, "run"));
}

}  // namespace

StoreLease::StoreLease(std::unique_ptr<Store> place, std::string run, LeaseTerms terms,
                       const std::function<bool()>& stopped)
    : place_(std::move(place)), run_(std::move(run)), terms_(terms), since_(utc_now()) {
  for (;;) {
    const Record before = newest();
    if (before.number > 0) wait_for_end_of(before, stopped);
    if (take(before.number + 1)) break;
  }
  thread_ = std::thread([this] { renew(); });
}

StoreLease::~StoreLease() {
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  ending_.notify_all();
  // After a failure the next start should not have to wait for a store that does not answer: it is the same run.
  const bool failed = std::uncaught_exceptions() > 0;
  if (failed) place_->give_up();
  thread_.join();
  if (failed || !lost().empty()) return;
  try {
    place_->remove(owner_name(number_));
  } catch (const std::exception& e) {
    print_error("{}: the record of its owner was not removed: {}; another run waits {:g} s\n", place_->address(),
                e.what(), terms_.lasts_s);
  }
}

StoreLease::Record StoreLease::newest() {
  Record out;
  for (const StoreEntry& file : place_->list(std::string(kOwner)))
    out.number = std::max(out.number, number_of(file.name));
  if (out.number == 0) return out;
  try {
    out.text = place_->read(owner_name(out.number), kRecord_bytes);
  } catch (const StoreFailed& e) {
    if (e.kind() != StoreFailed::Kind::not_found) throw;
    return {};  // given back meanwhile
  }
  return out;
}

bool StoreLease::take(std::int64_t number) {
  number_ = number;
  try {
    place_->put(owner_name(number), own_record(), /*only_if_absent=*/true);
  } catch (const StoreFailed& e) {
    if (e.kind() != StoreFailed::Kind::exists) throw;
    return false;
  }
  for (const StoreEntry& file : place_->list(std::string(kOwner)))
    if (const std::int64_t older = number_of(file.name); older > 0 && older < number) place_->remove(file.name);
  return true;
}

std::string StoreLease::own_record() {
  return json{{"run", run_},         {"host", host_name()},
              {"process", getpid()}, {"processes", numbering_of_processes()},
              {"since", since_},     {"renewals", renewals_++}}
      .dump();
}

void StoreLease::wait_for_end_of(const Record& record, const std::function<bool()>& stopped) {
  const json said = json::parse(record.text, nullptr, false);
  const auto refuse = [&] {
    throw_usage("{}: found another run that saves there: {}; needs that to end first, or another save_folder",
                place_->address(), owner_in_words(said));
  };
  if (text_at(said, "run") == run_) return;
  if (text_at(said, "processes") == numbering_of_processes() && process_of(said) > 0) {
    if (is_running(process_of(said))) refuse();
    return;
  }
  print_error("{}: found the record of another run there: {}; waiting up to {:g} s for a sign that it lives\n",
              place_->address(), owner_in_words(said), terms_.lasts_s);
  const double begin = steady_s();
  while (steady_s() - begin < terms_.lasts_s) {
    const bool asked_to_stop = wait_until(std::min(terms_.renewed_s, terms_.lasts_s) / 5, 0.05, stopped);
    if (asked_to_stop) throw_runtime("{}: asked to end while it waits for the lease", place_->address());
    const Record now = newest();
    if (now.number == record.number && now.text != record.text) refuse();
    if (now.number != record.number) return;  // given back, or taken: to be looked at anew
  }
}

void StoreLease::renew() {
  std::unique_lock guard(mutex_);
  while (!ending_.wait_for(guard, std::chrono::duration<double>(terms_.renewed_s), [&] { return ends_; })) {
    guard.unlock();
    std::string lost;
    try {
      const Record now = newest();
      if (now.number == number_)
        place_->put(owner_name(number_), own_record());
      else
        lost = now.number == 0 ? fmt::format("{}: the record of its owner, this run, is gone", place_->address())
                               : fmt::format("{}: was taken by another run: {}", place_->address(),
                                             owner_in_words(json::parse(now.text, nullptr, false)));
    } catch (const std::exception&) {  // the store does not answer: the next time
    }
    guard.lock();
    if (lost.empty()) continue;
    lost_ = lost;
    return;
  }
}

std::string StoreLease::lost() const {
  const std::lock_guard guard(mutex_);
  return lost_;
}

std::string run_of_folder(const fs::path& output) {
  const fs::path file = output / ".run";
  if (!fs::exists(file)) {
    std::random_device random;
    write_file_atomically(file, fmt::format("{:08x}{:08x}\n", random(), random()));
  }
  std::string name = read_file(file, "the name of a run");
  name.erase(std::min(name.find('\n'), name.size()));
  return fmt::format("{} in {}", name, fs::weakly_canonical(output).string());
}

}  // namespace wt
