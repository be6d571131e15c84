// POSIX clocks, read in seconds.
#pragma once
#include <time.h>

#include <cmath>

namespace wt {

inline double clock_s(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// The monotonic clock: setting the system time does not move it.
inline double steady_s() { return clock_s(CLOCK_MONOTONIC); }

/// Polls the condition, with a pause between tries. Returns whether it held in time.
template <typename Condition>
bool wait_until(double at_most_s, double pause_s, Condition&& condition) {
  const timespec pause{static_cast<time_t>(pause_s), static_cast<long>(1e9 * (pause_s - std::floor(pause_s)))};
  for (const double begin = steady_s(); !condition(); nanosleep(&pause, nullptr))
    if (steady_s() - begin > at_most_s) return false;
  return true;
}

/// CPU seconds of the calling thread alone.
inline double thread_cpu_s() { return clock_s(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace wt
