#include "bench/gate/sequential.hpp"

#include <fmt/core.h>
#include <algorithm>

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>

#include "bench/gate/selftest.hpp"
#include "configs/base/error.hpp"

using Catch::Matchers::Contains;
using wt::kBlockSide;
using wt::SequentialGate;
using wt::Verdict;
using Values = std::vector<double>;

namespace {

std::vector<wt::GateRow> rows_of(std::size_t count) {
  std::vector<wt::GateRow> rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    rows[i].name = fmt::format("b{}", i);
    rows[i].unit = "s";
  }
  return rows;
}

// Blocks of normal noise around a millisecond until all is decided or `most` are done; how many were needed.
std::size_t run_until(SequentialGate& gate, double factor, double noise, std::size_t most, std::mt19937_64& random) {
  std::normal_distribution<double> value(1e-3, noise * 1e-3);
  std::size_t blocks = 0;
  for (; blocks < most && !gate.next().empty(); ++blocks) {
    const double drift = 1 + 0.5 * std::sin(static_cast<double>(blocks));  // from block to block, beyond any noise
    for (std::size_t i : gate.next()) {
      Values base, current;
      for (std::size_t p = 0; p < kBlockSide; ++p) {
        base.push_back(drift * value(random));
        current.push_back(drift * factor * value(random));
      }
      gate.add(i, base, current);
    }
  }
  return blocks;
}

}  // namespace

TEST_CASE("the distribution over blocks is the one of every order counted out") {
  // Two blocks: all 20 x 20 ways to choose three of six ranks in each.
  std::vector<int> u_of;
  for (unsigned mask = 0; mask < 64; ++mask) {
    if (__builtin_popcount(mask) != 3) continue;
    int u = 0;
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < i; ++j) u += (mask >> i & 1) && !(mask >> j & 1) ? 1 : 0;
    u_of.push_back(u);
  }
  REQUIRE(u_of.size() == 20);
  Values expected(19, 0.0);
  for (int a : u_of)
    for (int b : u_of)
      for (int u = a + b; u < 19; ++u) expected[static_cast<std::size_t>(u)] += 1.0 / 400;
  const Values found = wt::block_distribution(2);
  REQUIRE(found.size() == expected.size());
  for (std::size_t u = 0; u < found.size(); ++u) CHECK(found[u] == Approx(expected[u]));
  CHECK(wt::block_distribution(4)[0] == Approx(std::pow(20.0, -4)));
}

TEST_CASE("each of the 20 orders of a block is drawn about as often") {
  std::mt19937_64 random(3);
  std::map<std::vector<bool>, int> drawn;
  for (int i = 0; i < 20000; ++i) ++drawn[wt::block_order(random)];
  REQUIRE(drawn.size() == 20);
  for (const auto& [order, times] : drawn) {
    CHECK(std::count(order.begin(), order.end(), true) == 3);
    CHECK(times == Approx(1000).margin(150));  // 4.9 standard deviations
  }
}

TEST_CASE("a quiet benchmark that did not change is the same after two or three blocks, one that did is found soon") {
  std::mt19937_64 random(1);
  SequentialGate same(rows_of(10)), slower(rows_of(10)), faster(rows_of(10));
  CHECK(run_until(same, 1, 0.002, 20, random) <= 4);
  CHECK(run_until(slower, 1.05, 0.002, 20, random) == 4);  // 20^-4 x 10 benchmarks x 16 looks = 0.001
  CHECK(run_until(faster, 0.9, 0.002, 20, random) == 4);
  for (std::size_t i = 0; i < 10; ++i) {
    CHECK(same.rows()[i].verdict == Verdict::same);
    CHECK(slower.rows()[i].verdict == Verdict::slower);
    CHECK(slower.rows()[i].p_adjusted.value() == Approx(160 * std::pow(20.0, -4)));
    CHECK(slower.rows()[i].ratio.value() == Approx(1.05).epsilon(0.005));
    CHECK(slower.rows()[i].ratio_low.value() < slower.rows()[i].ratio.value());
    CHECK(slower.rows()[i].ratio_high.value() > slower.rows()[i].ratio.value());
    CHECK(slower.rows()[i].base_n == 12);
    CHECK(faster.rows()[i].verdict == Verdict::faster);
  }
}

TEST_CASE("noise takes more blocks, and a change of a bigger-is-better number has the other name") {
  std::mt19937_64 random(2);
  SequentialGate noisy(rows_of(1));
  CHECK(run_until(noisy, 1.05, 0.08, 400, random) > 4);
  CHECK(noisy.rows()[0].verdict == Verdict::slower);
  std::vector<wt::GateRow> rate = rows_of(1);
  rate[0].unit = "tokens/s";
  rate[0].smaller_is_better = false;
  SequentialGate falling(rate);
  run_until(falling, 0.9, 0.002, 20, random);
  CHECK(falling.rows()[0].verdict == Verdict::slower);
}

TEST_CASE("below the floors nothing is a finding, but a certain slowdown is not the same") {
  std::mt19937_64 random(4);
  SequentialGate little(rows_of(3)), brief(rows_of(3), [] {
    wt::GateOptions options;
    options.absolute_floor_s = 1e-4;  // of a millisecond: 10 %
    return options;
  }());
  run_until(little, 1.02, 0.001, 20, random);
  run_until(brief, 1.06, 0.001, 20, random);
  for (const SequentialGate* gate : {&little, &brief})
    for (const wt::GateRow& row : gate->rows()) {
      const bool certain = row.p_adjusted.value() < 0.01;
      CHECK(row.verdict == (certain ? Verdict::below_floor : Verdict::same));
    }
}

TEST_CASE("when nothing changed, at most one run in a hundred says otherwise, looked at sixteen times or not") {
  // Without floors and with a wide alpha, so that the share can be seen: 400 runs, each to its end or 48 blocks.
  wt::GateOptions options;
  options.alpha = 0.2;
  options.relative_floor = 0;
  options.absolute_floor_s = 0;
  std::mt19937_64 random(5);
  int slower = 0, outside = 0;
  for (int run = 0; run < 400; ++run) {
    SequentialGate gate(rows_of(3), options);
    run_until(gate, 1, 0.05, 48, random);
    bool any = false;
    for (const wt::GateRow& row : gate.rows()) {
      any = any || row.verdict == Verdict::slower;
      outside += row.ratio_low && (*row.ratio_low > 1 || *row.ratio_high < 1) ? 1 : 0;
    }
    slower += any ? 1 : 0;
  }
  CHECK(slower <= 0.2 * 400);
  CHECK(slower > 0);  // the test can fail
  CHECK(outside <= 0.05 * 1200);
}

TEST_CASE("what is unlikely to be slower waits after four blocks") {
  std::mt19937_64 random(6);
  std::vector<wt::GateRow> rows = rows_of(20);
  rows[0].samples_needed = 4;  // what two profiles of one block need; blocks are not counted so
  SequentialGate gate(rows);
  CHECK(!gate.rows()[0].samples_needed);
  CHECK(gate.next().size() == 20);
  run_until(gate, 1, 0.1, 4, random);
  const std::vector<std::size_t> due = gate.next();
  CHECK(!due.empty());
  CHECK(due.size() < 15);
  for (std::size_t i : due) CHECK((*gate.rows()[i].ratio > 1 && *gate.rows()[i].p < 0.2));
}

TEST_CASE("ties count half and never make a finding; wrong blocks are refused") {
  SequentialGate gate(rows_of(1));
  const Values one(kBlockSide, 1e-3);
  for (int b = 0; b < 4; ++b) gate.add(0, one, one);
  CHECK(*gate.rows()[0].p > 0.5);
  CHECK(*gate.rows()[0].ratio == 1);
  CHECK_THROWS_WITH(gate.add(0, {1e-3, 1e-3}, one), Contains("b0: found 2 values"));
  CHECK_THROWS_WITH(gate.add(0, {1e-3, 0, 1e-3}, one), Contains("above 0"));
}

TEST_CASE("rows that were not tested keep their verdict, and the worst come first") {
  std::mt19937_64 random(7);
  SequentialGate gate(rows_of(1));
  run_until(gate, 1.1, 0.001, 20, random);
  wt::GateResult result;
  result.rows = rows_of(2);
  result.rows[1].name = "gone";
  result.rows[1].verdict = Verdict::missing;
  const wt::GateResult judged = wt::judged_in_blocks(result, gate);
  CHECK(judged.order == wt::Order::in_blocks);
  CHECK(judged.rows[0].verdict == Verdict::slower);
  CHECK(judged.rows[1].verdict == Verdict::missing);
  CHECK_THAT(judged.order_sentence(), Contains("at most 1.0 %"));
  CHECK(judged.exit_status() == 1);
}

TEST_CASE("on recorded H100 timings gate run keeps what docs/gate.md promises") {
  wt::SelftestOptions options;
  options.trials = 60;
  options.block_trials = {{30, 15}, {30, 15, false}};
  const wt::RecordedRuns recorded = wt::read_recorded_runs(wt::default_recorded_runs());
  const std::vector<wt::BlocksResult> all = wt::selftest(recorded, options).blocks;
  for (const wt::BlocksResult& r : all) {
    INFO("filtered: " << r.filtered);
    CHECK(r.failed_runs == 0);
    CHECK(r.minutes_used <= 15);
    CHECK(r.recall.quiet > 0.9);
  }
  CHECK(all.at(0).recall.all > 0.7);
  // Programs that measure everything each time get fewer blocks in the same time.
  CHECK(all.at(1).recall.all < all.at(0).recall.all);
}
