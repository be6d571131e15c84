// The three clocks that measure every op. Wall time alone is misleading where ranks share cores.
#pragma once
#include <algorithm>

#include "configs/base/clock.hpp"

namespace wt {

struct Clocks {
  double wall_s = 0, thread_cpu_s = 0, process_cpu_s = 0;
  static Clocks now() {
    return {clock_s(CLOCK_MONOTONIC), clock_s(CLOCK_THREAD_CPUTIME_ID), clock_s(CLOCK_PROCESS_CPUTIME_ID)};
  }
  /// Seconds of this process's own work on the host, without the time that a busy machine gave to others.
  double worked_since(const Clocks& start) const {
    return std::min(wall_s - start.wall_s, process_cpu_s - start.process_cpu_s);
  }
};

/// CPU seconds of the whole machine since boot (all cores and programs, including stolen time); 0 where /proc/stat
/// lacks them.
double machine_cpu_s();

}  // namespace wt
