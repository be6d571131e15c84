// What else the host's cores did while something was timed on them.
#pragma once
#include <string>

#include "configs/machine/fingerprint.hpp"

namespace wt {

/// CPU seconds since some moment, of all cores together.
struct HostLoad {
  double at_s = 0;      ///< CLOCK_MONOTONIC
  double busy_s = 0;    ///< of every process, time stolen by the hypervisor left out
  double stolen_s = 0;  ///< cores that wanted to run and did not get the hardware
  double own_s = 0;     ///< of this process and its children that have ended
};

HostLoad host_load();
/// From the line "cpu ..." of /proc/stat (proc(5)); zeros where the text has none.
HostLoad parse_proc_stat(const std::string& text, double ticks_per_s);

/// Between two moments: run.other_busy_cores and run.stolen_cores, means over the time with two decimals, and
/// run.cpu_MHz, the mean over cores of this moment, where the kernel tells it. What the system does not tell is left
/// out.
Fingerprint host_conditions(const HostLoad& before, const HostLoad& after);

}  // namespace wt
