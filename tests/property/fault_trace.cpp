// The events of a trace, which no policy changes: their rates, shapes and times.
#include "sim/months/fault_trace.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "configs/base/statistics.hpp"
#include "tests/fixtures/strike_laws.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("a trace's events come in order and the same seed gives the same ones") {
  const EntityTree tree{.nodes = 40, .spares = 3, .ranks_per_node = 8, .nodes_per_rack = 4, .nodes_per_leaf = 16};
  const std::vector<FaultLaw> laws{node_failures(1e6, 0.7),
                                   {.domain = FaultDomain::rack, .mean_s = 5e6},
                                   {.effect = FaultLaw::Effect::planned, .domain = FaultDomain::all, .mean_s = 4e5}};
  FaultTrace one(tree, laws, {{1234, 0, 7}}, 5), again(tree, laws, {{1234, 0, 7}}, 5), other(tree, laws, {}, 6);
  const auto a = events_until(one, 1e6), b = events_until(again, 1e6), c = events_until(other, 1e6);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK((a[i].at == b[i].at && a[i].law == b[i].law && a[i].entity == b[i].entity && a[i].key == b[i].key));
    if (i > 0) CHECK(a[i - 1].at <= a[i].at);
  }
  CHECK(std::ranges::count_if(a, [](const TraceEvent& e) { return e.at == 1234'000'000'000 && e.entity == 7; }) == 1);
  CHECK((a.size() != c.size() || a[0].at != c[0].at));
}

TEST_CASE("more spares or laws leave all other events where they are") {
  const EntityTree few{.nodes = 40}, more{.nodes = 40, .spares = 9};
  FaultTrace a(few, {node_failures(1e6)}, {}, 5), b(more, {node_failures(1e6), node_failures(3e6)}, {}, 5);
  const auto all = events_until(b, 1e6);
  for (const TraceEvent& e : events_until(a, 1e6))
    CHECK(std::ranges::count_if(all, [&](const TraceEvent& other) { return other.key == e.key && other.at == e.at; }) ==
          1);
}

TEST_CASE("entities are struck at their rate, bad ones more often, and the mean over both is the law's") {
  const EntityTree tree{.nodes = 2000};
  FaultTrace trace(tree, {{.mean_s = 1e5, .bad_share = 0.15, .bad_factor = 6}}, {}, 3);
  std::vector<int> strikes(2000);
  for (const TraceEvent& e : events_until(trace, 1e6)) ++strikes[static_cast<std::size_t>(e.entity)];
  const double all = std::accumulate(strikes.begin(), strikes.end(), 0.0);
  // The share of bad ones varies by 0.8 %, which moves the rate by 2.3 %; counts by 0.7 %.
  CHECK(all / 2000 == Approx(10).epsilon(0.07));
  // Good nodes: rate 10 / 1.75 = 5.7 a node; bad ones 34: none of them below 15, hardly a good one above.
  const auto bad = std::ranges::count_if(strikes, [](int n) { return n > 18; });
  CHECK(static_cast<double>(bad) / 2000 == Approx(0.15).margin(0.025));
}

TEST_CASE(
    "Weibull clocks have run for long when a trace begins: as many strikes as the mean says, from the first day on") {
  const std::int64_t nodes = 40000;
  const double mean_s = 1e6, shape = 0.5;
  FaultTrace trace({.nodes = nodes}, {node_failures(mean_s, shape)}, {}, 4);
  const auto events = events_until(trace, mean_s);
  for (const double until : {0.02, 0.2, 1.0}) {  // of the mean; new clocks had 7 times as many in the first of these
    const auto strikes = std::ranges::count_if(
        events, [&](const TraceEvent& e) { return static_cast<double>(e.at) < until * mean_s * 1e9; });
    const double expected = until * static_cast<double>(nodes);
    // Counts of a node are overdispersed: below 3 times a Poisson law's variance here.
    CHECK(static_cast<double>(strikes) == Approx(expected).margin(4 * std::sqrt(3 * expected)));
  }
  // P(no strike until t) = 1 - P(1/shape, (t/scale)^shape), which is (1 + x) e^-x, x = sqrt(t/scale), scale = mean / 2.
  std::vector<bool> struck(nodes);
  for (const TraceEvent& e : events) struck[static_cast<std::size_t>(e.entity)] = true;
  const double x = std::sqrt(2.0), none = (1 + x) * std::exp(-x);
  CHECK(static_cast<double>(std::ranges::count(struck, false)) / static_cast<double>(nodes) ==
        Approx(none).margin(4 * std::sqrt(none * (1 - none) / static_cast<double>(nodes))));
}

TEST_CASE("a lognormal time has its mean and its median") {
  // OLMo Hybrid's recoveries: median 3 m 42 s, mean 38 m 54 s.
  const double median_s = 222, mean_s = 2334, sigma = std::sqrt(2 * std::log(mean_s / median_s));
  CHECK(sigma == Approx(2.17).margin(5e-3));
  std::vector<double> drawn;
  for (std::uint64_t key = 0; key < 400000; ++key)
    drawn.push_back(static_cast<double>(lognormal_ns(mean_s, sigma, key * 977, TraceDraw::detect)) * 1e-9);
  CHECK(median(drawn) == Approx(median_s).epsilon(0.02));  // standard error 0.4 %
  CHECK(mean(drawn) == Approx(mean_s).epsilon(0.08));      // 1.6 %: half of the mean is in 1.5 % of the draws
  CHECK(lognormal_ns(60, 0, 1, TraceDraw::detect) == 60'000'000'000);
}
