// A plan: the layout, the checkpoint cadence and the spare nodes of a study, when the run will be done, and what all of
// it rests on. planner/cli/plan/plan_report.hpp shows it.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "planner/cadence/cadence_runs.hpp"
#include "planner/money/cost.hpp"
#include "planner/placement/replacement.hpp"
#include "planner/plan/measure_next.hpp"
#include "planner/plan/policy_table.hpp"
#include "planner/regret/robust_choice.hpp"
#include "planner/search/search.hpp"

namespace wt {

/// What a study refers to, read once; sensitivities and what-ifs evaluate it again with other factors.
struct PlanInputs {
  StudySpec study;
  std::shared_ptr<const OpCost> prices = nullptr;  ///< with intervals of data-parallel runs
  std::shared_ptr<const OpCost> staged_prices =
      nullptr;             ///< the same with intervals of runs with tensor groups or pipelines; none on shared cores
  std::string basis = {};  ///< Prices::basis
  std::vector<LoadScenario> scenarios = {};  ///< empty = balanced (assumed)
  std::optional<LoadWindows> drift = {};     ///< the study's
  FailurePreset failures = {};
  std::vector<Scenario> faults = {};               ///< the study's
  std::vector<FailurePreset> other_failures = {};  ///< every shipped preset, to compare the finish date under
  std::optional<StragglerRates> stragglers = {};   ///< of the study's preset; empty = none
  std::optional<FailureClass> silent_errors = {};  ///< likewise
  double peak_flops = 0;  ///< of a GPU, or what the profile says of its host; 0 = unknown, then there is no MFU
  StackSpec stack = {};   ///< the study's, or our trainer
  std::shared_ptr<const StackMemory> memory = {};  ///< of published runs; none on a host whose ranks share cores
};
/// Throws Error{usage} naming the file or preset.
PlanInputs read_plan_inputs(StudySpec study, bool allow_assumed);

/// Seconds of a save and of a restore, from bytes and bandwidths.
struct CheckpointTimes {
  double total_bytes = 0, bytes_per_rank = 0;
  SourcedNumber blocking_s;  ///< a rank's shard to host memory
  SourcedNumber persist_s;   ///< one replica's nodes to storage
  SourcedNumber reload_s;    ///< one replica reads and broadcasts its shards to the others
  double nic_share = 0;      ///< of a saving node's NIC bandwidth that its writes take, where both share the NICs
};
/// Throws Error{usage} where the cluster describes no storage.
CheckpointTimes checkpoint_times(const PlanInputs& inputs, const Layout& layout);

/// Share of a save's persist time that training loses: its writes take a share u of a node's NICs, so that exposed
/// communication e of the step takes 1 / (1 - u) of its time: e u / (1 - u). 0 where ranks share cores.
SourcedNumber persist_slowdown(const PlanInputs& inputs, const CheckpointTimes& checkpoint, const Simulated& step);

/// What a step time, the saves and restarts of a layout, and a failure preset mean for a cadence, before one is chosen.
CadenceInput cadence_input_of(const PlanInputs& inputs, const Layout& layout, const CheckpointTimes& checkpoint,
                              double step_s, const FailurePreset& preset);

/// Cadence and finish date of one simulated step time.
struct RunSchedule {
  CheckpointTimes checkpoint;
  CadenceInput input;
  CadencePlan cadence;
  double days() const;  ///< expected, by the closed form's goodput
  std::int64_t steps = 0;
};
/// `slowdown` as persist_slowdown says. Without the study's local saves where their interval is not shorter than the
/// one chosen without them.
RunSchedule make_schedule(const PlanInputs& inputs, const Layout& layout, const CheckpointTimes& checkpoint,
                          double step_s, const FailurePreset& preset, const SourcedNumber& slowdown = {});

struct PresetRow {
  std::string name, title;  ///< of the preset
  double mtbf_s = 0, interval_s = 0, goodput = 0, days = 0;
};

/// One kernel class that the step's computation is priced by.
struct PricedClass : PriceBasis {
  double share = 0;  ///< of the seconds of all work items of a rank's step
};

/// Runs of the chosen way to recover (plan_runs.hpp).
struct PlanRuns : CadenceRuns {
  NumberedRun one;         ///< of such a scenario with any step
  bool on_traces = false;  ///< of faults by wall clock, as the comparison; else by the running time of the job
};

/// What is planned where fewer GPUs are left.
struct SmallerLayout {
  Layout layout;
  double step_s = 0;
};

struct Plan {
  SearchResult search;
  RobustChoice robust;                 ///< of the search's layouts the one that is planned
  Layout layout;                       ///< chosen, with its expert placement
  Simulated step;                      ///< of that layout, with the critical rank's timeline
  std::vector<PricedClass> priced_by;  ///< the largest first; a backward pass counts with what it was derived from
  StepMemory memory;
  double memory_limit_bytes = 0;
  std::map<std::int64_t, PlacementStudy> placements;      ///< by expert degree over 1, where loads are known
  std::map<std::int64_t, std::vector<Placement>> copies;  ///< SearchProblem::copies
  std::string placement_note;                             ///< what became of it
  std::optional<ReplacementStudy> replacement;  ///< where the study has drifting loads, and experts are placed
  std::string drift_note;                       ///< what it says; "" without drifting loads
  /// Mean while loads drift, moves of experts included, over `step`, which has the loads of `routing`; 1 = no drift.
  double drift = 1;
  double imbalance = 1, imbalance_p99 = 1;
  RunSchedule schedule;  ///< of the chosen way to recover
  PlanRuns runs;         ///< thousand runs with the chosen cadence and this step
  PolicyTable policies;  ///< ways to recover, on the same traces of faults
  std::vector<PresetRow> presets;
  Cost cost;         ///< of runs with steps drawn from the interval; no money where the study has no prices
  MeasureNext next;  ///< what is worth measuring before the run
  std::vector<SmallerLayout> smaller;  ///< where they are asked for (smaller_plan.hpp), the most GPUs first
  double search_s = 0;                 ///< wall time of the search
  double run_step_s() const { return drift * step.step_s; }  ///< mean over the run
};

/// Error{usage} for what a schedule could not be made of whatever layout is found: better said before a search than
/// after it. make_plan asks it first.
void check_schedule(const PlanInputs& inputs);
/// Throws Error{finding} when nothing fits. Ways to recover are compared on at most so many traces.
Plan make_plan(const PlanInputs& inputs, const SearchProgress& progress = {}, std::int64_t traces = kPlanTraces);
/// With the study's factors put on prices, cluster and loads. `inputs` and `cost` must outlive it.
SearchProblem search_problem(const PlanInputs& inputs, const OpCost& cost);

/// Layout, cadence and model as a run.
RunSpec plan_run(const PlanInputs& inputs, const Plan& plan);

}  // namespace wt
