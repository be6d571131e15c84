// Load on the host's cores during a measurement.
#pragma once
#include <string>

#include "configs/machine/fingerprint.hpp"

namespace wt {

/// Cumulative CPU seconds of all cores together.
struct HostLoad {
  double at_s = 0;      ///< CLOCK_MONOTONIC
  double busy_s = 0;    ///< of all processes, without time stolen by the hypervisor
  double stolen_s = 0;  ///< ready to run, but the hypervisor ran something else
  double own_s = 0;     ///< of this process and its children that have ended
};

HostLoad host_load();
/// Parses the line "cpu ..." of /proc/stat (proc(5)); zeros where the text has none.
HostLoad parse_proc_stat(const std::string& text, double ticks_per_s);

/// Means between two moments, with two decimals: run.other_busy_cores and run.stolen_cores; and run.cpu_MHz, the
/// current mean over cores. Values that the system does not report are left out.
Fingerprint host_conditions(const HostLoad& before, const HostLoad& after);

}  // namespace wt
