// What must hold for every step, on random layouts of up to 64 ranks: the estimator never promises more than the
// simulator finds, twins stand for each other, and where transfers do not meet better hardware never makes a step
// slower. Where they meet it can: that is counted and told.
// WT_RANDOM_LAYOUTS=10000 runs as many of each (a quarter of an hour; the bounds alone two to three minutes).
// WT_RANDOM_SEED=fresh draws other layouts than the usual ones, WT_RANDOM_SEED=N those of an earlier run.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <random>

#include "planner/search/scaled_cost.hpp"
#include "sim/bounds/bounds.hpp"
#include "sim/cost/calibrate/calibrate.hpp"
#include "sim/cost/stacks/stack_cost.hpp"
#include "sim/replay/replay.hpp"
#include "tests/fixtures/nightly.hpp"
#include "tests/fixtures/published_reference.hpp"
#include "tests/fixtures/random_layout.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// As many as usual, ten times as many at night.
int cases(int usual) {
  const char* asked = std::getenv("WT_RANDOM_LAYOUTS");
  return asked ? std::atoi(asked) : test::cases(usual, 10 * usual);
}

/// The seed of a case's step `i`; each case has a block of its own.
std::uint64_t seed_of(std::uint64_t block, int i) {
  static const std::uint64_t first = [] {
    const char* asked = std::getenv("WT_RANDOM_SEED");
    if (!asked) return std::uint64_t{0};
    const std::uint64_t seed =
        std::string(asked) == "fresh" ? std::uint64_t{std::random_device{}()} << 20 : std::strtoull(asked, nullptr, 10);
    WARN("WT_RANDOM_SEED=" << seed);
    return seed;
  }();
  return first + 100000 * block + static_cast<std::uint64_t>(i);
}

/// Steps in which no two transfers are in flight at a time: one communicator, and one shard group is all there is. The
/// time of each op is then a sum of maxima of times, and order is kept whatever the times are. Where transfers share
/// a NIC it is not (property/sharing.cpp has the smallest case): work that ends earlier may start a prefetch that takes
/// from what the step waits for.
bool never_meet(const RandomStep& s) {
  const Layout& l = s.layout;
  return !s.cost.separate && l.replicate * l.expert * l.context * l.tensor * l.pipeline == 1;
}

/// What was longer than order would have it, by how much of it.
class Reversals {
 public:
  void compare(double less, double more, const std::vector<std::string>& of = {}) {
    ++compared_;
    if (less <= more * (1 + 1e-6)) return;
    for (const std::string& kind : of) by_[kind].push_back(less / more - 1);
    by_["all"].push_back(less / more - 1);
  }
  /// How many there were, of which more than the share `most` would not be contention.
  void tell(const std::string& what, double most) {
    if (compared_ >= 200) CHECK(by_["all"].size() <= most * compared_);
    for (auto& [kind, by] : by_) {
      if (by.empty()) continue;
      std::sort(by.begin(), by.end());
      WARN(what << ", " << kind << ": " << by.size() << " of " << compared_ << ", half of them by less than "
                << by[by.size() / 2] << ", one by " << by.back());
    }
  }

 private:
  int compared_ = 0;
  std::map<std::string, std::vector<double>> by_;
};

const MachineModel& measured_h100() {
  static const MachineModel model = [] {
    CalibrationResult result = calibrate({read_profile("tests/data/h100-profile.json")}, {true});
    return std::move(result.model);
  }();
  return model;
}

double step_s(const RandomStep& s, const ClusterSpec& cluster, const OpCost& cost) {
  return replay(s.set, s.layout, s.model, cluster, cost, *s.routing, {0, true, false, {}}).step_s;
}

/// Of small steps most segments are the host's.
const OpCost& stack() {
  static const StackCost cost = test::stack_cost(read_cluster("hgx-h100"), "torchtitan");
  return cost;
}

std::string text(const RandomStep& s, std::uint64_t seed) {
  return "seed " + std::to_string(seed) + ": " + s.layout.name() + " on " + std::to_string(s.cluster.nodes) + " x " +
         std::to_string(s.cluster.gpus_per_node) + ", recompute " + to_string(s.layout.recompute) + ", rank " +
         std::to_string(s.rank);
}

/// The rank's node is slow, and so are its leaf's uplinks.
void degrade(RandomStep& s) {
  const std::int64_t node = s.cluster.node_of(s.rank);
  s.cluster.degraded = {{node, 0.6, 0.4, 0.7}};
  s.cluster.degraded_leaves = {{s.cluster.leaf_of(node), 0.3}};
}

/// Some of the nodes have other GPUs and NICs; `halves`: the second half of them.
void mix(RandomStep& s, std::uint64_t seed, bool halves) {
  Draw draw(seed);
  OtherNodes other{s.cluster, halves ? s.cluster.nodes / 2 : draw.below(s.cluster.nodes), 0};
  other.count = s.cluster.nodes - other.first;
  if (!halves) other.count = draw.between(1, other.count);
  other.nvswitch_Bps *= draw.scaled(0.3, 3), other.nic_Bps *= draw.scaled(0.3, 3);
  s.cluster.others = {other};
  FakeCost cost = s.cost;
  cost.flops *= draw.scaled(0.3, 3), cost.Bps *= draw.scaled(0.3, 3), cost.latency_s *= draw.scaled(0.3, 3);
  cost.efficiency = draw.scaled(0.3, 1),
  cost.algorithm = kAllReduces[static_cast<std::size_t>(draw.below(kAllReduces.size()))];
  s.cost.others = std::make_shared<FakeCost>(cost);
}

/// What a layout has that others have not; kTraits in all.
constexpr std::size_t kTraits = 15;
std::vector<std::string> traits(const Layout& l) {
  const bool turns = l.schedule == Schedule::dualpipe_v, interleaved = l.virtual_stages > 1 && !turns,
             splits = l.schedule == Schedule::zero_bubble;
  std::vector<std::string> out;
  const auto add = [&](bool has, const char* name) {
    if (has) out.emplace_back(name);
  };
  add(l.trainable(), "trainable");
  add(l.tensor > 1 && !l.sequence_parallel, "tensor");
  add(l.sequence_parallel, "sequence");
  add(l.tensor > 1 && !l.resident_weights(), "tensor, FSDP");
  add(l.pipeline > 1 && !interleaved && !splits && !turns, "1F1B");
  add(interleaved, "interleaved");
  add(std::ranges::count(l.chunk_layers, 0) > 0, "chunks without a layer");
  add(splits, "ZB-H1");
  add(turns, "DualPipe's V");
  add(l.pipeline > 1 && l.tensor > 1, "pipeline, tensor");
  add(l.pipeline > 1 && l.expert > 1, "pipeline, expert");
  add(l.pipeline > 1 && l.context_ring, "pipeline, ring");
  add(l.context_ring, "ring");
  add(l.shard == 1 && l.optimizer_shard > 1, "ZeRO-1");
  add(l.shard > 1 && l.optimizer_shard > 1, "HFSDP");
  return out;
}

}  // namespace

TEST_CASE("bound 0 <= bound 1 <= simulated, whichever rank is asked about") {
  const int usual = 1000, n = cases(usual);
  double tightest0 = 0, tightest1 = 0;
  std::map<std::string, int> drawn;
  for (int i = 0; i < n; ++i) {
    const std::uint64_t seed = seed_of(0, i);
    const bool host = i % 5 == 0;
    RandomStep s = random_step(seed, host);
    if (!host && i % 4 == 3) degrade(s);
    if (!host && i % 4 >= 2) mix(s, seed, false);
    const OpCost& healthy = !host && i % 5 == 1   ? static_cast<const OpCost&>(measured_h100())
                            : !host && i % 5 == 2 ? stack()
                                                  : s.cost;
    ScaleSpec scale;  // a faster clock leaves what the host limits as it is
    if (!host) scale.clock = i % 7 == 0 ? 2 : i % 7 == 1 ? 0.5 : 1;
    const ScaledCost cost(healthy, scale);
    const Program& program =
        s.set.programs[static_cast<std::size_t>(s.set.class_of_rank[static_cast<std::size_t>(s.rank)])];
    const double b0 = bound0(program, s.layout, s.cluster, cost,
                             routing_floors(program, s.layout, s.cluster, *s.routing, 0, s.rank), s.rank);
    const double b1 = bound1(s.set, s.layout, s.cluster, cost, *s.routing, 0, s.rank);
    const double simulated = replay(s.set, s.layout, s.model, s.cluster, cost, *s.routing, {0, true, false, {}}).step_s;
    INFO(text(s, seed));
    CHECK(b0 > 0);
    CHECK(b0 <= b1 * (1 + 1e-5));
    CHECK(b1 <= simulated * (1 + 1e-5));
    tightest0 = std::max(tightest0, b0 / simulated), tightest1 = std::max(tightest1, b1 / simulated);
    for (const std::string& trait : traits(s.layout)) ++drawn[trait];
  }
  for (const auto& [trait, times] : drawn) {
    INFO(trait);
    CHECK(100 * times >= n);
  }
  CHECK(drawn.size() == kTraits);
  CHECK(tightest0 > 0.9);  // and they say something
  CHECK(tightest1 > 0.99);
  if (n != usual)
    WARN("of " << n << " layouts, bound 0 at most " << tightest0 << " and bound 1 at most " << tightest1
               << " of the simulated time");
}

TEST_CASE("folded equals unfolded on random layouts, behind uplinks, with a slow node and with a slow leaf, too") {
  std::map<std::string, int> folded;
  int mixed_folded = 0;
  for (int i = 0; i < cases(1000); ++i) {
    const std::uint64_t seed = seed_of(1, i);
    RandomStep s = random_step(seed, false);
    if (i % 4 == 1) degrade(s);
    if (i % 8 >= 6) mix(s, seed, true);
    ReplayOptions options{0, true, false, {}};
    if (i % 3 == 0) options.health = {{s.cluster.node_of(s.rank), 0.6, 0.4}};
    const ReplayResult some = replay(s.set, s.layout, s.model, s.cluster, s.cost, *s.routing, options);
    if (!some.folded) continue;
    mixed_folded += s.cluster.kinds(s.layout.world()).size() > 1;
    for (const std::string& trait : traits(s.layout)) ++folded[trait];
    options.fold = false;
    INFO(text(s, seed));
    CHECK(some.step_s ==
          Approx(replay(s.set, s.layout, s.model, s.cluster, s.cost, *s.routing, options).step_s).epsilon(1e-6));
  }
  CHECK(folded.size() == kTraits);
  CHECK(folded["trainable"] > 50);
  CHECK(mixed_folded >= 5);
}

TEST_CASE(
    "a cluster of two kinds of nodes takes as long as one of either where all nodes are of it; where transfers do not "
    "meet, between the two else") {
  int between = 0;
  Reversals faster, slower;
  for (int i = 0; i < cases(200); ++i) {
    const std::uint64_t seed = seed_of(4, i);
    RandomStep s = random_step(seed, false);
    s.cost.slowdown = 0;
    const double fast = step_s(s, s.cluster, s.cost);
    OtherNodes other{s.cluster, 0, s.cluster.nodes};
    other.nvswitch_Bps /= 2, other.nic_Bps /= 2;
    FakeCost half = s.cost;
    half.flops /= 2, half.Bps /= 2, half.latency_s *= 2;
    s.cost.others = std::make_shared<FakeCost>(half);
    s.cluster.others = {other};
    INFO(text(s, seed));
    const double slow = step_s(s, s.cluster, s.cost);
    CHECK(slow == step_s(s, s.cluster.all_of(1), half));
    s.cluster.others[0].first = s.cluster.nodes / 2, s.cluster.others[0].count -= s.cluster.nodes / 2;
    const double both = step_s(s, s.cluster, s.cost);
    faster.compare(fast, both), slower.compare(both, slow);
    if (never_meet(s)) {
      CHECK(both >= fast * (1 - 1e-6));
      CHECK(both <= slow * (1 + 1e-6));
    }
    between += both > 1.05 * fast && both < 0.999 * slow;
  }
  CHECK(between > 20);
  faster.tell("faster than if all nodes were the fast ones", 0.15);
  slower.tell("slower than if all were the slow ones", 0.15);
}

TEST_CASE(
    "where transfers do not meet a cluster of two kinds of nodes takes no longer than one with the worst of each") {
  Reversals slower;
  for (int i = 0; i < cases(200); ++i) {
    const std::uint64_t seed = seed_of(5, i);
    RandomStep s = random_step(seed, false);
    s.cost.slowdown = 0;
    mix(s, seed, false);
    FakeCost other = *s.cost.others, worst = s.cost;
    other.slowdown = 0, other.algorithm = s.cost.algorithm;
    s.cost.others = std::make_shared<FakeCost>(other);
    ClusterSpec cluster = s.cluster;
    cluster.others.clear();
    const OtherNodes& node = s.cluster.others[0];
    cluster.nvswitch_Bps = std::min(cluster.nvswitch_Bps * s.cost.efficiency, node.nvswitch_Bps * other.efficiency);
    cluster.nic_Bps = std::min(cluster.nic_Bps * s.cost.efficiency, node.nic_Bps * other.efficiency);
    worst.others = nullptr, worst.efficiency = 1;
    worst.flops = std::min(worst.flops, other.flops), worst.Bps = std::min(worst.Bps, other.Bps),
    worst.latency_s = std::max(worst.latency_s, other.latency_s);
    INFO(text(s, seed));
    const double mixed = step_s(s, s.cluster, s.cost), of_worst = step_s(s, cluster, worst);
    slower.compare(mixed, of_worst);
    if (never_meet(s)) CHECK(mixed <= of_worst * (1 + 1e-6));
  }
  slower.tell("slower than a cluster with the worst of each", 0.15);
}

TEST_CASE(
    "where transfers do not meet, computation that communication slows more makes a step longer, and never longer than "
    "if it were always slowed") {
  Reversals shorter, longer;
  for (int i = 0; i < cases(150); ++i) {
    const std::uint64_t seed = seed_of(3, i);
    RandomStep s = random_step(seed, false);
    const auto step_s = [&](double slowdown) {
      s.cost.slowdown = slowdown;
      return replay(s.set, s.layout, s.model, s.cluster, s.cost, *s.routing, {0, true, false, {}}).step_s;
    };
    const double free = step_s(0);
    double before = free;
    INFO(text(s, seed));
    for (double slowdown : {0.1, 0.3, 0.6}) {
      const double slowed = step_s(slowdown);
      shorter.compare(before, slowed), longer.compare(slowed, free / (1 - slowdown));
      if (never_meet(s)) {
        CHECK(slowed >= before * (1 - 1e-6));
        CHECK(slowed <= free / (1 - slowdown) * (1 + 1e-6));
      }
      before = slowed;
    }
  }
  shorter.tell("shorter with more slowdown", 0.2);
  longer.tell("longer than if always slowed", 0.2);
}

TEST_CASE("where transfers do not meet, a faster switch, network, memory or processor never slows a step") {
  const auto faster = [](const std::string& what, ClusterSpec& cluster, FakeCost& cost) {
    if (what == "switch") cluster.nvswitch_Bps *= 2;
    if (what == "network") cluster.nic_Bps *= 2;
    if (what == "uplinks") cluster.oversubscription = std::max(1.0, cluster.oversubscription / 2);
    if (what == "latency") cost.latency_s /= 2;
    if (what == "memory") cost.Bps *= 2;
    if (what == "processor") cost.flops *= 2;
  };
  const int n = cases(400);
  int alone = 0;
  Reversals slower;
  for (int i = 0; i < n; ++i) {
    const std::uint64_t seed = seed_of(2, i);
    const RandomStep s = random_step(seed, false);
    alone += never_meet(s);
    const double before = step_s(s, s.cluster, s.cost),
                 floor = bound1(s.set, s.layout, s.cluster, s.cost, *s.routing, 0, s.rank);
    for (const std::string what : {"switch", "network", "uplinks", "latency", "memory", "processor"}) {
      ClusterSpec cluster = s.cluster;
      FakeCost cost = s.cost;
      faster(what, cluster, cost);
      INFO(text(s, seed) << ", twice the " << what);
      CHECK(bound1(s.set, s.layout, cluster, cost, *s.routing, 0, s.rank) <= floor * (1 + 1e-9));
      const bool network = what == "network" || what == "uplinks" || what == "latency";
      const double after = step_s(s, cluster, cost);
      slower.compare(after, before,
                     {s.cost.separate ? "two communicators" : "one communicator", network ? "network" : "computation"});
      if (never_meet(s)) CHECK(after <= before * (1 + 1e-6));
    }
  }
  if (n >= 400) CHECK(alone > n / 100);
  slower.tell("doublings that slow a step", 0.02);
}
