// Compares published runs whose layout is known to be good with the planner's choice for the same model, machine and
// batch. Is the published layout in the search space? What is its predicted step? What would the planner change?
//
// A judge, as those of sim/validate: times and memory know nothing that the run's origin published, and nothing that
// plans asks it.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "configs/files/stack.hpp"
#include "planner/search/search.hpp"
#include "planner/search/space_member.hpp"
#include "sim/fit/published_times.hpp"
#include "sim/published/run_files.hpp"

namespace wt {

/// An entry of configs/measurements/published_plans.yaml.
struct PublishedPlan {
  RunRow run;
  std::string stack;  ///< by name; empty = that of its framework
  std::string good;   ///< why the layout counts as good
  SearchSpec search;  ///< restrictions of the search space
};
/// The run tables of configs/measurements, by row_id.
std::map<std::string, RunRow> published_rows();
/// Each `run` is a row_id of `rows`. Throws Error{usage} for unknown keys or rows, and for rows that cannot be
/// predicted.
std::vector<PublishedPlan> read_published_plans(const std::filesystem::path& file,
                                                const std::map<std::string, RunRow>& rows = published_rows());

/// The run as user files.
RunFiles files_of(const PublishedPlan& plan, const std::vector<StackSpec>& stacks);
/// The search problem of a user with this run, without memory, loads and intervals. All arguments must outlive it.
SearchProblem question_of(const PublishedPlan& plan, const RunFiles& files, const OpCost& cost);

/// Seconds of a step on its critical rank by cause. They sum to the step.
struct StepTerms {
  double computation = 0;    ///< with the optimizer and other work done once a step
  double recompute = 0;      ///< computation repeated in backward
  double communication = 0;  ///< not hidden by computation
  double stages = 0;         ///< waiting for other pipeline stages and their messages
};
StepTerms terms_of(const Simulated& step);

/// A layout and its prediction.
struct PredictedPlan {
  Layout layout;
  Simulated step;
  double memory_bytes = 0;  ///< of a process, upper end of its 80 % interval
};

struct PublishedComparison {
  PublishedPlan plan;
  std::string stack = {};
  double memory_limit_bytes = 0;  ///< of a GPU; at least the predicted memory of the published layout, which did fit
  SpaceMember member = {};
  PredictedPlan published = {}, ours = {};
  Certificate certificate = {};           ///< of the search for `ours`
  bool deals_layers_differently = false;  ///< the run deals layers to chunks differently from the stack's rule
  bool fits() const { return published.memory_bytes <= memory_limit_bytes; }
  double faster() const { return 1 - ours.step.step_s / published.step.step_s; }
  /// Faster by more than the error of predicted times.
  bool clearly_faster() const { return ours.step.step_s < published.step.low_s; }
};

/// Throws Error{usage} if no other measurements are left for a fit, Error{finding} if no layout fits.
PublishedComparison judge_plan(const PublishedPlan& plan, const PublishedTimes& published,
                               const SearchProgress& progress = {});

}  // namespace wt
