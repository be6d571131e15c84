#include "planner/plan/plan_runs.hpp"

#include <algorithm>

namespace wt {
namespace {

constexpr double kFailuresOfAllRuns = 1e5;  // in all runs on traces together; with more failures there are fewer runs

/// At least as many runs as in the comparison.
std::int64_t traced_runs_of(const StudySpec& s, const PolicyTable& policies) {
  const double failures = std::max(1.0, policies.rows[policies.chosen].outcome->failures);
  return std::clamp(static_cast<std::int64_t>(kFailuresOfAllRuns / failures), std::min(policies.traces, s.runs),
                    s.runs);
}

bool spread(const SourcedTime& time) { return time.sigma() > 0; }

/// Whether all nodes fail at the same rate, and all times are constant.
bool rates_alone(const PlanInputs& inputs, const RecoveryTimes& r) {
  const auto node_alone = [](const FailureClass& c) {
    return c.domain == FaultDomain::node && c.shape == 1 && c.bad.share == 0;
  };
  return inputs.faults.empty() && std::ranges::all_of(inputs.failures.failures, node_alone) &&
         std::ranges::none_of(inputs.failures.planned, spread, &FailureClass::duration) && !spread(r.detect_s) &&
         !spread(r.reschedule_s) && !spread(r.restart_s) && !spread(r.reload_s);
}

/// Hot spares need no rescheduling and no process start.
CadenceInput activated(CadenceInput in, const HotSpareSpec& hot) {
  in.recovery.reschedule_s = SourcedNumber{hot.activate_s, hot.evidence};
  in.recovery.restart_s = SourcedNumber{0, {Evidence::derived, "the processes of hot spares are up"}};
  return in;
}

}  // namespace

PlanRuns simulate_plan(const PlanInputs& inputs, const PolicyTable& policies, std::int64_t steps) {
  const StudySpec& s = inputs.study;
  const ChosenPolicy& chosen = policies.run;
  const std::string& name = chosen.traced.name;
  PlanRuns out;
  out.on_traces = !rates_alone(inputs, chosen.input.recovery) || chosen.traced.after_further_losses ||
                  (name != kRestartFromStorage && name != kHotSpares);
  if (out.on_traces) {
    out.scenario = chosen.traced.scenario;
    out.one = traced_runs(policies.faults, chosen.traced);
  } else {
    out.scenario =
        run_scenario(name == kHotSpares ? activated(chosen.input, s.hot_spares) : chosen.input, chosen.cadence, steps);
    out.one = seeded_runs(s.seed);
  }
  out.distribution = simulate_runs(out.scenario, out.on_traces ? traced_runs_of(s, policies) : s.runs, out.one);
  return out;
}

}  // namespace wt
