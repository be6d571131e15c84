#include "planner/plan/plan_search.hpp"

#include <cmath>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "planner/cadence/cadence_formulas.hpp"
#include "planner/plan/plan_cost.hpp"
#include "planner/search/search_evaluate.hpp"
#include "sim/program/compose/restore.hpp"

namespace wt {
namespace {

/// Least state per rank over an equal share. Padding and duplicates only add; parameters outside of layers remove a
/// little.
constexpr double kLeastOfAShare = 0.95;

CheckpointTimes times_of(const CheckpointSeconds& seconds, double broadcast_s) {
  CheckpointTimes t;
  t.blocking_s.value = seconds.blocking, t.persist_s.value = seconds.persist;
  t.reload_s.value = seconds.read + broadcast_s;
  return t;
}

}  // namespace

RunObjective::RunObjective(const PlanInputs& inputs, const SearchProblem& problem)
    : inputs_(inputs), problem_(problem), steps_(as_double(inputs.study.steps())) {
  const StudySpec& s = inputs.study;
  const double share = kLeastOfAShare * s.checkpoint.bytes_per_parameter * as_double(s.model.total_parameters());
  const StateParts fewest{share / as_double(s.gpus), share / as_double(s.cluster.nodes), s.cluster.nodes,
                          s.cluster.gpus_per_node};
  Layout one;  // with one replica, any failure stops the job
  one.shard = s.gpus;
  const CadenceInput in = cadence_input_of(inputs, one, times_of(checkpoint_seconds(s, fewest), 0), 1, inputs.failures);
  if (s.replica_loss.recover_s == 0)
    best_goodput_ = goodput_at(in, std::max(in.persist_s.value, exact_interval(in.blocking_s.value, in.mtbf_s.value)),
                               in.mtbf_s.value);
  if (s.prefer != Prefer::energy) return;
  if (!s.prices || !s.prices->power)
    throw_usage("plan: found prefer: energy without prices of {}; needs a map prices in the cluster or the study",
                s.cluster.name);
  const PowerSpec& power = *s.prices->power;
  const double spares = s.spare_nodes ? as_double(*s.spare_nodes) : choose_cadence(in).spares.value;
  const double pue = s.prices->pue ? s.prices->pue->middle() : 1;
  idle_W_ =
      pue * (as_double(s.gpus) * power.idle_W.middle() + (as_double(s.cluster.nodes) + spares) * power.host_W.middle() +
             spares * as_double(s.cluster.gpus_per_node) * power.idle_W.middle());
  compute_W_ = pue * as_double(s.gpus) * (power.compute_W.middle() - power.idle_W.middle());
  communicate_W_ = pue * as_double(s.gpus) * (power.communicate_W.middle() - power.idle_W.middle());
}

RunObjective::Protection& RunObjective::protection_of(const Layout& l) const {
  const Key key{l.pipeline,     l.virtual_stages,  static_cast<std::int64_t>(l.schedule),
                l.shard,        l.optimizer_shard, l.replicate,
                l.tensor,       l.expert,          l.slots(inputs_.study.model),
                l.whole_experts};
  const auto [entry, fresh] = known_.try_emplace(key);
  Protection& p = entry->second;
  if (!fresh) return p;
  const StudySpec& s = inputs_.study;
  p.seconds = checkpoint_seconds(s, state_parts(l, state_elements_of_stages(s.model, with_stack_chunks(problem_, l)),
                                                s.checkpoint.bytes_per_parameter, s.cluster.gpus_per_node));
  p.quickest = protected_input(l, p.seconds, 0);
  p.interval_s = wanted_interval_s(p.quickest);
  return p;
}

CadenceInput RunObjective::protected_input(const Layout& l, const CheckpointSeconds& seconds,
                                           double broadcast_s) const {
  const CheckpointSpec& checkpoint = inputs_.study.checkpoint;
  CadenceInput in = cadence_input_of(inputs_, l, times_of(seconds, broadcast_s), 1, inputs_.failures);
  if (checkpoint.local_every_s > 0 && checkpoint.local_every_s < wanted_interval_s(in))
    in.local = {std::max<std::int64_t>(1, std::llround(checkpoint.local_every_s / in.step_s.value)), seconds.blocking,
                seconds.blocking, checkpoint.local_survival};
  return in;
}

double RunObjective::days(const CadenceInput& in, double interval_s, double step_s) const {
  return steps_ * step_s / goodput_at(in, std::max(interval_s, step_s), in.mtbf_s.value) / kDay_s;
}

double RunObjective::in_unit(double days, double step_J) const {
  if (!energy()) return days;
  constexpr double kJ_per_kWh = 3.6e6;
  return (days * kDay_s * idle_W_ + steps_ * step_J) / kJ_per_kWh;
}

double RunObjective::least_J(const LeastStep& step) const {
  const double other_W = std::min(compute_W_, communicate_W_);
  return step.step_s * other_W + std::min(step.computing_s, step.step_s) * (compute_W_ - other_W);
}

double RunObjective::of(const Layout& layout, const Simulated& step) const {
  Protection& p = protection_of(layout);
  if (!p.whole) {
    const bool copies = Mesh(layout).size(state_copies_axis(layout)) > 1;
    const double bytes = inputs_.study.checkpoint.bytes_per_parameter;
    p.whole = protected_input(layout, p.seconds, copies ? restore_broadcast_s(problem_, layout, bytes) : 0);
  }
  const NodeWatts beyond_idle{.compute = compute_W_, .communicate = communicate_W_};
  return in_unit(days(*p.whole, p.interval_s, step.step_s), step.step_s * beyond_idle.of_gpu(step_use(step)));
}

double RunObjective::least(const Layout& layout, const LeastStep& step) const {
  const Protection& p = protection_of(layout);
  return in_unit(days(p.quickest, p.interval_s, step.step_s), least_J(step));
}

double RunObjective::least_of_any(const LeastStep& step) const {
  return in_unit(steps_ * step.step_s / best_goodput_ / kDay_s, least_J(step));
}

}  // namespace wt
