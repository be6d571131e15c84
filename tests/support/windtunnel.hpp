// The windtunnel command as a user calls it. For tests that wt_calls_windtunnel of cmake/ tells where the program is.
#pragma once
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdio>

#include "tests/support/ended.hpp"

namespace wt::test {

/// `arguments` as a shell reads them; `before` the command: variables of its environment ("A=b C=d"), or "cd FOLDER
/// &&".
inline Ended windtunnel(const std::string& arguments, const std::string& before = "") {
  std::FILE* pipe = popen((before + " '" WT_PROGRAM "' " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Ended ended;
  for (int c; (c = std::fgetc(pipe)) != EOF;) ended.said += static_cast<char>(c);
  const int status = pclose(pipe);
  ended.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return ended;
}

}  // namespace wt::test
