#include "configs/base/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "configs/base/clock.hpp"
#include "configs/base/descriptor.hpp"
#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"

extern char** environ;

namespace wt {
namespace {

constexpr double kGrace_s = 5;
constexpr useconds_t kLook_us = 5000;

/// As execve(2) takes them; `words` must outlive it.
std::vector<char*> pointers(std::vector<std::string>& words) {
  auto out = mapped(words, [](std::string& word) { return word.data(); });
  out.push_back(nullptr);
  return out;
}

/// posix_spawn's, which unlike fork() leaves pages alone that a network card or GPU reads.
class SpawnSettings {
 public:
  explicit SpawnSettings(const ProcessStart& start) {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    const int own[3] = {start.input, start.output, start.error};
    for (int standard = 0; standard < 3; ++standard)
      if (own[standard] == kNoFile)
        posix_spawn_file_actions_addopen(&files, standard, "/dev/null", standard == 0 ? O_RDONLY : O_WRONLY, 0);
      else if (own[standard] != standard)
        posix_spawn_file_actions_adddup2(&files, own[standard], standard);
    if (!start.log.empty()) {
      posix_spawn_file_actions_addopen(&files, 1, start.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      posix_spawn_file_actions_adddup2(&files, 1, 2);
    }
    if (start.kept != kNoFile)  // onto itself: it is not closed at exec
      posix_spawn_file_actions_adddup2(&files, start.kept, start.kept);
    if (!start.folder.empty()) posix_spawn_file_actions_addchdir_np(&files, start.folder.c_str());
    if (start.blocked) posix_spawnattr_setsigmask(&attributes, &*start.blocked);
    posix_spawnattr_setflags(&attributes, static_cast<short>((start.own_group ? POSIX_SPAWN_SETPGROUP : 0) |
                                                             (start.blocked ? POSIX_SPAWN_SETSIGMASK : 0)));
  }
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
};

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw_runtime("no pipe could be made: {}; raise the limit on open files", std::strerror(errno));
    reader = Descriptor(ends[0]), writer = Descriptor(ends[1]);
  }

  Descriptor reader, writer;
};

/// Until there is something to read; whether there was before `until_s` of the steady clock.
bool readable(int file, double until_s) {
  for (;;) {
    const double left_s = until_s - steady_s();
    if (left_s <= 0) return false;
    pollfd ready{file, POLLIN, 0};
    const double patience_ms = std::min(std::ceil(1e3 * left_s), 1e6);
    if (poll(&ready, 1, static_cast<int>(patience_ms)) > 0) return true;
  }
}

}  // namespace

std::vector<std::string> environment_with(const std::map<std::string, std::string>& own) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!own.count(text.substr(0, text.find('=')))) out.push_back(text);
  }
  for (const auto& [name, value] : own) out.push_back(name + "=" + value);
  return out;
}

bool in_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  std::error_code none;
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::filesystem::path file = std::filesystem::path(folder) / program;
        !folder.empty() && access(file.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(file, none))
      return true;
  return false;
}

std::vector<std::string> ended_with_us(std::vector<std::string> words) {
  if (in_path("setpriv")) words.insert(words.begin(), {"setpriv", "--pdeathsig", "TERM"});
  return words;
}

pid_t start_process(const ProcessStart& start) {
  struct sigaction ends {};
  if (sigaction(SIGCHLD, nullptr, &ends) == 0 && ends.sa_handler == SIG_IGN) signal(SIGCHLD, SIG_DFL);
  std::vector<std::string> words = start.words, variables = start.environment.value_or(std::vector<std::string>());
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);
  const SpawnSettings settings(start);
  pid_t pid = -1;
  if (const int failed = posix_spawnp(&pid, argv[0], &settings.files, &settings.attributes, argv.data(),
                                      start.environment ? envp.data() : environ);
      failed != 0)
    throw_runtime("{} could not be started: {}", start.words[0], std::strerror(failed));
  return pid;
}

std::optional<int> wait_for_end(pid_t pid, double limit_s) {
  const double begin = steady_s();
  for (int end = 0;; usleep(kLook_us)) {
    const pid_t ended = waitpid(pid, &end, std::isinf(limit_s) ? 0 : WNOHANG);
    if (ended == pid) return end;
    if (ended < 0 && errno != EINTR)
      throw_runtime("process {}: how it ended could not be seen: {}", pid, std::strerror(errno));
    if (steady_s() - begin >= limit_s) return std::nullopt;
  }
}

int exit_status(int end) { return WIFEXITED(end) ? WEXITSTATUS(end) : 128 + WTERMSIG(end); }

std::string cause_of(int end) {
  if (WIFSIGNALED(end)) return fmt::format("signal {} ({})", WTERMSIG(end), strsignal(WTERMSIG(end)));
  return fmt::format("exit status {}", WEXITSTATUS(end));
}

void kill_process(pid_t pid) {
  kill(pid, SIGKILL);
  wait_for_end(pid);
}

void end_group(pid_t pid) {
  kill(-pid, SIGTERM);
  const bool ended = wait_for_end(pid, kGrace_s).has_value();
  kill(-pid, SIGKILL);  // also what it had started
  if (!ended) wait_for_end(pid);
}

ProcessOutput run_for_output(ProcessStart start, double limit_s, std::size_t most_bytes) {
  const double until_s = steady_s() + limit_s;
  Pipe pipe;
  start.output = pipe.writer.get();
  const pid_t pid = start_process(start);
  pipe.writer.close();
  ProcessOutput out;
  std::array<char, 4096> block{};
  while (out.text.size() < most_bytes && readable(pipe.reader.get(), until_s)) {
    const ssize_t count = read(pipe.reader.get(), block.data(), block.size());
    if (count == 0 || (count < 0 && errno != EINTR)) break;
    if (count > 0) out.text.append(block.data(), static_cast<std::size_t>(count));
  }
  pipe.reader.close();  // it cannot write any more
  const auto end = wait_for_end(pid, std::max(0.0, until_s - steady_s()));
  if (end)
    out.status = exit_status(*end);
  else
    start.own_group ? end_group(pid) : kill_process(pid);
  return out;
}

std::string output_of(ProcessStart start, double limit_s) try {
  start.input = start.error = kNoFile;
  ProcessOutput out = run_for_output(std::move(start), limit_s);
  if (out.status != 0) return "";
  while (out.text.ends_with('\n')) out.text.pop_back();
  return out.text;
} catch (const Error&) {
  return "";
}

}  // namespace wt
