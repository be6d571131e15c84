// Times of the ops of one step on one rank. The trainer (measured) and the simulator (predicted) use the same ids, so
// that both can be compared.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace wt {

/// Times in seconds from the start of the step.
struct OpRecord {
  std::string id;  ///< OpInstance::id()
  Lane lane = Lane::compute;
  double issued_s = 0;       ///< handed to its lane
  double done_s = 0;         ///< finished; for an asynchronous op, when its end was observed
  double waited_s = 0;       ///< time for which the compute lane waited for it (exposed time)
  double thread_cpu_s = 0;   ///< CPU seconds of the issuing thread (measured only)
  double process_cpu_s = 0;  ///< CPU seconds of the whole process in that time (measured only)
  double rows = 0;           ///< expert rows, if the op depends on them
  double live_bytes = 0;     ///< tensor memory when it was done
  double peak_bytes = 0;     ///< highest tensor memory while it ran
};

struct StepTimeline {
  std::int64_t step = 0;
  std::int64_t rank = 0;
  double step_s = 0;
  double exposed_s = 0;  ///< sum of waits for collectives
  double peak_bytes = 0;
  std::vector<OpRecord> ops;  ///< in issue order
};

}  // namespace wt
