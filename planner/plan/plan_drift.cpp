#include "planner/plan/plan_drift.hpp"

#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"

namespace wt {
namespace {

std::string note_of(const ReplacementStudy& study) {
  const ReplacementOption &kept = study.options[0], &best = study.options[study.chosen];
  const std::string judged =
      fmt::format("Judged on {} windows of {} steps, each with a placement planned on loads before it.", study.windows,
                  study.window_steps);
  if (study.chosen == 0)
    return fmt::format("Loads drift, and placing experts anew does not pay: the first placement stays. {}", judged);
  return fmt::format(
      "Loads drift: place experts anew every {} steps. A move costs {}; the mean step falls from {} to {}, moves "
      "included, {:.2f} % of the time. {}",
      best.every_steps, format_seconds(best.move_s), format_seconds(kept.with_moves_s),
      format_seconds(best.with_moves_s), 100 * study.gain(), judged);
}

}  // namespace

double move_seconds(const SearchProblem& problem, const Layout& layout, const Placement& from, const Placement& to) {
  const ModelSpec& model = problem.model;
  const std::int64_t cut = layout.whole_experts ? 1 : layout.tensor;
  const double experts =
      experts_moved(from, to, model.experts, model.blocks(), layout.expert) / as_double(layout.pipeline);
  const double bytes = experts * problem.stack.memory.optimizer_bytes * as_double(model.expert_parameters()) /
                       as_double(cut * layout.expert_shard() * layout.optimizer_shard);
  const ClusterSpec& cluster = problem.cluster;
  const bool inside = layout.expert * cut <= cluster.gpus_per_node;
  return bytes / (inside ? cluster.nvswitch_Bps : cluster.nic_per_gpu_Bps());
}

namespace {

/// The mean step over the windows, with experts that stay where the layout has them.
double mean_step_s(const std::vector<LoadScenario>& windows, const ReplacementCosts& costs, const Layout& layout) {
  double sum_s = 0;
  for (const LoadScenario& loads : windows) sum_s += costs.step_s(loads, layout.placement);
  return sum_s / as_double(static_cast<std::int64_t>(windows.size()));
}

/// Why experts cannot move; "" if they can.
std::string no_moves(const SearchProblem& problem) {
  if (problem.cluster.shared_cores())
    return "Loads drift; moves of experts between ranks of one host are not timed: experts stay where they are.";
  if (problem.stack.layouts.placement == PlacementSupport::none)
    return "Loads drift, and the trainer cannot place experts: they stay where they are.";
  return "";
}

}  // namespace

void judge_drift(const PlanInputs& inputs, const SearchProblem& problem, Plan& plan, const SearchProgress& progress) {
  if (!inputs.drift) return;
  const Layout& layout = plan.layout;
  if (layout.expert == 1) {
    plan.drift_note = "Loads drift, and every rank gathers all experts of a layer, so that nothing has to move.";
    return;
  }
  std::int64_t simulated = 0;
  const ReplacementCosts costs{.step_s =
                                   [&](const LoadScenario& loads, const Placement& placement) {
                                     if (progress) progress("simulating drifting loads", simulated++, 0, loads.name);
                                     SearchProblem window = problem;
                                     window.scenarios = {loads};
                                     Layout placed = layout;
                                     placed.placement = placement;
                                     return simulate_layout(window, placed).step_s;
                                   },
                               .move_s =
                                   [&](const Placement& from, const Placement& to) {
                                     return inputs.study.drift.pause_s + move_seconds(problem, layout, from, to);
                                   }};
  const auto counts = [&](double step_s) {
    plan.drift = step_s / plan.step.step_s;
    plan.drift_note += fmt::format(" The finish date counts a step of {} instead of {}.", format_seconds(step_s),
                                   format_seconds(plan.step.step_s));
  };
  plan.drift_note = no_moves(problem);
  if (!plan.drift_note.empty()) return counts(mean_step_s(inputs.drift->loads, costs, layout));
  const SlotOptions slots{.further = layout.slots_per_rank(problem.model) - problem.model.experts / layout.expert};
  plan.replacement = study_replacement(*inputs.drift, problem.model.blocks(), layout.expert, slots, costs);
  plan.drift_note = note_of(*plan.replacement);
  counts(plan.replacement->options[plan.replacement->chosen].with_moves_s);
}

}  // namespace wt
