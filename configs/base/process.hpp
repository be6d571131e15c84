// Child processes: started with what they need, waited for, ended. Hooks, ranks, tokenizers, git and the programs that
// a user's configuration names all run by it.
#pragma once
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigset_t is POSIX
#include <sys/types.h>

#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace wt {

inline constexpr int kNoFile = -1;  ///< /dev/null
inline constexpr double kNoLimit_s = std::numeric_limits<double>::infinity();
/// Our own programs end with the process whose id it holds (end_with_launcher).
inline constexpr const char* kParentVariable = "WINDTUNNEL_PARENT";

/// What a child process is started with.
struct ProcessStart {
  std::vector<std::string> words = {};  ///< program, looked up in PATH unless it holds a slash, and arguments
  std::optional<std::vector<std::string>> environment = {};  ///< "NAME=value" each; none: this process's own
  std::filesystem::path folder = {};                         ///< where it works; "": where this process does
  int input = 0, output = 1, error = 2;                      ///< open files that become its standard ones, or kNoFile
  std::filesystem::path log = {};                            ///< what it says, made anew; "": see output and error
  bool own_group = false;                                    ///< of processes, with what it starts itself
  std::optional<sigset_t> blocked = {};                      ///< its signal mask; none: the calling thread's
  int kept = kNoFile;                                        ///< an open file that it has, too, by the same number
};

/// This process's environment with `own` in place of what it says of the same names.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& own);

/// Whether PATH has it. Throws nothing.
bool in_path(const std::string& program);

/// The same words, which end by SIGTERM when the thread that starts them ends; as they are where setpriv is missing.
std::vector<std::string> ended_with_us(std::vector<std::string> words);

/// Its process id. A SIGCHLD that this process was started with ignored is put back to its default: else nobody would
/// see how a child ends. Throws Error{runtime}, "PROGRAM could not be started: REASON".
pid_t start_process(const ProcessStart& start);

/// How it ended, as waitpid(2) gives it; none: it had not after limit_s (0: looks once). Throws Error{runtime} where
/// that cannot be seen.
std::optional<int> wait_for_end(pid_t pid, double limit_s = kNoLimit_s);
/// Of what wait_for_end gave: exit status, 128 + signal.
int exit_status(int end);
/// Of the same: "signal 9 (Killed)", "exit status 4".
std::string cause_of(int end);

/// SIGKILL, and waits until it is gone.
void kill_process(pid_t pid);
/// The leader of a group of its own: SIGTERM to all, five seconds later SIGKILL; waits until the leader is gone.
void end_group(pid_t pid);

struct ProcessOutput {
  std::optional<int> status = {};  ///< exit status, 128 + signal; none: it took longer than the limit and was ended
  std::string text = {};
};
/// Runs it to the end of its standard output, in place of start.output, and then to its own. Of more than `most_bytes`
/// the rest is not read. Throws as start_process.
ProcessOutput run_for_output(ProcessStart start, double limit_s = kNoLimit_s, std::size_t most_bytes = 1 << 20);
/// What a short command says, without the end of its last line; "" where it cannot be started, fails or takes longer.
/// It has nothing to read, and what it tells on standard error is lost.
std::string output_of(ProcessStart start, double limit_s = kNoLimit_s);

}  // namespace wt
