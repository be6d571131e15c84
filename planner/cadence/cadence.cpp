#include "planner/cadence/cadence.hpp"

#include <algorithm>
#include <cmath>

#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"
#include "planner/cadence/cadence_formulas.hpp"
#include "planner/cadence/recovery_formulas.hpp"

namespace wt {
namespace {

void check(const CadenceInput& in) {
  const auto need = [](const char* what, double value, bool positive) {
    if (!std::isfinite(value) || value < 0 || (positive && value == 0))
      throw_usage("cadence: {}: found {} s, needs a finite time {} 0", what, value, positive ? ">" : ">=");
  };
  need("step time", in.step_s.value, true);
  need("mean time between failures", in.mtbf_s.value, true);
  need("blocking save", in.blocking_s.value, false);
  need("persist", in.persist_s.value, false);
  if (!(in.slowdown.value >= 0 && in.slowdown.value < 1))
    throw_usage("cadence: training loses a share of {} while a save persists, needs 0 to below 1", in.slowdown.value);
  need("detect", in.recovery.detect_s.value, false);
  need("reschedule", in.recovery.reschedule_s.value, false);
  need("restart", in.recovery.restart_s.value, false);
  need("reload", in.recovery.reload_s.value, false);
  need("repair", in.repair_s.value, false);
  need("interval", in.asked_interval_s, false);
  need("silent errors", in.silent.mean_s, false);
  need("verification", in.silent.verify_s, false);
  if (in.local.interval_steps > 0 && !(in.local.survival >= 0 && in.local.survival < 1))
    throw_usage("cadence: local saves survive a share of {} of failures, needs 0 to below 1", in.local.survival);
  if (in.nodes < 1) throw_usage("cadence: found {} nodes, needs at least 1", in.nodes);
}

std::string cite(const char* what, const SourcedNumber& n) {
  return fmt::format("{} {} ({}: {})", what, format_seconds(n.value), to_string(n.evidence.kind), n.evidence.source);
}

/// The save cost and MTBF of O3, with the first-order additions of O7 and O8. With local saves: the cost of a save
/// beyond a local one, and only failures that local copies do not survive. A silent error is found by a save of either
/// level and loses the work since the last one. Every save is verified. So silent errors depend on the local interval
/// alone. Without local saves: a silent error loses a whole interval, a failure half of one, and verification is part
/// of the save.
struct Weighed {
  double save_s, mtbf_s;
};
Weighed weighed(const CadenceInput& in) {
  if (in.local.interval_steps > 0)
    return {std::max(0.0, in.save_s() - in.local.blocking_s), in.mtbf_s.value / (1 - in.local.survival)};
  const double silent = in.silent.mean_s > 0 ? 2 * in.mtbf_s.value / in.silent.mean_s : 0;
  return {in.save_s() + in.silent.verify_s, in.mtbf_s.value / (1 + silent)};
}

double optimal_interval(const CadenceInput& in) {
  const Weighed w = weighed(in);
  return exact_interval(w.save_s, w.mtbf_s);
}

/// The longest interval whose goodput is within kGoodputForLessWriting of that of `best`.
double frugal_interval(const CadenceInput& in, double best) {
  const Weighed w = weighed(in);
  return longest_interval(w.save_s, w.mtbf_s, best, kGoodputForLessWriting);
}

/// The reason for the interval, as a phrase.
std::string reason_of(const CadencePlan& plan, const CadenceInput& in) {
  if (plan.persist_bound && in.asked_interval_s > 0) return "the persist time, which is above what is asked for";
  if (in.asked_interval_s > 0) return fmt::format("asked for: {}", format_seconds(in.asked_interval_s));
  const char* best = plan.persist_bound            ? "the persist time, which is above the exact optimum"
                     : in.local.interval_steps > 0 ? "minimiser for failures that local saves do not survive"
                     : in.silent.mean_s > 0        ? "minimiser for failures, and silent errors twice"
                                                   : "exact minimiser for exponential failures";
  return fmt::format("the longest with {:g} % of the goodput of: {}", 100 * (1 - kGoodputForLessWriting), best);
}

double downtime_s(const CadenceInput& in) { return in.recovery.detect_s.value + in.recovery.reschedule_s.value; }

/// Goodput if stops of the whole job are `mtbf_s` apart.
double stopped_goodput(const CadenceInput& in, double interval_s, double mtbf_s) {
  return persisted_goodput(mtbf_s, interval_s, in.save_s(), in.persist_s.value, downtime_s(in),
                           in.recovery.restart_s.value + in.recovery.reload_s.value);
}

}  // namespace

double wanted_interval_s(const CadenceInput& in) {
  const double local_s = static_cast<double>(in.local.interval_steps) * in.step_s.value;
  if (in.asked_interval_s > 0) return std::max({in.persist_s.value, local_s, in.asked_interval_s});
  return frugal_interval(in, std::max({in.persist_s.value, local_s, optimal_interval(in)}));
}

double goodput_at(const CadenceInput& in, double interval_s, double mtbf_s) {
  const ReplicaTolerance& t = in.tolerance;
  const double stops_s = t.replicas > 0 ? replicas_lost_mtbf(t.replicas, mtbf_s, t.recover_s + t.stall_s) : mtbf_s;
  const double each_s = t.stall_s + in.step_s.value / 2;  // half a step is repeated
  const double alive = t.replicas > 0 ? replica_goodput(t.replicas, mtbf_s, t.recover_s, each_s, t.microbatches) : 1;
  return alive * stopped_goodput(in, interval_s, stops_s);
}

CadencePlan choose_cadence(const CadenceInput& in) {
  check(in);
  const double mtbf = in.mtbf_s.value, step = in.step_s.value;
  const double optimum = in.asked_interval_s > 0 ? in.asked_interval_s : optimal_interval(in);
  const double floor_s = std::max(in.persist_s.value, step);

  CadencePlan plan;
  const std::int64_t local = in.local.interval_steps;
  plan.persist_bound =
      in.persist_s.value > std::max(optimum, static_cast<double>(std::max<std::int64_t>(1, local)) * step);
  const auto fewest = static_cast<std::int64_t>(std::ceil(floor_s / step * (1 - 1e-12)));
  const auto below = std::max(fewest, static_cast<std::int64_t>(std::floor(optimum / step)));
  const auto above = std::max(fewest, below + 1);
  const bool up = stopped_goodput(in, static_cast<double>(above) * step, mtbf) >
                  stopped_goodput(in, static_cast<double>(below) * step, mtbf);
  plan.interval_steps = up ? above : below;
  const auto no_shorter = [&](std::int64_t steps, std::int64_t unit) {  // a multiple of `unit` steps
    const double longest = frugal_interval(in, static_cast<double>(steps) * step) / (static_cast<double>(unit) * step);
    return std::max(steps, static_cast<std::int64_t>(std::floor(longest * (1 + 1e-12))) * unit);
  };
  if (in.asked_interval_s > 0)
    plan.interval_steps = std::max<std::int64_t>(fewest, std::llround(optimum / step));
  else if (local == 0)
    plan.interval_steps = no_shorter(plan.interval_steps, 1);
  if (local > 0)
    plan.interval_steps = std::max<std::int64_t>((fewest + local - 1) / local,
                                                 std::llround(optimum / (static_cast<double>(local) * step))) *
                          local;
  if (local > 0 && in.asked_interval_s == 0) plan.interval_steps = no_shorter(plan.interval_steps, local);
  const double interval = static_cast<double>(plan.interval_steps) * step;

  const std::string inputs = fmt::format(
      "{}; {}; {}{}; {}", cite("MTBF", in.mtbf_s), cite("blocking save", in.blocking_s), cite("persist", in.persist_s),
      in.slowdown.value > 0 ? fmt::format(", in which training loses {:.2g} % ({}: {})", 100 * in.slowdown.value,
                                          to_string(in.slowdown.evidence.kind), in.slowdown.evidence.source)
                            : "",
      cite("step", in.step_s));
  plan.interval_s = {
      interval,
      {Evidence::derived,
       fmt::format(
           "{}{}; from {}", reason_of(plan, in),
           local > 0
               ? fmt::format(
                     ", to the nearest multiple (no shorter than the persist time) of the {} steps between local saves",
                     local)
               : " in whole steps",
           inputs)}};
  const std::string recovery =
      fmt::format("{}; {}; {}; {}", cite("detect", in.recovery.detect_s), cite("reschedule", in.recovery.reschedule_s),
                  cite("restart", in.recovery.restart_s), cite("reload", in.recovery.reload_s));
  plan.goodput = {
      goodput_at(in, interval, mtbf),
      {Evidence::derived, "persisted work an uptime over uptime and downtime; from " + inputs + "; " + recovery}};
  plan.spares = {static_cast<double>(spares_needed(in.nodes, 1 / (mtbf * static_cast<double>(in.nodes)),
                                                   in.repair_s.value, in.spare_confidence)),
                 {Evidence::derived,
                  fmt::format("nodes in repair are Poisson, {:g} % confidence; from {}; {}", 100 * in.spare_confidence,
                              cite("repair", in.repair_s), cite("MTBF", in.mtbf_s))}};
  return plan;
}

}  // namespace wt
