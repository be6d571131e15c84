#include "trainer/checkpoint/store_checkpoints.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/standard_error.hpp"
#include "trainer/checkpoint/agreement.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/checkpoint/earlier_run.hpp"
#include "trainer/pch.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Whether the error concerns only this checkpoint, because a file is missing or damaged, so that another one may be
/// whole. Every other error, such as wrong settings of a rank, would occur again with the next one.
bool is_of_checkpoint(const Error& e) {
  const auto* failed = dynamic_cast<const StoreFailed*>(&e);
  return failed && (failed->kind() == StoreFailed::Kind::damaged || failed->kind() == StoreFailed::Kind::not_found);
}

constexpr int kSeenLate_s = 90;  // NFS looks at a folder again after 60 s (acdirmax)

using FolderId = std::pair<dev_t, ino_t>;

/// Identifies a folder, as opposed to an earlier one of the same name; none: it cannot be seen.
std::optional<FolderId> folder_id(const fs::path& folder) {
  struct stat found {};
  if (stat(folder.c_str(), &found) != 0) return std::nullopt;
  return FolderId{found.st_dev, found.st_ino};
}

/// Waits until this node sees the new folder, because it may see the previous one of this name for a while. Returns
/// after kSeenLate_s in any case, as on file systems that renumber their folders.
void wait_until_seen(const fs::path& folder, const std::optional<FolderId>& id) {
  for (int waited_s = 0; id && folder_id(folder) != id && waited_s < kSeenLate_s; ++waited_s)
    std::this_thread::sleep_for(std::chrono::seconds(1));
}

}  // namespace

StoreCheckpoints::StoreCheckpoints(const RunSpec& run, const fs::path& output, Communicators& communicators)
    : run_(run),
      output_(output),
      folder_(output / kCheckpointsFolder),
      communicators_(communicators),
      progress_(communicators.store(), communicators.rank()),
      place_(open_store(run.save_folder)),
      mirror_(*place_) {
  place_->on_progress([this] { progress_.moves(); });
  const std::string steps =
      agree(communicators, 1, "steps at the store", "", [&](const auto&) { return json(mirror_.steps()).dump(); });
  steps_ = json::parse(steps).get<std::vector<std::int64_t>>();
}

bool StoreCheckpoints::has(std::int64_t step) const { return std::ranges::find(steps_, step) != steps_.end(); }

std::string StoreCheckpoints::fetch(std::int64_t step) {
  const std::string name = step_name(step);
  if (std::string wrong = begin(step); !wrong.empty()) return wrong;
  const fs::path begun = CheckpointMirror::fetched_to(step, folder_);
  const std::int64_t readers = state_ranks(run_.layout);
  const std::string own = communicators_.rank() < readers ? bring_share(begun) : "";
  const std::optional<FolderId> id = communicators_.rank() < readers ? folder_id(begun) : std::nullopt;
  const std::string verdict =
      agree(communicators_, readers, "fetched " + name, own, [&](const std::vector<std::string>& results) {
        std::string wrong;
        for (const std::string& text : results) {
          const json result = json::parse(text);
          if (wrong.empty()) wrong = result.at("wrong").get<std::string>();
          if (result.at("of_checkpoint").get<bool>()) continue;
          CheckpointMirror::abandon_fetch(begun);
          throw_runtime("{}", result.at("wrong").get<std::string>());
        }
        if (wrong.empty()) {
          publish(begun);
          print_error("fetched {} from {}\n", name, place_->address());
        } else {
          CheckpointMirror::abandon_fetch(begun);
          print_error("checkpoint of step {} at {} is passed over: {}\n", step, place_->address(), wrong);
        }
        return wrong;
      });
  if (verdict.empty()) wait_until_seen(folder_ / name, id);
  return verdict;
}

/// The reason for which the checkpoint cannot be fetched, the same on every rank; "" = it can.
std::string StoreCheckpoints::begin(std::int64_t step) {
  return agree(communicators_, 1, "fetch of " + step_name(step), "", [&](const auto&) {
    try {
      mirror_.begin_fetch(step, folder_);
      return std::string();
    } catch (const Error& e) {
      const bool no_manifest =
          !dynamic_cast<const StoreFailed*>(&e) && e.code() == Code::usage;  // not one of our checkpoints
      if (!no_manifest && !is_of_checkpoint(e)) throw;
      print_error("checkpoint of step {} at {} is passed over: {}\n", step, place_->address(), e.what());
      return std::string(e.what());
    }
  });
}

std::string StoreCheckpoints::bring_share(const fs::path& folder) {
  json result = {{"wrong", ""}, {"of_checkpoint", true}};
  try {
    mirror_.fetch_files(folder, static_cast<std::uint64_t>(communicators_.rank()),
                        static_cast<std::uint64_t>(state_ranks(run_.layout)));
  } catch (const Error& e) {
    result = {{"wrong", e.what()}, {"of_checkpoint", is_of_checkpoint(e)}};
  } catch (const std::exception& e) {
    result = {{"wrong", e.what()}, {"of_checkpoint", false}};
  }
  return result.dump();
}

void StoreCheckpoints::publish(const fs::path& begun) {
  const fs::path target = folder_ / begun.filename();
  if (fs::exists(target)) fs::rename(target, free_name(target.string() + ".unreadable"));
  CheckpointMirror::end_fetch(begun);
  for (const char* name : kRunRecords) {
    if (fs::exists(output_ / name)) continue;
    if (const auto bytes = place_->size(record_name(name)))
      place_->fetch(record_name(name), output_ / name, fetch_limit_s(*bytes));
  }
}

}  // namespace wt
