// The report of `windtunnel explain`: a job's log beside the prediction of the same job.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bench/formats/memory_snapshot.hpp"
#include "bench/formats/traced_ranks.hpp"
#include "bench/formats/traced_step.hpp"
#include "planner/explain/changes.hpp"
#include "planner/explain/standing.hpp"
#include "planner/explain/steady_steps.hpp"
#include "planner/simulate/simulated_run.hpp"
#include "reports/model/report.hpp"

namespace wt {

struct ExplainedJob {
  std::string log_file;  ///< as given
  JobLog log;
  SteadySteps measured;
  SimulatedRun predicted;
  Standing standing;
  std::vector<Change> changes;              ///< the best first
  std::optional<TracedStep> trace;          ///< of one rank; its steps are counted by its marks, or by the log's step
  std::optional<std::int64_t> traced_rank;  ///< which, where the trace says it
  std::optional<TracedRanks> ranks;         ///< of several traces; then `trace` is of the rank that computes longest
  std::optional<MemorySnapshot> snapshot;   ///< of one rank
  std::vector<std::string> assumed;         ///< of a file in another trainer's words
};

/// Warns where the job is slower than the interval of its prediction.
Report explain_report(const ExplainedJob& job);

}  // namespace wt
