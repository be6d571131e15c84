// Published runs whose layout is known to be good, beside what the planner chooses for the same model, machine and
// batch: is the published layout one that it could have chosen, what does it say of its step, and what would it change?
//
// A judge, as those of sim/validate: prices and memory know nothing that the run's origin published, and nothing that
// plans asks it.
#pragma once
#include <filesystem>
#include <functional>
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
  std::string stack;  ///< by name; empty = as its framework says
  std::string good;   ///< why its layout counts as good
  SearchSpec search;  ///< what of the space is left out
};
/// The tables of runs in configs/measurements, by row_id.
std::map<std::string, RunRow> published_rows();
/// Each `run` is a row_id of `rows`. Throws Error{usage}: unknown keys or rows, rows that cannot be predicted.
std::vector<PublishedPlan> read_published_plans(const std::filesystem::path& file,
                                                const std::map<std::string, RunRow>& rows = published_rows());

/// The run as the files of a user.
RunFiles files_of(const PublishedPlan& plan, const std::vector<StackSpec>& stacks);
/// What a user would ask the planner of it; without memory, loads and intervals of its own. All must outlive it.
SearchProblem question_of(const PublishedPlan& plan, const RunFiles& files, const OpCost& cost);

/// Seconds of a step on its critical rank, by what they are spent on; they sum to the step.
struct StepTerms {
  double computation = 0;    ///< with the optimizer, and what happens once a step
  double recompute = 0;      ///< computation that is done again in backward
  double communication = 0;  ///< that computation does not hide
  double stages = 0;         ///< waiting for other pipeline stages, and for what they send
};
StepTerms terms_of(const Simulated& step);

/// A layout, and what is predicted of it.
struct PredictedPlan {
  Layout layout;
  Simulated step;
  double memory_bytes = 0;  ///< of a process, upper end of its 80 % interval
};

struct PlanBeside {
  PublishedPlan plan;
  std::string stack = {};
  double memory_limit_bytes =
      0;  ///< of a GPU. Ours may take what the published layout is predicted to take, which fitted
  SpaceMember member = {};
  PredictedPlan published = {}, ours = {};
  Certificate certificate = {};  ///< of the search that found ours
  bool deals_otherwise = false;  ///< the run's pipeline has other layers in its chunks than the stack's rule gives
  bool fits() const { return published.memory_bytes <= memory_limit_bytes; }
  double faster() const { return 1 - ours.step.step_s / published.step.step_s; }
  /// Beyond what prices alone may be off.
  bool clearly_faster() const { return ours.step.step_s < published.step.low_s; }
};

/// Throws Error{usage} where nothing else was measured to fit prices on, Error{finding} where nothing fits.
PlanBeside judge_plan(const PublishedPlan& plan, const PublishedTimes& published, const SearchProgress& progress = {});

}  // namespace wt
