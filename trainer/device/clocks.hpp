// The three clocks that every op is measured with: wall time misleads where ranks share cores.
#pragma once
#include <algorithm>

#include "configs/base/clock.hpp"

namespace wt {

struct Clocks {
  double wall_s = 0, thread_cpu_s = 0, process_cpu_s = 0;
  static Clocks now() {
    return {clock_s(CLOCK_MONOTONIC), clock_s(CLOCK_THREAD_CPUTIME_ID), clock_s(CLOCK_PROCESS_CPUTIME_ID)};
  }
  /// Seconds of this process's own work on the host: what a busy machine gave to others meanwhile is left out.
  double worked_since(const Clocks& start) const {
    return std::min(wall_s - start.wall_s, process_cpu_s - start.process_cpu_s);
  }
};

/// CPU seconds that the whole machine has worked since it started (all cores, all programs, stolen time included);
/// 0 where /proc/stat does not say.
double machine_cpu_s();

}  // namespace wt
