#include "planner/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/files/layout_words.hpp"
#include "planner/plan/plan_cost.hpp"
#include "planner/plan/plan_drift.hpp"
#include "planner/plan/plan_placement.hpp"
#include "planner/plan/plan_runs.hpp"
#include "planner/plan/plan_search.hpp"
#include "planner/plan/simple_alternative.hpp"
#include "planner/search/search_evaluate.hpp"
#include "sim/cost/published_constants.hpp"

namespace wt {
namespace {

// The kernel classes whose times make up a plan's step, and the number of measurements behind each.

/// Plan::timed_by, for the plan's layout and imbalance.
std::vector<TimedClass> timed_classes(const PlanInputs& inputs, const Plan& plan) {
  const SearchProblem problem = search_problem(inputs, *inputs.times);
  const ProgramSet set = build_program_set(problem.model, plan.layout, program_options(problem, plan.layout));
  const Microbatches sequences = sequences_of(problem, plan.layout);
  struct Timed {
    double seconds = 0;
    TimedClass* by = nullptr;
  };
  std::map<const WorkItem*, Timed> timed;  // layers repeat the program's items
  std::map<std::string, TimedClass> classes;
  double sum = 0;
  for (const OpInstance& instance : unroll(set.programs[0])) {
    const double received =
        static_cast<double>(sequences.of(instance.microbatch) * problem.seq * problem.model.top_k) * plan.imbalance;
    for (const WorkItem& item : instance.op->work) {
      const auto [found, fresh] = timed.try_emplace(&item);
      Timed& found_time = found->second;
      if (fresh) {
        const double rows = instance.layer >= 0 ? received : 0;
        found_time.seconds = inputs.times->item(item, rows).seconds;
        if (found_time.seconds > 0) {
          TimeBasis basis = inputs.times->explain(item, rows);
          found_time.by = &classes[basis.name];
          static_cast<TimeBasis&>(*found_time.by) = std::move(basis);
        }
      }
      if (found_time.by == nullptr) continue;
      found_time.by->share += found_time.seconds;
      sum += found_time.seconds;
    }
  }
  std::vector<TimedClass> out;
  for (auto& [name, entry] : classes) {
    entry.share /= sum;
    out.push_back(std::move(entry));
  }
  std::ranges::stable_sort(out, [](const auto& a, const auto& b) { return a.share > b.share; });
  return out;
}

/// The search compares layouts by the intervals of published runs; that of the chosen one is as wide as what measured
/// steps leave unknown of it.
void narrow_by_own_steps(const PlanInputs& inputs, Plan& plan) {
  if (!inputs.own) return;
  const double ratio = interval_ratio(inputs.own->steps, plan_run(inputs, plan), inputs.study.cluster, inputs.sources);
  plan.step.low_s = plan.step.step_s / ratio, plan.step.high_s = plan.step.step_s * ratio;
}

/// The step with one slow node over the step without, averaged over nodes. One node of each kind and health is
/// simulated.
SourcedNumber slow_step_factor(const SearchProblem& problem, const Plan& plan, const SourcedNumber& node_compute) {
  // Value: first node and number of nodes.
  std::map<std::pair<std::size_t, double>, std::pair<std::int64_t, std::int64_t>> nodes_like;
  const std::int64_t nodes = (problem.gpus + problem.cluster.gpus_per_node - 1) / problem.cluster.gpus_per_node;
  for (std::int64_t node = 0; node < nodes; ++node) {
    double compute = 1;
    for (const NodeHealth& entry : problem.cluster.degraded)
      if (entry.node == node) compute = entry.compute;
    ++nodes_like.try_emplace({problem.cluster.kind_of(node), compute}, node, 0).first->second.second;
  }
  double factor = 0;
  for (const auto& [kind_and_health, first_and_count] : nodes_like) {
    SearchProblem slow = problem;
    slow.cluster.degraded.push_back({.node = first_and_count.first, .compute = node_compute.value});
    factor += static_cast<double>(first_and_count.second) / static_cast<double>(nodes) *
              std::max(1.0, simulate_layout(slow, plan.layout).step_s / plan.step.step_s);
  }
  return {factor,
          {Evidence::derived,
           fmt::format("this step simulated with a node that computes at {:g} of its rate; {}: {}", node_compute.value,
                       to_string(node_compute.evidence.kind), node_compute.evidence.source)}};
}

/// Names the simple alternative among the layouts of a search, and adds it if the search did not simulate it.
void add_simple_alternative(const SearchProblem& problem, SearchResult& search) {
  if (is_simple(search.candidates[search.best].layout)) {
    search.simple = search.best;
    return;
  }
  const std::optional<Candidate> simple = simple_alternative(problem);
  if (!simple) return;
  const auto same = std::ranges::find_if(
      search.candidates, [&](const Candidate& c) { return c.result && key_of(c.layout) == key_of(simple->layout); });
  search.simple = static_cast<std::size_t>(same - search.candidates.begin());
  if (same == search.candidates.end()) search.candidates.push_back(*simple);
}

/// Passes the chosen layout over for the simple one if its lead is unsure.
void prefer_simple(const PlanInputs& inputs, Plan& plan) {
  const Candidate& chosen = plan.search.candidates[plan.search.chosen];
  if (!plan.search.simple || is_simple(chosen.layout)) return;
  plan.simple = plan.search.candidates[*plan.search.simple];
  plan.lead = lead_over(*plan.simple, chosen, features_of(inputs, chosen.layout), PublishedConstants::measured_runs());
  RobustChoice& robust = plan.robust;
  const auto at = std::ranges::find(robust.layouts, *plan.search.simple);
  if (inputs.study.cluster.shared_cores() || !plan.lead.is_unsure() || at == robust.layouts.end()) return;
  plan.passed_over = chosen;
  plan.search.chosen = *at;
  robust.chosen = static_cast<std::size_t>(at - robust.layouts.begin());
  robust.sentence = fmt::format(
      "{} layouts compared in {} scenarios. {} was passed over for the simple alternative, which gives up {:.1f} % at "
      "predicted times and is at worst {:.1f} % behind the best",
      robust.layouts.size(), robust.table.scenarios.size(), layout_label(plan.passed_over->layout, inputs.stack),
      100 * robust.given_up(), 100 * robust.largest());
}

}  // namespace

double RunSchedule::days() const {
  return static_cast<double>(steps) * input.step_s.value / cadence.goodput.value / kDay_s;
}

CadenceInput cadence_input_of(const PlanInputs& inputs, const Layout& layout, const CheckpointTimes& checkpoint,
                              double step_s, const FailurePreset& preset) {
  const StudySpec& s = inputs.study;
  CadenceInput in =
      cadence_input(preset, s.cluster.nodes, {step_s, {Evidence::derived, "simulated step"}}, checkpoint.blocking_s,
                    checkpoint.persist_s, {s.repair_s, {Evidence::assumed, "the study's repair_time"}});
  in.mtbf_s.value *= s.scale.mtbf;
  in.asked_interval_s = s.checkpoint.interval_s;
  in.stragglers = inputs.stragglers;
  in.maintenance = s.maintenance;
  if (inputs.silent_errors) in.silent = {inputs.silent_errors->job_mean_s(s.cluster.nodes), s.silent_errors.verify_s};
  if (s.replica_loss.recover_s > 0 && layout.replicate > layout.optimizer_shard)
    in.tolerance = {state_copies(layout), s.replica_loss.recover_s, s.replica_loss.stall_s,
                    sequences_of_group(s, layout)};
  if (in.tolerance.replicas > 0 && !(in.mtbf_s.value > s.replica_loss.stall_s))
    throw_usage("replica_loss: found a stall of {} and {} between failures, needs failures further apart",
                format_seconds(s.replica_loss.stall_s), format_seconds(in.mtbf_s.value));
  const bool measured = s.checkpoint.rates.read.measured() && s.recovery.empty();
  if (measured || checkpoint.reload_s.value > in.recovery.reload_s.value)
    in.recovery.reload_s = checkpoint.reload_s;  // the preset's cluster may have faster storage
  return in;
}

RunSchedule make_schedule(const PlanInputs& inputs, const Layout& layout, const CheckpointTimes& checkpoint,
                          double step_s, const FailurePreset& preset, const SourcedNumber& slowdown) {
  const StudySpec& s = inputs.study;
  RunSchedule out;
  out.steps = s.steps();
  out.checkpoint = checkpoint;
  out.input = cadence_input_of(inputs, layout, checkpoint, step_s, preset);
  out.input.slowdown = slowdown;
  out.cadence = choose_cadence(out.input);
  const double local_every_s = s.checkpoint.local_every_s, copy_s = out.checkpoint.blocking_s.value;
  const std::int64_t local_steps = std::max<std::int64_t>(1, std::llround(local_every_s / step_s));
  // Otherwise no local save would come between two saves.
  if (local_every_s > 0 && local_steps < out.cadence.interval_steps) {
    out.input.local = {local_steps, copy_s, copy_s,
                       s.checkpoint.local_survival};  // local copies are loaded from host memory
    out.cadence = choose_cadence(out.input);
  }
  if (s.spare_nodes)
    out.cadence.spares = {static_cast<double>(*s.spare_nodes), {Evidence::assumed, "the study's spare_nodes"}};
  return out;
}

void check_schedule(const PlanInputs& inputs) {
  Layout one_copy;  // a single copy of the state: nothing to broadcast, so nothing is simulated
  one_copy.shard = inputs.study.gpus;
  RunSchedule schedule = make_schedule(inputs, one_copy, checkpoint_times(inputs, one_copy), 1, inputs.failures);
  if (auto& slow = schedule.input.stragglers; slow && slow->step_factor.value == 0) slow->step_factor.value = 1;
  simulate_cadence(schedule.input, schedule.cadence, 1, 1, inputs.study.seed);
}

Plan make_plan(const PlanInputs& inputs, const SearchProgress& progress, std::int64_t traces) {
  check_schedule(inputs);
  PlanSearch asked(inputs);
  SearchProblem& problem = asked.problem;
  Plan plan;
  const auto begin = std::chrono::steady_clock::now();
  plan_placements(problem, plan, progress);
  plan.search = search_layouts(problem, progress);
  plan.search_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  add_simple_alternative(problem, plan.search);
  plan.robust = choose_robust(problem, plan.search, progress);
  plan.search.chosen = plan.robust.layouts[plan.robust.chosen];
  prefer_simple(inputs, plan);
  if (progress) progress("simulating runs with failures", 0, 0, "");
  const Candidate& chosen = plan.search.candidates[plan.search.chosen];
  plan.layout = chosen.layout;
  plan.memory = step_memory(problem, plan.layout, true);
  plan.memory_limit_bytes = problem.memory_limit_bytes;
  plan.step = simulate_layout(problem, plan.layout, true);
  judge_placement(problem, plan);
  narrow_by_own_steps(inputs, plan);
  judge_drift(inputs, problem, plan, progress);
  plan.imbalance = mean_imbalance(problem, plan.layout);
  plan.imbalance_p99 = p99_imbalance(problem, plan.layout);
  plan.timed_by = timed_classes(inputs, plan);

  const CheckpointTimes checkpoint = checkpoint_times(inputs, plan.layout);
  const SourcedNumber slowdown = persist_slowdown(inputs, checkpoint, plan.step);
  plan.schedule = make_schedule(inputs, plan.layout, checkpoint, plan.run_step_s(), inputs.failures, slowdown);
  if (auto& slow = plan.schedule.input.stragglers; slow && slow->step_factor.value == 0)
    slow->step_factor = slow_step_factor(problem, plan, slow->node_compute);
  plan.policies = compare_policies(inputs, plan.layout, plan.schedule, traces);
  plan.schedule.input = plan.policies.run.input;
  plan.schedule.cadence = plan.policies.run.cadence;
  plan.runs = simulate_plan(inputs, plan.policies, plan.schedule.steps);
  for (const FailurePreset& preset : inputs.other_failures) {
    const RunSchedule schedule = make_schedule(inputs, plan.layout, checkpoint, plan.run_step_s(), preset, slowdown);
    const PresetRow row{preset.name,
                        preset.title,
                        schedule.input.mtbf_s.value,
                        schedule.cadence.interval_s.value,
                        schedule.cadence.goodput.value,
                        schedule.days()};
    const auto same = [&](const PresetRow& other) { return std::abs(other.days / row.days - 1) < 1e-9; };
    if (std::ranges::none_of(plan.presets, same)) plan.presets.push_back(row);  // the closed form depends on rates only
  }
  plan.cost = estimate_cost(cost_input(inputs, plan));
  plan.next = measure_next(inputs, plan);
  return plan;
}

RunFeatures features_of(const PlanInputs& inputs, const Layout& layout) {
  Plan plan;
  plan.layout = layout;
  return features_of(plan_run(inputs, plan), inputs.study.cluster, inputs.stack);
}

RunSpec plan_run(const PlanInputs& inputs, const Plan& plan) {
  const StudySpec& s = inputs.study;
  RunSpec run;
  run.name = s.name;
  run.model = s.model;
  run.lora = s.lora;
  run.layout = plan.layout;
  for (const SmallerLayout& smaller : plan.smaller) run.smaller_layouts.push_back(smaller.layout);
  run.precision = s.precision.compute;
  run.precisions = s.precision.precisions;
  run.device = s.cluster.shared_cores() ? DeviceKind::cpu : DeviceKind::cuda;
  run.steps = plan.schedule.steps;
  run.seq = s.seq;
  run.global_batch = s.global_batch;
  run.dataset.use_folder(s.data);
  run.save_interval = plan.schedule.cadence.interval_steps;
  return run;
}

}  // namespace wt
