// Programs of others that a test calls.
#pragma once
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

namespace wt::test {

/// Whether it is there. What ./windtunnel test has not installed is a failure where CI is set; elsewhere the test says
/// that it skips what needs the program, and ctest counts it as skipped by that line.
inline bool has_program(const std::string& name) {
  if (std::system(("command -v '" + name + "' >/dev/null 2>&1").c_str()) == 0) return true;
  if (std::getenv("CI") != nullptr) FAIL(name << ": found no such program, ./windtunnel test installs it");
  WARN("SKIPPED: no " << name);
  return false;
}

}  // namespace wt::test
