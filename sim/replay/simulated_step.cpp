#include "sim/replay/simulated_step.hpp"

#include <algorithm>
#include <cmath>

namespace wt {
namespace {

constexpr std::int64_t kSteady = 2;  // without a pipeline, later microbatches all take equally long

void extend_total(OpClassTotal& total, const std::vector<OpClassTotal>& before, double more) {
  const auto same = std::ranges::find_if(before, [&](const OpClassTotal& b) {
    return b.action == total.action && b.direction == total.direction && b.group == total.group;
  });
  const OpClassTotal none, &earlier = same == before.end() ? none : *same;
  total.count += std::llround(more * static_cast<double>(total.count - earlier.count));
  total.busy_s += more * std::max(0.0, total.busy_s - earlier.busy_s);
  total.exposed_s += more * std::max(0.0, total.exposed_s - earlier.exposed_s);
}

}  // namespace

SimulatedStep simulated_step(const StepQuestion& question, const OpCost& cost, const StepOptions& how) {
  const auto& [model, layout, whole] = question.program;
  const RoutingSource& routing = question.routing;
  ProgramOptions options = whole;
  options.tensor_traffic = cost.traits().tensor_traffic;
  const std::int64_t all = options.step_microbatches = options.microbatches;
  const auto replayed = [&, &model = model, &layout = layout](std::int64_t count, const ReplayOptions& asked) {
    options.microbatches = count;
    SimulatedStep out{build_program_set(model, layout, options), {}, all, count};
    out.replay = replay(out.programs, layout, model, question.cluster, cost, routing, asked);
    return out;
  };
  // A pipeline is full with as many microbatches as stages; with chunks the number must be a multiple of the stages.
  // Overlapped passes need twice as many, because the first forward passes run alone.
  const bool beside = layout.exchange_overlap || layout.schedule == Schedule::dualpipe_v;
  const std::int64_t stages = layout.pipeline, period = stages > 1 ? stages : 1,
                     full = stages == 1 ? kSteady : stages * (beside ? 2 : 1);
  const bool uneven = options.last_microbatch != 0 && options.last_microbatch != layout.microbatch;
  SimulatedStep out;
  if (how.every_microbatch || uneven || !routing.same_in_every_microbatch() || all <= full + period) {
    out = replayed(all, how.replay);
  } else {
    ReplayOptions sums = how.replay;
    sums.timelines = false;
    const ReplayResult before = replayed(full, sums).replay;
    out = replayed(full + period, how.replay);
    ReplayResult& r = out.replay;
    r.work += before.work;
    const double more = static_cast<double>(all - full - period) / static_cast<double>(period);
    const double low = r.low_s / r.step_s, high = r.high_s / r.step_s;  // of these microbatches, as of all
    for (double ReplayResult::*part : {&ReplayResult::step_s, &ReplayResult::exposed_s, &ReplayResult::slowed_s})
      r.*part += more * std::max(0.0, r.*part - before.*part);
    r.low_s = low * r.step_s, r.high_s = high * r.step_s;
    for (OpClassTotal& total : r.totals) extend_total(total, before.totals, more);
    for (std::size_t i = 0; i < r.evidence_s.size(); ++i)
      r.evidence_s[i] += more * std::max(0.0, r.evidence_s[i] - before.evidence_s[i]);
    for (std::size_t i = 0; i < r.lane_busy_s.size(); ++i)
      r.lane_busy_s[i] += more * std::max(0.0, r.lane_busy_s[i] - before.lane_busy_s[i]);
  }
  TimeEstimate once = cost.traits().once_a_step;
  on_kind(how.replay.off_by, 0).widen(once);
  out.replay.step_s += once.seconds;
  out.replay.low_s += once.low_s;
  out.replay.high_s += once.high_s;
  const EvidenceShares shares = once.shares();
  for (std::size_t i = 0; i < shares.size(); ++i) out.replay.evidence_s[i] += once.seconds * shares[i];
  return out;
}

}  // namespace wt
