#include "trainer/process/trainer_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"

extern char** environ;

namespace wt {
namespace {

/// Told whose child it is, it does not outlive this process (end_with_launcher).
pid_t start(const std::vector<std::string>& arguments, const posix_spawn_file_actions_t* actions) {
  signal(SIGCHLD, SIG_DFL);  // ignored, as some launchers leave it, nobody would see how it ends
  setenv("WINDTUNNEL_PARENT", std::to_string(getpid()).c_str(), 1);
  std::string program = trainer_program().string();
  std::vector<std::string> words = arguments;
  std::vector<char*> argv{program.data()};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  if (const int failed = posix_spawn(&pid, program.c_str(), actions, nullptr, argv.data(), environ); failed != 0)
    throw_error(Code::runtime, "{} could not be started: {}", program, std::strerror(failed));
  return pid;
}

pid_t start_logged(const std::vector<std::string>& arguments, const std::filesystem::path& log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  const pid_t pid = start(arguments, &actions);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

/// Exit status, 128 + signal; none: it has not ended (WNOHANG).
std::optional<int> end_of(pid_t pid, int options) {
  int status = 0;
  pid_t ended;
  while ((ended = waitpid(pid, &status, options)) < 0)
    if (errno != EINTR) throw_error(Code::runtime, "how the trainer ended could not be seen: {}", std::strerror(errno));
  if (ended == 0) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::filesystem::path trainer_program() {
  const char* chosen = std::getenv("WINDTUNNEL_TRAIN");
  const std::filesystem::path program =
      chosen ? std::filesystem::path(chosen)
             : std::filesystem::read_symlink("/proc/self/exe").parent_path() / "windtunnel-train";
  if (!std::filesystem::exists(program))
    throw_error(
        Code::usage,
        "{} is not built; it needs LibTorch and libgloo-dev; run ./windtunnel setup, which installs both and builds it",
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
  const pid_t pid = start_logged(arguments, log);
  for (const double begin = steady_s(); steady_s() - begin < limit_s; usleep(5000))
    if (const auto status = end_of(pid, WNOHANG)) return status;
  kill(pid, SIGKILL);
  end_of(pid, 0);
  return std::nullopt;
}

void run_trainer(const std::vector<std::string>& arguments, const std::filesystem::path& log) {
  const int status = *end_of(start_logged(arguments, log), 0);
  if (status == 0) return;
  std::string command;
  for (const std::string& word : arguments) command += " " + word;
  throw_error(status == static_cast<int>(Code::usage) ? Code::usage : Code::runtime,
              "windtunnel-train{} failed; its output ({}) ends with:\n{}", command, log.string(), tail_of(log));
}

int run_trainer_here(const std::vector<std::string>& arguments) { return *end_of(start(arguments, nullptr), 0); }

}  // namespace wt
