// Published training steps beside what `windtunnel simulate` says of them. Each row is written as the files that a user
// would write (run_files.hpp), timed by constants of its stack that were fitted without it
// (sim/fit/stack_fit.hpp), and simulated by the code behind that command.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/cost/stacks/step_intervals.hpp"
#include "sim/fit/published_times.hpp"
#include "sim/published/run_files.hpp"
#include "sim/replay/replay.hpp"
#include "sim/validate/judged.hpp"

namespace wt {

/// Seconds of the run's step, with its 80 % interval; what `windtunnel simulate` prints.
struct RunForecast {
  double step_s = 0, low_s = 0, high_s = 0;
};
RunForecast forecast(const RunFiles& files, const OpCost& cost, const StepRatiosByKind& off_by = {});
/// The same of one step of a routing that no file of ours can say.
ReplayResult simulated(const RunFiles& files, const OpCost& cost, const StepRatiosByKind& off_by,
                       const RoutingSource& routing, std::int64_t step = 0);

/// What must have no part in a prediction.
enum class LeftOutOfSteps {
  nothing,
  origin,  ///< all that the row's origin published: steps and benchmarks
  stack,   ///< all steps of the same stack, too
};

/// The run's step without what it belongs to: `files` with a fabric that nobody else measured taken for what is usual
/// on its kind of link, and its times.
struct StepWithout {
  StepWithout(const RunRow& row, const StackSpec& stack, const PublishedTimes& published, LeftOutOfSteps left_out);
  RunFiles files;
  std::unique_ptr<const StackCost> cost;
  StepRatiosByKind off_by;
  bool typical = false;     ///< nobody else measured the stack: it takes the typical stack's constants
  bool known_chip = false;  ///< somebody else measured the GPU
};

struct RunsAsked {
  std::string stack = {};  ///< name of the stack of all rows; empty = by their framework
  LeftOutOfSteps left_out = LeftOutOfSteps::origin;
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

/// One judged row a measurement of `rows`, in order. The fit sees the published tables alone, without what the row
/// belongs to; a stack of which nothing else was measured gets the typical constants, and says so in its regime. The
/// baseline holds MFU constant: the median of the other groups of the same regime on this GPU, whoever published them.
std::vector<Judged> judge_runs(const std::vector<RunRow>& rows, const PublishedTimes& published,
                               const RunsAsked& asked = {});

}  // namespace wt
