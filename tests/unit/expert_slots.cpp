// Slots with copies of busy experts, and slots filled by node.
#include "planner/placement/expert_slots.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <numeric>
#include <random>

#include "configs/base/error.hpp"

using namespace wt;

namespace {

LoadScenario loads_of(std::vector<double> counts) { return {"made up", {std::move(counts)}, {}}; }

double load_of(const std::vector<double>& counts, const std::vector<std::int64_t>& slots, std::int64_t ranks,
               std::int64_t parts = 0) {
  return slots_load(loads_of(counts), {slots}, 1, ranks, parts);
}

std::vector<double> random_counts(std::mt19937_64& engine, std::size_t experts) {
  std::vector<double> out;
  for (std::size_t e = 0; e < experts; ++e) out.push_back(1 + static_cast<double>(engine() % 1000));
  return out;
}

/// The least max/mean of all ways to give `further` slots a rank to copies and all slots to ranks, copies alike.
double brute_force(const std::vector<double>& counts, std::int64_t ranks, std::int64_t further) {
  const auto experts = static_cast<std::int64_t>(counts.size());
  std::vector<std::int64_t> slots(static_cast<std::size_t>(experts + further * ranks));
  double best = 1e300;
  const std::function<void(std::size_t, std::int64_t)> choose = [&](std::size_t at, std::int64_t least) {
    if (at < slots.size()) {
      for (std::int64_t e = least; e < experts; ++e) slots[at] = e, choose(at + 1, e);
      return;
    }
    for (std::int64_t e = 0; e < experts; ++e)
      if (std::find(slots.begin(), slots.end(), e) == slots.end()) return;
    std::vector<std::int64_t> order = slots;
    do best = std::min(best, load_of(counts, order, ranks));
    while (std::next_permutation(order.begin(), order.end()));
  };
  choose(0, 0);
  return best;
}

}  // namespace

TEST_CASE("one expert with half of all tokens: copies even it out, a placement alone cannot") {
  const std::vector<double> counts{6, 2, 2, 2};
  CHECK(load_of(counts, fill_slots({counts}, 2, {}), 2) == Approx(8.0 / 6));
  const std::vector<std::int64_t> slots = fill_slots({counts}, 2, {.further = 1});
  CHECK(slots.size() == 6);
  CHECK(load_of(counts, slots, 2) == Approx(1));  // copies of 0 and of another: 3, 2 and 1 on each rank
}

TEST_CASE("copies are near the best of all ways to place them, and every expert has a slot") {
  std::mt19937_64 engine(5);
  double worst = 1;
  for (int trial = 0; trial < 20; ++trial) {
    const std::vector<double> counts = random_counts(engine, 4);
    const std::vector<std::int64_t> slots = fill_slots({counts}, 2, {.further = 1});
    for (std::int64_t e = 0; e < 4; ++e) CHECK(std::count(slots.begin(), slots.end(), e) >= 1);
    const double best = brute_force(counts, 2, 1), found = load_of(counts, slots, 2);
    CHECK(found >= best - 1e-9);
    worst = std::max(worst, found / best);
  }
  CHECK(worst < 1.15);
}

TEST_CASE("EPLB's README example: 12 experts in 16 slots of 8 ranks of 2 nodes") {
  // https://github.com/deepseek-ai/EPLB: its layers have loads of 138.5 and 172 of a mean of 129.125 and 144.5.
  const std::vector<double> one{90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86};
  for (const std::int64_t of_node : {0, 2}) {
    const std::vector<std::int64_t> slots = fill_slots({one}, 4, {.further = 1, .ranks_per_node = of_node});
    CHECK(slots.size() == 16);
    CHECK(load_of(one, slots, 4) * 258.25 < 270);
  }
}

TEST_CASE("by node first: nodes are as even as can be, and ranks hardly less than without nodes") {
  std::mt19937_64 engine(11);
  double by_node = 0, flat = 0;
  for (int trial = 0; trial < 30; ++trial) {
    const std::vector<double> counts = random_counts(engine, 32);
    const auto nodes_first = fill_slots({counts}, 8, {.ranks_per_node = 4}), ranks_alone = fill_slots({counts}, 8, {});
    by_node += load_of(counts, nodes_first, 8, 2) - 1, flat += load_of(counts, ranks_alone, 8, 2) - 1;
    CHECK(load_of(counts, nodes_first, 8) < load_of(counts, ranks_alone, 8) + 0.05);
  }
  CHECK(by_node < flat / 2);
}

TEST_CASE("experts that can stay on their ranks do; what moves is counted at the rank with most") {
  const std::vector<double> counts{9, 1, 8, 2, 7, 3, 6, 4};
  const Placement first = fill_slots({loads_of(counts)}, 1, 4, {});
  CHECK(experts_moved(first, fill_slots({loads_of(counts)}, 1, 4, {.from = first}), 8, 1, 4) == 0);
  CHECK(experts_moved({}, {}, 8, 1, 4) == 0);
  CHECK(experts_moved({}, {{1, 0, 2, 3}}, 4, 1, 2) == 0);  // inside a rank
  CHECK(experts_moved({}, {{2, 1, 0, 3}}, 4, 1, 2) == 1);  // an exchange of two
  CHECK(experts_moved({}, {{2, 3, 0, 1}, {2, 1, 0, 3}}, 4, 2, 2) == 3);
  CHECK(experts_moved({{0, 1, 2, 0, 2, 3, 1, 0}}, {{0, 1, 2, 3, 2, 3, 1, 0}}, 4, 1, 2) == 1);
  CHECK(experts_moved({}, {{0, 1, 2, 3, 3, 2, 0, 3}}, 4, 1, 2) == 2);  // the first rank gets 2 and 3
}

TEST_CASE("slots that cannot be are refused") {
  CHECK_THROWS_WITH(fill_slots({{1, 2, 3}}, 2, {}), Catch::Contains("found 3 experts on 2 expert ranks"));
  CHECK_THROWS_WITH(fill_slots({{1, 2, 3, 4}}, 2, {.further = 3}), Catch::Contains("found 3 further slots"));
  CHECK_THROWS_WITH(fill_slots({{1, 2, 3, 4}}, 4, {.ranks_per_node = 3}), Catch::Contains("nodes of 3"));
}
