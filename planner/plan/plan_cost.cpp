#include "planner/plan/plan_cost.hpp"

#include "configs/base/hash.hpp"
#include "sim/replay/step_shares.hpp"

namespace wt {

StepUse step_use(const Simulated& step) { return {step_shares(step.totals, step.step_s), step.low_s, step.high_s}; }

CostInput cost_input(const PlanInputs& inputs, const Plan& plan) {
  const StudySpec& s = inputs.study;
  CostInput in;
  in.scenario = plan.runs.scenario;
  in.step = step_use(plan.step);
  in.step.low_s *= plan.drift, in.step.high_s *= plan.drift;
  in.runs = plan.runs.distribution.runs;
  in.run = plan.runs.one;
  in.step_seed = s.seed;
  in.price_seed = hash_of(s.name) ^ s.seed;
  in.gpus = s.gpus;
  in.nodes = s.cluster.nodes;
  in.spare_nodes = static_cast<std::int64_t>(plan.schedule.cadence.spares.value);
  in.spare_gpus = in.spare_nodes * s.cluster.gpus_per_node;
  const double checkpoint_bytes = plan.schedule.checkpoint.total_bytes;
  in.kept_bytes = static_cast<double>(RunSpec{}.keep_checkpoints) * checkpoint_bytes;
  in.taken_bytes = checkpoint_bytes;
  in.prices = s.prices;
  return in;
}

}  // namespace wt
