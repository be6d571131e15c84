// The one exception family of the project. Libraries throw Error; main alone turns its code into an exit status.
// A message has three parts: what was found, what is allowed, what to do; with values, file and key.
#pragma once
#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace wt {

/// Exit statuses of both executables (0 = ok).
enum class Code {
  finding = 1,    ///< a regression, a failed drill, a plan that does not fit
  usage = 2,      ///< command line or configuration
  undecided = 3,  ///< cannot be compared or decided
  runtime = 4,    ///< device, file system, network or child process
  silent = 5,     ///< silent data corruption: a rank's numbers differ from those of its replicas
  final = 93,     ///< the run failed and a restart would fail again; NVIDIA's NVRx uses the same status
};

class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }
  int exit_status() const { return static_cast<int>(code_); }

 private:
  Code code_;
};

/// throw_error(Code::undecided, "{}: found {}, allowed {}", file, found, allowed)
template <typename... Args>
[[noreturn]] void throw_error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

/// The most common ones by name.
template <typename... Args>
[[noreturn]] void throw_usage(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Code::usage, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
[[noreturn]] void throw_runtime(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Code::runtime, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace wt
