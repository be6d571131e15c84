// A plan for a study: layout, checkpoint cadence, spare nodes, finish date, and the evidence for them.
// planner/cli/plan/plan_report.hpp shows it.
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
#include "planner/plan/simple_alternative.hpp"
#include "planner/regret/robust_choice.hpp"
#include "planner/search/search.hpp"
#include "sim/own_runs/own_runs.hpp"

namespace wt {

/// The best layout of a study in one number format, before it is chosen.
struct FormatRow {
  std::string precision;  ///< word of the key
  double value = 0;       ///< of the search's objective
  Layout layout;
  Simulated step;
  std::string unplanned;  ///< why there is none; "" = there is one
};

/// All files that a study refers to, read once. Sensitivities and what-ifs evaluate these inputs again with other
/// factors.
struct PlanInputs {
  StudySpec study;
  std::shared_ptr<const OpCost> times = nullptr;
  StepIntervals intervals = {};              ///< 80 % intervals of steps computed with `times`
  std::string basis = {};                    ///< MachineTimes::basis
  std::optional<OwnRuns> own = {};           ///< the study's measured steps, by which `times` are corrected
  TimeSources sources = {};                  ///< of `times`, without the factors of measured steps
  std::vector<LoadScenario> scenarios = {};  ///< empty = balanced (assumed)
  std::optional<LoadWindows> drift = {};     ///< the study's drifting loads
  FailurePreset failures = {};
  std::vector<Scenario> faults = {};               ///< the study's fault scenarios
  std::vector<FailurePreset> other_failures = {};  ///< every shipped preset, to compare finish dates
  std::optional<StragglerRates> stragglers = {};   ///< of the study's preset; empty = none
  std::optional<FailureClass> silent_errors = {};  ///< of the study's preset; empty = none
  double peak_flops = 0;  ///< of a GPU, or of the host by its profile; 0 = unknown, then no MFU is reported
  StackSpec stack = {};   ///< the study's, or our trainer's
  std::shared_ptr<const StackMemory> memory = {};  ///< from published runs; nullptr for shared cores
  std::vector<FormatRow> formats = {};             ///< of search.precision; study.precision is the best of them
};
/// If the study has search.precision, each of these formats is searched, and the inputs are of the one with the best
/// layout. Throws Error{usage} naming the file or preset.
PlanInputs read_plan_inputs(StudySpec study, bool allow_assumed);

/// Seconds of a save and of a restore, from bytes and bandwidths.
struct CheckpointTimes {
  double total_bytes = 0, bytes_per_rank = 0;
  SourcedNumber blocking_s;  ///< a rank's shard to host memory
  SourcedNumber persist_s;   ///< one replica's nodes to storage
  SourcedNumber reload_s;    ///< one replica reads, and broadcasts its shards to the others
  double nic_share = 0;      ///< share of a saving node's NIC bandwidth that its writes use, if storage shares the NICs
};
/// Throws Error{usage} if the cluster describes no storage.
CheckpointTimes checkpoint_times(const PlanInputs& inputs, const Layout& layout);

/// Share of a save's persist time that training loses. The save's writes use a share u of a node's NICs, so the step's
/// share e of exposed communication takes 1 / (1 - u) as long: e u / (1 - u) is lost. 0 for shared cores.
SourcedNumber persist_slowdown(const PlanInputs& inputs, const CheckpointTimes& checkpoint, const Simulated& step);

/// The input of choose_cadence: a step time, the layout's saves and restarts, and a failure preset.
CadenceInput cadence_input_of(const PlanInputs& inputs, const Layout& layout, const CheckpointTimes& checkpoint,
                              double step_s, const FailurePreset& preset);

/// Cadence and finish date for one simulated step time.
struct RunSchedule {
  CheckpointTimes checkpoint;
  CadenceInput input;
  CadencePlan cadence;
  double days() const;  ///< expected, with the closed form's goodput
  std::int64_t steps = 0;
};
/// `slowdown`: see persist_slowdown. The study's local saves are left out unless their interval is shorter than the
/// save interval chosen without them.
RunSchedule make_schedule(const PlanInputs& inputs, const Layout& layout, const CheckpointTimes& checkpoint,
                          double step_s, const FailurePreset& preset, const SourcedNumber& slowdown = {});

struct PresetRow {
  std::string name, title;  ///< of the preset
  double mtbf_s = 0, interval_s = 0, goodput = 0, days = 0;
};

/// A kernel class that times some of the step's computation.
struct TimedClass : TimeBasis {
  double share = 0;  ///< over the seconds of all work items in a rank's step
};

/// Runs with the chosen recovery policy (plan_runs.hpp).
struct PlanRuns : CadenceRuns {
  NumberedRun one;  ///< simulates a run by its number, with any step time
  /// On fault traces by wall clock, like the comparison; else failures follow the running time of the job.
  bool on_traces = false;
};

/// The layout for fewer GPUs.
struct SmallerLayout {
  Layout layout;
  double step_s = 0;
};

struct Plan {
  SearchResult search;
  RobustChoice robust;  ///< the comparison of the search's layouts, with the chosen one
  Layout layout;        ///< with its expert placement
  Simulated step;       ///< with the critical rank's timeline
  /// The largest share first. A backward pass counts for the class from which its time was derived.
  std::vector<TimedClass> timed_by;
  StepMemory memory;
  double memory_limit_bytes = 0;
  std::map<std::int64_t, PlacementStudy> placements;      ///< by expert degree over 1, if loads are known
  std::map<std::int64_t, std::vector<Placement>> copies;  ///< SearchProblem::copies
  std::string placement_note;                             ///< what the placement changed, or why experts are not placed
  std::optional<ReplacementStudy> replacement;            ///< if the study has drifting loads and experts are placed
  std::string drift_note;                                 ///< the result of `replacement`; "" without drifting loads
  /// Mean step while loads drift, with moves of experts, over `step`, which uses the loads of `routing`; 1 = no drift.
  double drift = 1;
  double imbalance = 1, imbalance_p99 = 1;
  RunSchedule schedule;  ///< for the chosen recovery policy
  PlanRuns runs;         ///< simulated runs with the chosen cadence and this step
  PolicyTable policies;  ///< recovery policies on the same fault traces
  std::vector<PresetRow> presets;
  Cost cost;         ///< of runs with steps drawn from their interval; no money without prices in the study
  MeasureNext next;  ///< what to measure before the run
  /// The simple alternative to the layout that the comparison chose, and that layout's lead over it; empty if it is
  /// simple itself, or no simple one fits or is in the study.
  std::optional<Candidate> simple;
  Lead lead;
  std::optional<Candidate> passed_over;  ///< the layout that would have been chosen, were its lead not unsure
  std::vector<SmallerLayout> smaller;    ///< if requested (smaller_plan.hpp), the most GPUs first
  double search_s = 0;                   ///< wall time of the search
  double run_step_s() const { return drift * step.step_s; }  ///< mean over the run
};

/// Throws Error{usage} for problems of the schedule that every layout would have. make_plan calls it before the search.
void check_schedule(const PlanInputs& inputs);
/// Throws Error{finding} if nothing fits. `traces`: most traces used to compare recovery policies.
Plan make_plan(const PlanInputs& inputs, const SearchProgress& progress = {}, std::int64_t traces = kPlanTraces);
/// Applies the study's factors to times, cluster and loads. `inputs` and `cost` must outlive the result.
SearchProblem search_problem(const PlanInputs& inputs, const OpCost& cost);

/// The plan as a run: layout, cadence and model.
RunSpec plan_run(const PlanInputs& inputs, const Plan& plan);
/// What decides which measured runs a step of this layout is like.
RunFeatures features_of(const PlanInputs& inputs, const Layout& layout);

}  // namespace wt
