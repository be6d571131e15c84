// What a program run by a test came to.
#pragma once
#include <string>

namespace wt::test {

struct Ended {
  int status = -1;   ///< exit status, 128 + signal
  std::string said;  ///< stdout and stderr
};

}  // namespace wt::test
