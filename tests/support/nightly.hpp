// How much a test tries: less in CI, all of it where the entries *_nightly of ctest run it (./windtunnel test
// --nightly).
#pragma once
#include <cstdlib>

namespace wt::test {

/// Set WT_NIGHTLY=1 to run one by hand with all of its cases.
inline bool nightly() { return std::getenv("WT_NIGHTLY") != nullptr; }

template <class Count>
Count cases(Count in_ci, Count in_all) {
  return nightly() ? in_all : in_ci;
}

}  // namespace wt::test
