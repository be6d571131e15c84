// Recovery policies on the same traces, and how far they are from one another.
#include "sim/months/policy_runs.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/fixtures/run_scenarios.hpp"
#include "tests/fixtures/strike_laws.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("policies on the same traces: paired, repeatable, and what does not fail is the bound") {
  const EntityTree tree{.nodes = 16, .spares = 4};
  const std::vector<FaultLaw> laws{node_failures(3e5),
                                   {.effect = FaultLaw::Effect::planned, .domain = FaultDomain::all, .mean_s = 3e4}};
  RunScenario s = busy();
  s.steps = 5000, s.spares = 0;
  RunScenario spared = s;
  spared.spares = 4;
  const std::vector<TracedPolicy> policies{
      {"none", spared, {}, false}, {"wait", s, {}}, {"spares", spared, {}}, {"hot", spared, {.activate_s = 10}}};
  const auto replayed = [&](const std::vector<TracedPolicy>& some) {
    return replay_policies({tree, laws, {}, 3}, some, 50);
  };
  const auto out = replayed(policies), again = replayed(policies);
  for (std::size_t i = 0; i < out.size(); ++i) CHECK(out[i].goodputs == again[i].goodputs);
  CHECK(out[0].failures == 0);
  CHECK(out[1].failures > 1);
  for (std::size_t i = 0; i < out[0].goodputs.size(); ++i) CHECK(out[0].goodputs[i] >= out[3].goodputs[i]);
  CHECK(paired_difference(out[2].goodputs, out[1].goodputs).low > 0);
  CHECK(paired_difference(out[3].goodputs, out[2].goodputs).low > 0);
  CHECK(out[1].p10_goodput() <= out[1].median_goodput());
  CHECK(replayed({policies[2]})[0].goodputs == out[2].goodputs);  // alone as among others
  CHECK_THAT(usage_error([&] {
               replay_policies({tree, laws, {}, 3}, policies, 4);
             }),
             Catch::Contains("found 4 traces"));
}

TEST_CASE("a paired difference has the interval of its mean") {
  const PairedDifference d = paired_difference({3, 5, 7, 9}, {1, 2, 3, 4});  // 2, 3, 4, 5
  CHECK(d.mean == 3.5);
  CHECK(d.high - d.mean == Approx(3.182446 * std::sqrt(5 / 3.0) / 2));  // Student's t of 3 degrees of freedom
  CHECK(d.mean - d.low == Approx(d.high - d.mean));
}
