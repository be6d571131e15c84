#include "sim/months/policy_runs.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/number.hpp"
#include "configs/spec/support/statistics.hpp"

namespace wt {
namespace {

constexpr std::int64_t kFewestTraces = 5;

double deviation(const std::vector<double>& values) {
  const double m = mean(values);
  double squares = 0;
  for (const double v : values) squares += (v - m) * (v - m);
  return values.size() > 1 ? std::sqrt(squares / static_cast<double>(values.size() - 1)) : 0;
}

/// What is planned alone, at the same times: laws keep their numbers, which the draws depend on.
std::vector<StrikeLaw> without_failures(std::vector<StrikeLaw> laws) {
  for (StrikeLaw& law : laws)
    if (law.what != StrikeLaw::Strikes::planned) law.mean_s = 0;
  return laws;
}

}  // namespace

double PolicyOutcome::median_goodput() const { return median(goodputs); }
double PolicyOutcome::p10_goodput() const { return quantile(goodputs, 0.1); }
double PolicyOutcome::cv() const { return deviation(goodputs) / mean(goodputs); }
double PolicyOutcome::median_s() const { return median(wall_s); }

std::vector<PolicyOutcome> replay_policies(const EntityTree& tree, const std::vector<StrikeLaw>& laws,
                                           const std::vector<GivenStrike>& given,
                                           const std::vector<TracedPolicy>& policies, std::int64_t runs,
                                           std::uint64_t seed) {
  if (runs < kFewestTraces)
    throw_error(Code::usage, "policies: found {} traces, needs at least {}", runs, kFewestTraces);
  std::vector<GivenStrike> given_planned;
  for (const GivenStrike& strike : given)
    if (laws.at(static_cast<std::size_t>(strike.law)).what == StrikeLaw::Strikes::planned)
      given_planned.push_back(strike);
  std::vector<PolicyOutcome> out(policies.size());
  for (std::int64_t run = 0; run < runs; ++run) {
    FaultTrace trace(tree, laws, given, run_seed(seed, run));
    FaultTrace planned(tree, without_failures(laws), given_planned, run_seed(seed, run));
    for (std::size_t i = 0; i < policies.size(); ++i) {
      const TracedPolicy& p = policies[i];
      const RunOutcome one = replay_trace(p.scenario, p.continuation, p.fails ? trace : planned);
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
