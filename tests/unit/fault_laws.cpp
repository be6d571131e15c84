// What strikes in simulated months: laws of failure presets and events of scenarios.
#include "sim/months/fault_laws.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <set>

#include "configs/base/number.hpp"
#include "sim/months/simulate_scenario.hpp"
#include "tests/fixtures/scenario_texts.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;

namespace {

const std::string kRecovery =
    "recovery: {detect: {time: 222s, mean: 2334s, evidence: published, source: a}, reschedule: {time: 1m, evidence: "
    "assumed, source: a}, restart: {time: 1m, evidence: assumed, source: a}, reload: {time: 1m, evidence: assumed, "
    "source: a}}\n";

FailurePreset preset_of(const std::string& classes) {
  const TempDirectory folder;
  std::ofstream(folder.path() / "p.yaml") << "name: p\ntitle: t\n" << classes << kRecovery;
  return read_failures((folder.path() / "p.yaml").string());
}

std::string class_of(const std::string& more) {
  return "failures: [{class: a, per_1000_node_days: 10, evidence: assumed, source: a" + more + "}]\n";
}

std::int64_t strikes_within(const FaultLaw& law, const EntityTree& tree, double seconds) {
  FaultTrace trace(tree, {law}, {}, 9);
  std::int64_t n = 0;
  while (const TraceEvent* e = trace.event(static_cast<std::size_t>(n))) {
    if (static_cast<double>(e->at) >= seconds * 1e9) break;
    ++n;
  }
  return n;
}

}  // namespace

TEST_CASE("Llama 3's classes are one law of all failures, and its planned stops one of the job") {
  const EntityTree tree{.nodes = 2048};
  const FaultLaws laws = preset_laws(read_failures("llama3"), tree);
  REQUIRE(laws.laws.size() == 2);
  CHECK(laws.laws[0].mean_s == Approx(2048 * 54 * kDay_s / 419));
  CHECK(laws.laws[1].effect == FaultLaw::Effect::planned);
  CHECK(laws.laws[1].mean_s == Approx(54 * kDay_s / 47));
  CHECK(preset_laws(read_failures("llama3"), tree, 2).laws[0].mean_s == Approx(2 * laws.laws[0].mean_s));
}

TEST_CASE("events per 1000 node-days are as many of every domain") {
  const EntityTree tree{.nodes = 64, .ranks_per_node = 8, .nodes_per_rack = 4, .nodes_per_leaf = 16, .rails = 8};
  const double seconds = 1000 * kDay_s;  // 10 per 1000 node-days on 64 nodes: 640 events, standard deviation 25
  using enum FaultDomain;
  for (const FaultDomain domain : {rank, node, rack, leaf, rail, all}) {
    const FaultLaw law{.domain = domain, .mean_s = entity_mean_s(tree, domain, 10)};
    INFO(to_string(domain));
    CHECK(static_cast<double>(strikes_within(law, tree, seconds)) == Approx(640).margin(4 * 25.3));
  }
  // Parts that are not whole are struck by what they have: 200 nodes are 6 leaves of 32 and a quarter of one; 5 events
  // per 1000 node-days on 8 of 32 nodes under a leaf are 40 in 1000 days, on the 200 nodes 1000.
  for (const std::int64_t nodes : {std::int64_t{8}, std::int64_t{200}}) {
    const EntityTree part{.nodes = nodes, .nodes_per_rack = 3, .nodes_per_leaf = 32};
    for (const FaultDomain domain : {rack, leaf}) {
      const FaultLaw law{.domain = domain, .mean_s = entity_mean_s(part, domain, 5)};
      const double expected = 5 * as_double(nodes);
      CHECK(static_cast<double>(strikes_within(law, part, seconds)) ==
            Approx(expected).margin(4 * std::sqrt(expected)));
    }
  }
  CHECK(entity_mean_s(tree, node, 0) == 0);
  CHECK_THAT(usage_error([] { entity_mean_s({.nodes = 8}, FaultDomain::leaf, 1); }), Catch::Contains("leaf"));
}

TEST_CASE("a preset's classes say domain, shape and bad nodes, and a recovery is lognormal where it has a mean") {
  const EntityTree tree{.nodes = 100, .nodes_per_rack = 4};
  const FaultLaws laws = preset_laws(preset_of(class_of(", domain: rack, shape: 0.8")), tree);
  CHECK(laws.laws.at(0).domain == FaultDomain::rack);
  CHECK(laws.laws[0].shape == 0.8);
  CHECK(laws.laws[0].mean_s == Approx(1000 * kDay_s / (10 * 4)));
  const FailurePreset bad = preset_of(class_of(", bad_nodes: {share: 0.15, factor: 6}"));
  CHECK(preset_laws(bad, tree).laws.at(0).bad_share == 0.15);
  CHECK(preset_laws(bad, tree).laws[0].bad_factor == 6);
  CHECK(bad.recovery.detect_s.value == 2334);
  CHECK(bad.recovery.detect_s.sigma() == Approx(2.17).margin(5e-3));
  CHECK(bad.recovery.restart_s.sigma() == 0);
}

TEST_CASE("a preset with laws that make no sense is refused") {
  const auto refused = [](const std::string& more, const char* what) {
    CHECK_THAT(usage_error([&] { preset_of(class_of(more)); }), Catch::Contains(what));
  };
  refused(", domain: galaxy", "galaxy");
  refused(", domain: replica", "replica");
  refused(", shape: 0", "shape");
  refused(", domain: rack, bad_nodes: {share: 0.1, factor: 2}", "needs domain node");
  refused(", bad_nodes: {share: 1.5, factor: 2}", "share");
  refused(", bad_nodes: {share: 0.5, factor: 0.5}", "factor");
  refused(", duration: {time: 1m, evidence: assumed, source: a}", "duration");  // of planned stops alone
  const std::string less = "recovery: {detect: {time: 2m, mean: 1m, evidence: assumed, source: a}";
  CHECK_THAT(usage_error([&] {
               const TempDirectory folder;
               std::ofstream(folder.path() / "p.yaml") << "name: p\ntitle: t\n" << class_of("") << less << "}\n";
               read_failures((folder.path() / "p.yaml").string());
             }),
             Catch::Contains("needs a mean above the median"));
}

TEST_CASE("events of a study's scenario join the laws: rates, shares, times and trace files") {
  const TempDirectory folder;
  std::ofstream(folder.path() / "trace.csv") << "time_s,index,lasts_s\n3600,4,86400\n7200,5,0\n";
  std::ofstream(folder.path() / "s.yaml")
      << "name: s\nevents:\n"
      << kill_of("{domain: rack}", "{per_1000_node_days: 0.05, shape: 0.78}")
      << kill_of("{share: 0.05, of: node}", "{per_1000_node_days: 1}")
      << kill_of("{domain: leaf, index: 1}", "{time: 3h}") << kill_of("{domain: node}", "{trace: trace.csv}");
  const EntityTree tree{.nodes = 64, .nodes_per_rack = 4, .nodes_per_leaf = 16};
  FaultLaws out;
  add_scenario(read_scenario_file(folder.path() / "s.yaml"), seconds(), tree, out);
  REQUIRE(out.laws.size() == 5);
  CHECK(out.laws[0].shape == 0.78);
  CHECK(out.laws[0].mean_s == Approx(1000 * kDay_s / (0.05 * 4)));
  REQUIRE(out.scheduled.size() == 3);
  CHECK(out.scheduled[0].at_s == 3 * 3600);
  CHECK(out.scheduled[0].entity == 1);
  CHECK(out.scheduled[1].entity == 4);
  CHECK(out.laws[3].lasts_s == 86400);
  CHECK(out.laws[4].lasts_s == 0);
  // A twentieth of the nodes has all of its events: 64 in 1000 days, standard deviation 8, and of the share itself.
  std::set<std::int32_t> struck;
  FaultTrace trace(tree, {out.laws[1]}, {}, 2);
  for (std::size_t i = 0; trace.event(i) && trace.event(i)->at < 1000LL * 86400 * 1'000'000'000; ++i)
    struck.insert(trace.event(i)->entity);
  CHECK(struck.size() >= 1);
  CHECK(struck.size() <= 10);
}

TEST_CASE("scenarios that months do not know are refused") {
  const auto refused = [](const std::string& event, const char* what) {
    const Scenario s = scenario_of("events:\n" + event);
    FaultLaws laws;
    CHECK_THAT(usage_error([&] { add_scenario(s, seconds(), {.nodes = 4}, laws); }), Catch::Contains(what));
  };
  refused("  - {who: {domain: storage}, when: {step: 5}, what: {kind: slow, factor: 2}}\n",
          "found slow of the storage");
  refused(kill_of("{domain: node}", "{trace: nowhere.csv}"), "nowhere.csv");
  refused(kill_of("{domain: rack}", "{per_1000_node_days: 1}"), "does not describe");
  const TempDirectory folder;
  std::ofstream(folder.path() / "trace.csv") << "time_s,index,lasts_s\n3600,4\n";
  std::ofstream(folder.path() / "s.yaml") << "name: s\nevents:\n" << kill_of("{domain: node}", "{trace: trace.csv}");
  FaultLaws laws;
  CHECK_THAT(
      usage_error([&] { add_scenario(read_scenario_file(folder.path() / "s.yaml"), seconds(), {.nodes = 8}, laws); }),
      Catch::Contains("trace.csv:2: found '3600,4'"));
  const Scenario rate = scenario_of("events:\n" + kill_of("{domain: node}", "{per_1000_node_days: 1}"));
  CHECK_THAT(usage_error([&] { simulate_scenario(rate, seconds(), 4); }), Catch::Contains("at a rate"));
  const Scenario odd = scenario_of("nodes: {ranks: 3}\nevents:\n" + kill_of("{domain: node, index: 0}", "{step: 5}"));
  CHECK_THAT(usage_error([&] { simulate_scenario(odd, seconds(), 4); }), Catch::Contains("4 ranks on nodes of 3"));
  const Scenario beyond = scenario_of("events:\n" + kill_of("{domain: rank, index: 9}", "{step: 5}"));
  CHECK_THAT(usage_error([&] { simulate_scenario(beyond, seconds(), 4); }), Catch::Contains("found rank 9"));
}

TEST_CASE("damage and corruption in a study's faults: by the rate of the storage and of ranks") {
  const EntityTree tree{.nodes = 8, .ranks_per_node = 8};
  FaultLaws out;
  add_scenario(
      scenario_of("events:\n  - {who: {domain: storage}, when: {time: 1h}, what: {kind: damage, how: remove}}\n"
                  "  - {who: {domain: rank}, when: {per_1000_node_days: 2}, what: {kind: corrupt, tensor: "
                  "weight, layer: 0, element: 0, bit: 9}}\n"),
      seconds(), tree, out);
  REQUIRE(out.laws.size() == 2);
  CHECK(out.laws[0].effect == FaultLaw::Effect::damage);
  CHECK(out.laws[0].loses_newest_save);
  CHECK(out.scheduled.at(0).at_s == 3600);
  CHECK(out.laws[1].effect == FaultLaw::Effect::silent);
  CHECK(out.laws[1].mean_s == Approx(1000 * kDay_s / (2 / 8.0)));
}
