// Compares published training steps with the code of `windtunnel simulate`. Each row becomes the files that a user
// would write (run_files.hpp). Its times use constants of its stack that were fitted without the row
// (sim/fit/stack_fit.hpp).
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/stacks/step_intervals.hpp"
#include "sim/fit/published_times.hpp"
#include "sim/published/run_files.hpp"
#include "sim/replay/replay.hpp"
#include "sim/validate/judged.hpp"

namespace wt {

/// Seconds of the run's step with its 80 % interval, as `windtunnel simulate` prints them.
struct RunForecast {
  double step_s = 0, low_s = 0, high_s = 0;
};
RunForecast forecast(const RunFiles& files, const OpCost& cost, const StepRatiosByKind& off_by = {});
/// The same for one step under a routing that our files cannot describe.
ReplayResult simulated(const RunFiles& files, const OpCost& cost, const StepRatiosByKind& off_by,
                       const RoutingSource& routing, std::int64_t step = 0);

/// Data that a prediction of a row must not use.
enum class LeftOutOfSteps {
  nothing,
  origin,  ///< all that the row's origin published: steps and benchmarks
  stack,   ///< all steps of the same stack, too
};

/// Files and times that predict a run's step without the data in `left_out`. A fabric that only the left-out data
/// measured is replaced by a typical fabric of its kind of link.
struct StepWithout {
  StepWithout(const RunRow& row, const StackSpec& stack, const PublishedTimes& published, LeftOutOfSteps left_out);
  /// The cost where the stack's constants are multiplied by these factors, by name of kStackFactors.
  std::unique_ptr<const StackCost> scaled(const std::map<std::string, double>& factors) const;

  RunFiles files;
  const StepModel* steps = nullptr;
  const BenchmarkTimes* times = nullptr;
  std::unique_ptr<const StackCost> cost;
  StepRatiosByKind off_by;
  bool typical = false;     ///< no other data of the stack: the typical stack's constants are used
  bool known_chip = false;  ///< other data has this GPU
};

/// Model FLOP/s of a measured step over the data sheet's FLOP/s; none for unusable rows and GPUs without a data sheet.
std::optional<double> share_of_peak(const RunRow& row);

struct RunsAsked {
  std::string stack = {};  ///< name of the stack of all rows; empty = by their framework
  LeftOutOfSteps left_out = LeftOutOfSteps::origin;
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

/// One judged row for each of `rows`, in order. The fit uses the published tables alone, without the data in
/// `left_out`. A stack without other measurements gets the typical constants. The baseline assumes constant MFU: the
/// median of the other groups of the same regime on this GPU, of any origin.
std::vector<Judged> judge_runs(const std::vector<RunRow>& rows, const PublishedTimes& published,
                               const RunsAsked& asked = {});

}  // namespace wt
