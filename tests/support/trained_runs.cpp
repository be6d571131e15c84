#include "tests/support/trained_runs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string_view>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/hash.hpp"
#include "planner/experiments/trainer_process.hpp"
#include "tests/support/temp_directory.hpp"

namespace wt::test {

namespace fs = std::filesystem;

namespace {

/// One process at a time from here on; others wait for it.
class Turn {
 public:
  explicit Turn(const fs::path& file) : file_(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (file_ < 0 || flock(file_, LOCK_EX) != 0) throw_error(Code::runtime, "{}: could not be locked", file.string());
  }
  ~Turn() { close(file_); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  int file_;
};

/// What decides on the bits beside the program and the run: the processor's instructions, and variables.
std::string surroundings() {
  std::string out;
  std::ifstream processors("/proc/cpuinfo");
  for (std::string line; std::getline(processors, line) && !line.empty();)  // the first one
    if (line.starts_with("flags") || line.starts_with("model name")) out += line + "\n";
  for (char** variable = environ; *variable != nullptr; ++variable)
    for (const char* begin : {"WINDTUNNEL_", "OMP_", "MKL_", "TORCH_", "ATEN_"})
      if (std::string_view(*variable).starts_with(begin)) out += fmt::format("{}\n", *variable);
  return out;
}

void copy_folder(const fs::path& from, const fs::path& to) {
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

std::uint64_t hash_of_files(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder).string()] = read_bytes(entry.path());
  std::string all;
  for (const auto& [name, bytes] : files) all += fmt::format("{} {}\n{}", name, bytes.size(), bytes);
  return hash_of(all);
}

}  // namespace

TrainedRuns::TrainedRuns() {
  const char* const asked = std::getenv("WT_TRAINED_RUNS");
  if (asked == nullptr) return;
  folder_ = fs::path(asked) / fmt::format("{:016x}", hash_of(read_bytes(trainer_program())));
  if (fs::exists(folder_)) return;
  fs::create_directories(asked);
  const Turn turn(fs::path(asked) / "lock");
  for (const auto& entry : fs::directory_iterator(asked))
    if (entry.is_directory() && entry.path() != folder_) fs::remove_all(entry.path());
  fs::create_directories(folder_);
}

fs::path TrainedRuns::keep_data(const fs::path& folder) const {
  if (folder_.empty()) return folder;
  const std::uint64_t hash = hash_of_files(folder);
  const fs::path kept = folder_ / fmt::format("data-{:016x}", hash);
  const Turn turn(folder_ / "lock");
  if (fs::exists(kept) && hash_of_files(kept) == hash) return kept;
  fs::remove_all(kept);
  copy_folder(folder, kept);
  return kept;
}

void TrainedRuns::copy_or_train(const std::string& run, const fs::path& own, const fs::path& to,
                                const std::function<void(const fs::path&)>& train) const {
  if (folder_.empty() || run.find(own.string()) != std::string::npos) return train(to);
  const fs::path kept = folder_ / fmt::format("run-{:016x}", hash_of(run + surroundings()));
  const Turn turn(kept.string() + ".lock");  // who comes second waits for the training of the first
  if (fs::exists(kept)) return copy_folder(kept, to);
  train(to);
  const fs::path whole = kept.string() + ".new";
  fs::remove_all(whole);  // of a process that was killed
  copy_folder(to, whole);
  fs::rename(whole, kept);
}

}  // namespace wt::test
