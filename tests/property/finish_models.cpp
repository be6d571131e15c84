// Failures drawn by the running time of the job, and traces of faults by wall clock: where nodes fail at a rate and
// stops are short beside the time between them, runs come to the same days in distribution.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "configs/base/statistics.hpp"
#include "planner/cadence/recovery_formulas.hpp"
#include "sim/months/fault_laws.hpp"
#include "sim/months/policy_runs.hpp"
#include "tests/fixtures/cadence_references.hpp"
#include "tests/fixtures/strike_laws.hpp"

using namespace wt;
using namespace wt::test;

namespace {

constexpr std::int64_t kRuns = 4000;

/// Kolmogorov and Smirnov's distance of two samples of equal size.
double largest_gap(std::vector<double> a, std::vector<double> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  double gap = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double next = std::min(a[i], b[j]);
    while (i < a.size() && a[i] == next) ++i;
    while (j < b.size() && b[j] == next) ++j;
    gap = std::max(gap, std::abs(static_cast<double>(i) - static_cast<double>(j)));
  }
  return gap / static_cast<double>(a.size());
}
/// Of two samples of one law it is larger in one of 100,000 cases.
const double kGap = std::sqrt(std::log(2e5)) / std::sqrt(static_cast<double>(kRuns));

double error_of_mean(const std::vector<double>& values) {
  const double m = mean(values);
  double squares = 0;
  for (const double v : values) squares += (v - m) * (v - m);
  return std::sqrt(squares) / static_cast<double>(values.size());
}

struct Setting {
  std::int64_t nodes = 8;
  RunScenario run;
};

/// A job that is down for at most 1 % of the time between failures, with the spares that leave it waiting for less
/// than one failure in a thousand; planned stops, maintenance and slow nodes in some.
class RandomSettings {
 public:
  Setting next() {
    Setting out{.nodes = static_cast<std::int64_t>(draw(4, 60)), .run = {}};
    RunScenario& s = out.run;
    s.step_s = draw(1, 20), s.interval_steps = static_cast<std::int64_t>(draw(5, 60));
    s.blocking_s = draw(0.1, 5), s.persist_s = draw(1, 60);
    s.detect_s = draw(1, 60), s.reschedule_s = draw(1, 60), s.restart_s = draw(1, 60), s.reload_s = draw(1, 60);
    const double down_s = s.detect_s + s.reschedule_s + s.restart_s + s.reload_s;
    s.failures.mean_s = down_s * draw(100, 300);
    s.steps = std::llround(draw(5, 40) * s.failures.mean_s / s.step_s);
    s.repair_s = s.failures.mean_s * draw(0.05, 0.5);
    for (s.spares = 0; erlang_b(s.spares + 1, s.repair_s / s.failures.mean_s) > 1e-4;) ++s.spares;
    if (drawn_ % 3 == 1) s.planned_mean_s = draw(2, 9) * s.failures.mean_s, s.planned_stop_s = draw(0, 2) * down_s;
    if (drawn_ % 3 == 2) s.maintenance_every_s = draw(3, 9) * s.failures.mean_s, s.maintenance_s = down_s;
    if (drawn_ % 2)
      s.stragglers = {draw(3, 9) * s.failures.mean_s, draw(1.05, 1.5), draw(0.01, 0.1) * s.failures.mean_s};
    ++drawn_;
    return out;
  }

 private:
  double draw(double low, double high) { return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53; }
  std::mt19937_64 engine_{17};
  int drawn_ = 0;
};

/// The setting on traces: its failures are of nodes.
FaultTraces traces_of(const Setting& setting, FaultLaw failures = node_failures(0)) {
  const RunScenario& s = setting.run;
  const EntityTree tree{.nodes = setting.nodes, .spares = s.spares};
  failures.mean_s = s.failures.mean_s * static_cast<double>(setting.nodes);
  FaultLaws laws{.laws = {failures}, .scheduled = {}, .event_of = {}};
  if (s.planned_mean_s > 0)
    laws.laws.push_back({.effect = FaultLaw::Effect::planned,
                         .domain = FaultDomain::all,
                         .mean_s = s.planned_mean_s,
                         .lasts_s = s.planned_stop_s});
  add_run_laws(s, tree, laws);
  return {tree, laws.laws, {}, 23};
}

}  // namespace

TEST_CASE("failures of nodes at a rate: by running time and on traces a run takes as long, in distribution") {
  RandomSettings settings;
  for (int i = 0; i < 12; ++i) {
    const Setting setting = settings.next();
    const RunDistribution by_time = simulate_runs(setting.run, kRuns, 29),
                          traced = simulate_runs(setting.run, kRuns, traced_runs(traces_of(setting), {}));
    INFO("setting " << i << ", " << setting.nodes << " nodes, " << setting.run.spares << " spares");
    CHECK(by_time.finished == kRuns);
    CHECK(traced.finished == kRuns);
    CHECK(largest_gap(by_time.wall_s, traced.wall_s) < kGap);
    const double error_s = std::hypot(error_of_mean(by_time.wall_s), error_of_mean(traced.wall_s));
    CHECK(std::abs(by_time.mean_s - traced.mean_s) < 4 * error_s);
  }
}

TEST_CASE("with bad nodes they do not: the test above can tell") {
  RandomSettings settings;
  Setting setting = settings.next();
  setting.run.spares += 3;
  const RunDistribution by_time = simulate_runs(setting.run, kRuns, 29);
  const FaultLaw bad{.bad_share = 0.05, .bad_factor = 100};
  const RunDistribution traced = simulate_runs(setting.run, kRuns, traced_runs(traces_of(setting, bad), {}));
  CHECK(largest_gap(by_time.wall_s, traced.wall_s) > kGap);
}

TEST_CASE("runs of a policy on traces are those of the comparison, less what it loses beside") {
  RandomSettings settings;
  const Setting setting = settings.next();
  const FaultTraces faults = traces_of(setting);
  TracedPolicy policy{"a", setting.run, {}}, charged = policy;
  charged.after_further_losses = [](double goodput) { return goodput / 2; };
  const std::vector<PolicyOutcome> compared = replay_policies(faults, {policy, charged}, 20);
  const RunDistribution runs = simulate_runs(setting.run, 60, traced_runs(faults, policy)),
                        less = simulate_runs(setting.run, 60, traced_runs(faults, charged));
  CHECK(std::vector(runs.wall_s.begin(), runs.wall_s.begin() + 20) == compared[0].wall_s);
  CHECK(std::vector(less.wall_s.begin(), less.wall_s.begin() + 20) == compared[1].wall_s);
  CHECK(less.mean_s == Approx(2 * runs.mean_s));
  const auto lost = static_cast<std::size_t>(Bucket::wasted_progress);
  CHECK(less.bucket_mean_s[lost] - runs.bucket_mean_s[lost] == Approx(runs.mean_s));
  policy.with_failures = false;
  CHECK(simulate_runs(setting.run, 60, traced_runs(faults, policy)).failures == 0);
}
