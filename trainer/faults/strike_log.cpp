#include "trainer/faults/strike_log.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "configs/base/clock.hpp"

namespace wt {
namespace {

using nlohmann::json;

int open_log(const std::filesystem::path& file) {
  return open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

}  // namespace

bool StrikeLog::struck(std::size_t event, int generation, std::int64_t rank) const {
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);) {
    const json entry = json::parse(line, nullptr, false);
    if (entry.is_object() && entry.value("event", std::size_t{0}) == event &&
        entry.value("generation", -1) == generation && entry.value("rank", std::int64_t{-1}) == rank)
      return true;
  }
  return false;
}

void StrikeLog::add(const Strike& s, const json& proof) const {
  const std::string line = json{{"event", s.event}, {"generation", s.generation},
                                {"rank", s.rank},   {"node", s.node},
                                {"step", s.step},   {"at", s.at},
                                {"kind", s.kind},   {"unix_s", clock_s(CLOCK_REALTIME)},
                                {"proof", proof}}
                               .dump() +
                           "\n";
  const int fd = open_log(file_);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
  close(fd);
}

StrikeLog::Lock::Lock(const StrikeLog& log) : fd_(open_log(log.file_)) {
  if (fd_ >= 0) flock(fd_, LOCK_EX);
}

StrikeLog::Lock::~Lock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace wt
