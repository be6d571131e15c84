// The three clocks that every op is measured with: wall time misleads where ranks share cores.
#pragma once
#include <time.h>

namespace wt {

struct Clocks {
  double wall_s = 0, thread_cpu_s = 0, process_cpu_s = 0;
  static double read(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  static Clocks now() { return {read(CLOCK_MONOTONIC), read(CLOCK_THREAD_CPUTIME_ID), read(CLOCK_PROCESS_CPUTIME_ID)}; }
};

/// CPU seconds that the whole machine has worked since it started (all cores, all programs, stolen time included);
/// 0 where /proc/stat does not say.
double machine_cpu_s();

}  // namespace wt
