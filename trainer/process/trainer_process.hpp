// Running windtunnel-train, the executable with LibTorch, as a child process, which is killed when this one dies.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace wt {

/// windtunnel-train beside this executable (or $WINDTUNNEL_TRAIN). Throws Error{usage} with the line that builds it.
std::filesystem::path trainer_program();

/// Runs it to its end, output into `log`. Its exit status, 128 + signal. None: it had not ended after limit_s and was
/// killed.
std::optional<int> try_trainer(const std::vector<std::string>& arguments, const std::filesystem::path& log,
                               double limit_s);
/// The last lines of what it said.
std::string tail_of(const std::filesystem::path& log);
/// The same. Throws an Error with the child's own status and the end of its output.
void run_trainer(const std::vector<std::string>& arguments, const std::filesystem::path& log);

/// Runs it to its end with this process's own output. Its exit status, 128 + signal.
int run_trainer_here(const std::vector<std::string>& arguments);

}  // namespace wt
