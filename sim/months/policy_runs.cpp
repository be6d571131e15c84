#include "sim/months/policy_runs.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/statistics.hpp"

namespace wt {
namespace {

constexpr std::int64_t kFewestTraces = 5;

double deviation(const std::vector<double>& values) {
  const double m = mean(values);
  double squares = 0;
  for (const double v : values) squares += (v - m) * (v - m);
  return values.size() > 1 ? std::sqrt(squares / static_cast<double>(values.size() - 1)) : 0;
}

/// The planned stops alone, at the same times. Laws keep their numbers, because the draws depend on them.
FaultTraces without_failures(FaultTraces faults) {
  const auto planned = [](const FaultLaw& law) { return law.effect == FaultLaw::Effect::planned; };
  std::erase_if(faults.scheduled, [&](const ScheduledFault& fault) {
    return !planned(faults.laws.at(static_cast<std::size_t>(fault.law)));
  });
  for (FaultLaw& law : faults.laws)
    if (!planned(law)) law.mean_s = 0;
  return faults;
}

/// Adds wasted steps to the run, until its goodput is `goodput`.
void lose_down_to(RunOutcome& run, double goodput) {
  constexpr double kLongest_ns = 1e9 * kLongest_s;
  const double wall_ns = static_cast<double>(run.wall_ns) * run.goodput() / goodput;
  run.finished = run.finished && wall_ns < kLongest_ns;
  const std::int64_t lost = std::llround(std::min(wall_ns, kLongest_ns)) - run.wall_ns;
  run.buckets_ns[static_cast<std::size_t>(Bucket::wasted_progress)] += lost;
  run.wall_ns += lost;
}

RunOutcome replay(const TracedPolicy& policy, const RunScenario& scenario, FaultTrace& trace) {
  RunOutcome out = replay_trace(scenario, policy.continuation, trace);
  if (policy.after_further_losses && out.goodput() > 0) lose_down_to(out, policy.after_further_losses(out.goodput()));
  return out;
}

}  // namespace

double PolicyOutcome::median_goodput() const { return median(goodputs); }
double PolicyOutcome::p10_goodput() const { return quantile(goodputs, 0.1); }
double PolicyOutcome::cv() const { return deviation(goodputs) / mean(goodputs); }
double PolicyOutcome::median_s() const { return median(wall_s); }

NumberedRun traced_runs(FaultTraces faults, TracedPolicy policy) {
  if (!policy.with_failures) faults = without_failures(std::move(faults));
  return [faults = std::move(faults), policy = std::move(policy)](const RunScenario& scenario, std::int64_t run) {
    FaultTrace trace = faults.trace(run);
    return replay(policy, scenario, trace);
  };
}

std::vector<PolicyOutcome> replay_policies(const FaultTraces& faults, const std::vector<TracedPolicy>& policies,
                                           std::int64_t runs) {
  if (runs < kFewestTraces) throw_usage("policies: found {} traces, needs at least {}", runs, kFewestTraces);
  const FaultTraces planned_faults = without_failures(faults);
  std::vector<PolicyOutcome> out(policies.size());
  for (std::int64_t run = 0; run < runs; ++run) {
    FaultTrace trace = faults.trace(run), planned = planned_faults.trace(run);
    for (std::size_t i = 0; i < policies.size(); ++i) {
      const TracedPolicy& p = policies[i];
      const RunOutcome one = replay(p, p.scenario, p.with_failures ? trace : planned);
      out[i].goodputs.push_back(one.goodput());
      out[i].wall_s.push_back(one.wall_s());
      out[i].finished += one.finished;
      out[i].failures += as_double(one.failures) / as_double(runs);
      out[i].without_spare += as_double(one.without_spare) / as_double(runs);
    }
  }
  return out;
}

PairedDifference paired_difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> differences(a.size());
  std::ranges::transform(a, b, differences.begin(), std::minus<>());
  const double m = mean(differences);
  const boost::math::students_t law(as_double(std::ssize(a)) - 1);
  const double half =
      boost::math::quantile(law, 0.975) * deviation(differences) / std::sqrt(static_cast<double>(a.size()));
  return {m, m - half, m + half};
}

}  // namespace wt
