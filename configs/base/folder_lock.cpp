#include "configs/base/folder_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "configs/base/clock.hpp"
#include "configs/base/descriptor.hpp"
#include "configs/base/error.hpp"
#include "configs/base/lax_json.hpp"
#include "configs/base/running.hpp"
#include "configs/base/standard_error.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

/// Processes that were killed end within it, unless a device or a file system holds them (as Slurm's
/// UnkillableStepTimeout has it); a file server forgets a client that it does not hear of (NFSv4's lease is 90 s).
constexpr double kChildrenEnd_s = 60, kServerForgets_s = 120;

struct Holder {
  std::string host, launch, since;
  pid_t process = -1;
};

/// What the file says; of one that is just being written, nothing.
Holder holder_in(int fd) {
  std::array<char, 2048> text{};
  const ssize_t bytes = pread(fd, text.data(), text.size() - 1, 0);
  const auto said =
      nlohmann::json::parse(std::string(text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0), nullptr, false);
  Holder out;
  if (!said.is_object()) return out;
  out.host = text_at(said, "host"), out.launch = text_at(said, "launch"), out.since = text_at(said, "since");
  if (said.contains("process") && said.at("process").is_number_integer()) out.process = said.at("process").get<pid_t>();
  return out;
}

std::string words_of(const Holder& holder) {
  if (holder.process < 0) return "a process that has not said its name yet";
  return fmt::format("process {} on {}, since {}{}", holder.process, holder.host, holder.since,
                     holder.launch.empty() ? "" : ", launch " + holder.launch);
}

/// Whether that file still has this name: who held it before may have removed it.
bool is_at(int fd, const fs::path& path) {
  struct stat open {};
  struct stat named {};
  return fstat(fd, &open) == 0 && stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder, Use use) : path_(folder / use.file), use_(std::move(use)) {
  while (!take()) wait_or_refuse();
  if (fd_ >= 0) say_who();
}

/// False: another process holds it, or has just left it.
bool FolderLock::take() {
  fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) return true;
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0) {
    if (is_at(fd_, path_)) return true;
    close(std::exchange(fd_, -1));
    return false;
  }
  if (errno == EWOULDBLOCK) return false;
  print_error("{}: the file system has no locks ({}); that no other {} is not checked\n", path_.string(),
              strerror(errno), use_.what);
  close(std::exchange(fd_, -1));
  return true;
}

void FolderLock::wait_or_refuse() {
  if (fd_ < 0) return;  // it was removed under our hands
  const Descriptor held(std::exchange(fd_, -1));
  const Holder holder = holder_in(held.get());
  const bool here = holder.host == host_name();
  const bool gone = here && holder.process > 0 && !is_running(holder.process);
  const bool same_launch = !use_.launch.empty() && holder.launch == use_.launch;
  const double at_most_s = gone ? kChildrenEnd_s : same_launch ? kServerForgets_s : holder.process < 0 ? 1 : 0;
  const bool free = at_most_s > 0 && wait_until(at_most_s, 0.01, [&] {
                      if (holder_in(held.get()).process != holder.process) return true;  // to be judged by itself
                      if (flock(held.get(), LOCK_EX | LOCK_NB) != 0) return false;
                      flock(held.get(), LOCK_UN);
                      return true;
                    });
  if (free) return;
  throw_usage("{}: found another {}: {}{}; needs that to end first", path_.parent_path().string(), use_.what,
              words_of(holder), gone ? ", which has ended, but not all that it started" : "");
}

void FolderLock::say_who() const {
  const std::string text =
      nlohmann::json{{"host", host_name()}, {"process", getpid()}, {"since", utc_now()}, {"launch", use_.launch}}
          .dump() +
      "\n";
  // That the disk is full is no reason not to hold it: others then hear of no name.
  if (ftruncate(fd_, 0) == 0 && pwrite(fd_, text.data(), text.size(), 0) < 0) return;
}

FolderLock::~FolderLock() {
  if (fd_ < 0) return;
  close(fd_);
  // Held once more, so that nobody else holds what is removed.
  const Descriptor again(open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (!again.is_open()) return;
  if (flock(again.get(), LOCK_EX | LOCK_NB) == 0 && is_at(again.get(), path_)) unlink(path_.c_str());
}

}  // namespace wt
