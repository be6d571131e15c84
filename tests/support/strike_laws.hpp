// Laws of failures and what a trace of them holds, for tests of simulated months.
#pragma once
#include <vector>

#include "sim/months/fault_trace.hpp"

namespace wt::test {

inline StrikeLaw node_failures(double mean_s, double shape = 1) { return {.mean_s = mean_s, .shape = shape}; }

inline std::vector<TraceEvent> events_until(FaultTrace& trace, double seconds) {
  std::vector<TraceEvent> out;
  for (std::size_t i = 0; trace.event(i) && static_cast<double>(trace.event(i)->at) < seconds * 1e9; ++i)
    out.push_back(*trace.event(i));
  return out;
}

}  // namespace wt::test
