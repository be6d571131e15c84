// Predicts measured training steps from measurements of other models and frameworks: each row's step program, priced by
// published kernel and collective times (step_work.hpp), through a step model fitted without the row's own source and
// model.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "configs/spec/stack.hpp"
#include "sim/cost/stacks/step_model.hpp"
#include "sim/measurements/collective_rows.hpp"
#include "sim/measurements/kernel_rows.hpp"
#include "sim/measurements/run_rows.hpp"
#include "sim/validate/statistics.hpp"

namespace wt {

/// What predictions of runs rest on.
struct RunReference {
  std::vector<KernelRow> kernels;
  std::vector<CollectiveRow> collectives;
  std::vector<RunRow> runs;
  std::vector<StackSpec> stacks;
};

/// From the tables of configs/measurements.
RunReference run_reference(const std::filesystem::path& measurements, std::vector<StackSpec> stacks);

/// A stack on a GPU, by the name that a table or a cluster file gives it.
StepTraits traits_of(const StackSpec& stack, const std::string& gpu);

/// The step model of everything in the reference.
StepModel reference_model(const RunReference& reference, const GpuTimes& gpu, const CollectiveEstimator& fabric);

/// One judged row a measurement of `rows`, in order. Fits see `rows` and the reference's, except what is of the row's
/// own group (source and model); a stack of which nothing else was measured gets the typical constants, and says so in
/// its regime. The baseline holds MFU constant: the median of the other groups of the same regime. `stack`: the name of
/// the stack of all of `rows`; empty = by their framework.
/// `left_out`: the row's group, or everything of its stack.
enum class RunsLeftOut { group, stack };
std::vector<Judged> judge_runs(const std::vector<RunRow>& rows, const RunReference& reference,
                               const std::string& stack = "", RunsLeftOut left_out = RunsLeftOut::group);

/// Seconds of a run's step by other means than step_seconds(); throws Error{usage} where it has none.
using RunTimer = std::function<double(const RunRow&, const StepTraits&, const StepConstants&)>;
/// The same with the step model's constants, without the row's group, handed to `timer`.
std::vector<Judged> judge_runs_by(const RunTimer& timer, const std::vector<RunRow>& rows, const RunReference& reference,
                                  const std::string& stack = "");

}  // namespace wt
