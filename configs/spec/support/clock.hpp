// POSIX clocks, read in seconds.
#pragma once
#include <time.h>

namespace wt {

inline double clock_s(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// CPU seconds of the calling thread alone.
inline double thread_cpu_s() { return clock_s(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace wt
