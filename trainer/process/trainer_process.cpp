#include "trainer/process/trainer_process.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "configs/base/error.hpp"
#include "configs/base/installed.hpp"
#include "configs/base/process.hpp"

namespace wt {
namespace {

/// Told whose child it is, it does not outlive this process (end_with_launcher).
pid_t start(const std::vector<std::string>& arguments, const std::filesystem::path& log = {}) {
  ProcessStart how{.environment = environment_with({{kParentVariable, std::to_string(getpid())}}), .log = log};
  how.words = arguments;
  how.words.insert(how.words.begin(), trainer_program().string());
  return start_process(how);
}

}  // namespace

std::filesystem::path trainer_program() {
  const char* chosen = std::getenv("WINDTUNNEL_TRAIN");
  std::filesystem::path program = chosen ? std::filesystem::path(chosen) : program_folder() / "windtunnel-train";
  if (!std::filesystem::exists(program))
    throw_usage(
        "{} is not built; it needs LibTorch and libgloo-dev; run ./windtunnel setup in a source tree, which installs "
        "both and builds it, and name it by WINDTUNNEL_TRAIN where it lies elsewhere",
        program.string());
  return program;
}

std::string tail_of(const std::filesystem::path& log) {
  std::ifstream in(log);
  std::stringstream bytes;
  bytes << in.rdbuf();
  std::string text = bytes.str();
  while (text.ends_with('\n')) text.pop_back();
  constexpr std::size_t kShown = 2000;
  if (text.size() <= kShown) return text;
  std::size_t begin = text.size() - kShown;
  while (begin < text.size() && (text[begin] & 0xC0) == 0x80) ++begin;  // not within a character of UTF-8
  return "..." + text.substr(begin);
}

std::optional<int> try_trainer(const std::vector<std::string>& arguments, const std::filesystem::path& log,
                               double limit_s) {
  const pid_t pid = start(arguments, log);
  if (const auto end = wait_for_end(pid, limit_s)) return exit_status(*end);
  kill_process(pid);
  return std::nullopt;
}

void run_trainer(const std::vector<std::string>& arguments, const std::filesystem::path& log) {
  const int status = exit_status(*wait_for_end(start(arguments, log)));
  if (status == 0) return;
  std::string command;
  for (const std::string& word : arguments) command += " " + word;
  throw_error(status == static_cast<int>(Code::usage) ? Code::usage : Code::runtime,
              "windtunnel-train{} failed; its output ({}) ends with:\n{}", command, log.string(), tail_of(log));
}

int run_trainer_here(const std::vector<std::string>& arguments) { return exit_status(*wait_for_end(start(arguments))); }

}  // namespace wt
