// Failures of nodes with a clock each: O14's minimum of N fresh Weibull laws, and the drift to a Poisson process as
// failures renew one node at a time.
#include <catch2/catch.hpp>
#include <cmath>

#include "configs/base/error.hpp"
#include "configs/base/hash.hpp"
#include "planner/cadence/cadence_formulas.hpp"
#include "sim/months/run_events.hpp"
#include "tests/fixtures/cadence_references.hpp"
#include "tests/fixtures/stepped_runs.hpp"

using namespace wt;
using namespace wt::test;

namespace {

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

/// Weibull survival by its scale, written apart from the simulator's mean.
double survival(double t, double shape, double scale) { return std::exp(-std::pow(t / scale, shape)); }

double scale_of(double mean, double shape) { return mean / std::tgamma(1 + 1 / shape); }

/// Share of gaps longer than t between failures of N nodes that have long been failing: the one that just failed is new
/// and lives longer than t, and so does what is left of each of the others' lives (their equilibrium law).
double gap_survival(double t, double shape, double node_mean, std::int64_t nodes) {
  const double scale = scale_of(node_mean, shape);
  constexpr int kParts = 5000;
  double integral = 0;  // midpoints, denser near 0 where a shape below 1 has its cusp: x = t u^2
  for (int i = 0; i < kParts; ++i) {
    const double u = (i + 0.5) / kParts;
    integral += survival(t * u * u, shape, scale) * 2 * t * u / kParts;
  }
  return survival(t, shape, scale) * std::pow(1 - integral / node_mean, static_cast<double>(nodes - 1));
}

}  // namespace

TEST_CASE("O14: the first of N fresh nodes fails by a Weibull law of scale / N^(1/k)") {
  constexpr int kRuns = 20000;
  for (double shape : {0.6, 1.0, 2.0})
    for (std::int64_t nodes : {1, 8, 96}) {
      const double node_mean = 1000.0 * static_cast<double>(nodes),
                   scale = scale_of(node_mean, shape) / std::pow(static_cast<double>(nodes), 1 / shape);
      double sum = 0;
      std::vector<int> longer(3, 0);
      const std::vector<double> times{0.3 * scale, scale, 1.5 * scale};
      for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
        const double first = seconds(detail::NodeFailures({1000, shape, nodes}, wt::splitmix64(seed)).next());
        sum += first;
        for (std::size_t i = 0; i < times.size(); ++i) longer[i] += first > times[i];
      }
      INFO("shape " << shape << ", " << nodes << " nodes");
      CHECK(sum / kRuns == Approx(scale * std::tgamma(1 + 1 / shape)).epsilon(0.05));
      for (std::size_t i = 0; i < times.size(); ++i)  // four standard errors
        CHECK(1.0 * longer[i] / kRuns == Approx(survival(times[i], shape, scale)).margin(4 * 0.5 / std::sqrt(kRuns)));
    }
}

TEST_CASE("O14: only the failed node is renewed, so failures drift to a Poisson process where nodes are many") {
  constexpr int kGaps = 40000;
  for (double shape : {0.6, 2.0})
    for (std::int64_t nodes : {1, 4, 300}) {
      detail::NodeFailures platform({1000, shape, nodes}, 5);
      double first = 0, begin = 0;
      for (std::int64_t i = 0; i < 100 * nodes; ++i) {  // a hundred lives of a node
        if (i < nodes / 10) first = seconds(platform.next()) / static_cast<double>(i + 1);
        platform.replace();
      }
      const double start = begin = seconds(platform.next());
      std::vector<int> longer(3, 0);
      const std::vector<double> times{200, 1000, 2500};
      for (int i = 0; i < kGaps; ++i) {
        platform.replace();
        const double gap = seconds(platform.next()) - begin;
        begin += gap;
        for (std::size_t j = 0; j < times.size(); ++j) longer[j] += gap > times[j];
      }
      INFO("shape " << shape << ", " << nodes << " nodes");
      CHECK((begin - start) / kGaps == Approx(1000).epsilon(0.03));
      for (std::size_t j = 0; j < times.size(); ++j) {
        const double share = 1.0 * longer[j] / kGaps,
                     exact = gap_survival(times[j], shape, 1000.0 * static_cast<double>(nodes), nodes),
                     poisson = std::exp(-times[j] / 1000);
        CHECK(share == Approx(exact).margin(0.012));  // four standard errors, and room for gaps that hang together
        if (nodes == 300) CHECK(share == Approx(poisson).margin(shape < 1 ? 0.03 : 0.015));
        if (nodes == 1 && j == 0) CHECK(std::abs(share - poisson) > 0.05);  // one node never gets there
      }
      // Fresh nodes that wear in fail more often at first, those that wear out later.
      if (nodes == 300) CHECK((shape < 1 ? first < 500 : first > 2000));
    }
}

TEST_CASE("one node with a clock of its own is the job's law, to the last digit") {
  RunScenario job;
  job.steps = 20000, job.step_s = 7.3, job.interval_steps = 40, job.blocking_s = 11.1, job.persist_s = 90.7;
  job.detect_s = 60, job.reload_s = 130, job.failures = {9000, 0.7};
  RunScenario node = job;
  node.failures.nodes = 1;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RunOutcome a = simulate_run(job, seed), b = simulate_run(node, seed);
    CHECK(a.failures > 5);
    CHECK(a.buckets_ns == b.buckets_ns);
    CHECK(a.failures == b.failures);
  }
}

TEST_CASE("a stop that is planned renews no node") {
  // One that surely fails near 10,000 s: a stop every 1,000 s or so would put off a clock that starts anew.
  RunScenario s;
  s.steps = 100000, s.step_s = 1, s.interval_steps = 10, s.planned_mean_s = 1000, s.planned_stop_s = 5;
  s.failures = {10000, 50};
  CHECK(simulate_run(s, 3).failures <= 1);
  s.failures.nodes = 1;
  const RunOutcome run = simulate_run(s, 3);
  CHECK(run.planned_stops > 50);
  CHECK(run.failures >= 9);
  CHECK(run.failures <= 11);
}

TEST_CASE("a fresh platform of nodes fails as often as their renewals in its first days") {
  // N nodes fail N m(t) times; the renewal function m(t) lies between F(t) and F(t) / (1 - F(t)).
  constexpr std::int64_t kNodes = 64;
  constexpr double kShape = 0.7;
  for (double t : {500.0, 4000.0}) {
    RunScenario s;
    s.steps = static_cast<std::int64_t>(t), s.step_s = 1, s.interval_steps = 1;  // no more than a second is done twice
    s.failures = {1000, kShape, kNodes};
    const double F = 1 - survival(t, kShape, scale_of(1000.0 * kNodes, kShape));
    const RunDistribution d = simulate_runs(s, 4000, 2);
    CHECK(d.failures > kNodes * F * 0.98);
    CHECK(d.failures < kNodes * F / (1 - F) * 1.02);
    CHECK(d.failures > 2 * t / 1000);  // more than in the end
  }
}

TEST_CASE(
    "a long run on nodes has the goodput that O6 gives the gaps between their failures, a Poisson process's in the "
    "end") {
  for (double shape : {0.5, 0.7, 2.0})
    for (std::int64_t nodes : {4, 100, 1000}) {
      if (shape == 0.5 && nodes == 1000) continue;  // still wearing in after 600 lives
      RunScenario s;                                // O6's minutes as seconds
      s.steps = 100000000, s.step_s = 1, s.interval_steps = 30;
      s.blocking_s = 1, s.detect_s = 10, s.failures = {180, shape, nodes};
      const RunOutcome run = simulate_run(s, 12);
      const auto o6 = [&](const std::function<double(double)>& gaps) {
        return persisted_goodput(gaps, 180, 30, 1, 0, 10, 0);
      };
      const double mean = 180.0 * static_cast<double>(nodes);
      INFO("shape " << shape << ", " << nodes << " nodes");
      CHECK(run.failures > 500000);
      CHECK(run.goodput() == Approx(o6([&](double t) { return gap_survival(t, shape, mean, nodes); })).margin(1e-3));
      if (nodes < 1000) continue;
      const double from_poisson = std::abs(run.goodput() - o6(weibull_survival(180, 1))),
                   from_renewed = std::abs(run.goodput() - o6(weibull_survival(180, shape)));
      CHECK(from_poisson < 1e-3);
      CHECK(from_renewed > 2 * from_poisson);  // from a platform that starts anew
    }
}

TEST_CASE("jumping equals stepping with nodes that fail each by itself") {
  RunScenario s;
  s.steps = 20000, s.step_s = 7.3, s.interval_steps = 40, s.blocking_s = 11.1, s.persist_s = 90.7;
  s.detect_s = 60, s.reschedule_s = 200, s.restart_s = 45.5, s.reload_s = 130, s.spares = 2, s.repair_s = 12000;
  s.planned_mean_s = 40000, s.planned_stop_s = 1800, s.failures = {9000, 0.6, 24};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RunOutcome a = simulate_run(s, seed), b = simulate_run_stepping(s, seed);
    CHECK(a.wall_ns == b.wall_ns);
    CHECK(a.buckets_ns == b.buckets_ns);
    CHECK(a.failures == b.failures);
  }
}

TEST_CASE("failing nodes are refused beside replicas, and in negative numbers") {
  RunScenario s;
  s.steps = 10, s.step_s = 1, s.interval_steps = 1, s.failures = {100, 1, -1};
  CHECK_THROWS_WITH(simulate_run(s, 1), Catch::Contains("failures.nodes: found -1"));
  s.failures.nodes = 8, s.tolerance.replicas = 4;
  CHECK_THROWS_WITH(simulate_run(s, 1), Catch::Contains("found 8 with 4 replicas"));
}
