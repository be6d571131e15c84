// Loads on pools: alone, met halfway, and as SimGrid has them when it solves all of them.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "sim/cluster/child.hpp"
#include "sim/cluster/engine.hpp"

using namespace wt;

namespace {

struct Planned {
  double start_s;  ///< below 0: when load -start_s - 1 ends
  PoolLoad load;
  double scale = 1;
};

class Plan {
 public:
  Plan(std::vector<Planned> loads, const std::vector<double>& capacity, Solver solver)
      : loads_(std::move(loads)), engine_([this](std::int64_t event) { on_event(event); }, solver) {
    for (const double each : capacity) engine_.add_pool(each);
    engine_.seal();
    ends_.assign(loads_.size(), -1);
  }
  std::vector<double> run() {
    for (std::size_t i = 0; i < loads_.size(); ++i)
      if (loads_[i].start_s > 0)
        engine_.delay(loads_[i].start_s, static_cast<std::int64_t>(loads_.size() + i));
      else if (loads_[i].start_s == 0)
        start(i);
    engine_.run();
    return ends_;
  }

 private:
  void start(std::size_t i) { engine_.load(loads_[i].load, loads_[i].scale, static_cast<std::int64_t>(i)); }
  void on_event(std::int64_t event) {
    const std::size_t i = static_cast<std::size_t>(event);
    if (i >= loads_.size()) return start(i - loads_.size());
    ends_[i] = engine_.now();
    for (std::size_t next = 0; next < loads_.size(); ++next)
      if (loads_[next].start_s == -1 - static_cast<double>(i)) start(next);
  }

  std::vector<Planned> loads_;
  std::vector<double> ends_;
  Engine engine_;
};

std::vector<double> ends_of(const std::vector<Planned>& loads, const std::vector<double>& capacity,
                            Solver solver = Solver::when_shared) {
  const std::string bytes = run_in_child([&] {
    const std::vector<double> ends = Plan(loads, capacity, solver).run();
    return std::string(reinterpret_cast<const char*>(ends.data()), ends.size() * sizeof(double));
  });
  std::vector<double> ends(bytes.size() / sizeof(double));
  std::memcpy(ends.data(), bytes.data(), bytes.size());
  return ends;
}

void check_ends(const std::vector<Planned>& loads, const std::vector<double>& capacity,
                const std::vector<double>& expected) {
  for (const Solver solver : {Solver::when_shared, Solver::always}) {
    const std::vector<double> ends = ends_of(loads, capacity, solver);
    REQUIRE(ends.size() == expected.size());
    for (std::size_t i = 0; i < ends.size(); ++i) {
      INFO("load " << i << (solver == Solver::always ? ", all by SimGrid" : ""));
      CHECK(ends[i] == Approx(expected[i]).epsilon(1e-9));
    }
  }
}

constexpr double kUnit = 1e9;  // a second of a pool's capacity

}  // namespace

TEST_CASE("a load that has its pools to itself takes as long as its slowest pool") {
  check_ends({{0, {{0, 1, 2}, {kUnit, 3 * kUnit, 2 * kUnit}}, 0.5}, {0.25, {{3}, {kUnit}}}},
             {kUnit, 2 * kUnit, kUnit, kUnit}, {1, 1.25});
}

TEST_CASE("loads that meet share the pool, with what is left of the first") {
  check_ends({{0, {{0}, {2 * kUnit}}}, {1, {{0}, {0.5 * kUnit}}}}, {kUnit}, {2.5, 2});
  // Three on one pool, and what one of them has on another that it has to itself.
  check_ends({{0, {{0}, {kUnit}}}, {0, {{0, 1}, {kUnit, kUnit}}}, {0, {{0}, {kUnit}}}}, {kUnit, kUnit}, {3, 3, 3});
}

TEST_CASE("a load that starts when another ends does not meet it") {
  check_ends({{0, {{0, 1}, {kUnit, kUnit}}}, {-1, {{1}, {kUnit}}}, {1, {{0}, {2 * kUnit}}}}, {kUnit, kUnit}, {1, 2, 3});
}

TEST_CASE("a load learns of pools that others come to while it shares") {
  // The wide one has three pools alike, and meets one load after the other on them: each halves it.
  check_ends({{0, {{0, 1, 2}, {4 * kUnit, 4 * kUnit, 4 * kUnit}}},
              {1, {{0}, {kUnit}}},
              {2, {{1}, {kUnit}}},
              {4, {{2}, {2 * kUnit}}}},
             {kUnit, kUnit, kUnit}, {7, 3, 4, 7.5});
}

TEST_CASE("loads that share a pool still do when only one of them learns of another") {
  // Of pools 0 and 1, which are alike for the first two, the third one makes 1 the one that matters. It leaves, and the
  // fourth meets the first one alone, to which 0 would be as good now.
  const std::vector<Planned> loads{{0, {{0, 1, 2}, {4 * kUnit, 4 * kUnit, kUnit}}},
                                   {0, {{0, 1}, {4 * kUnit, 4 * kUnit}}},
                                   {0, {{0, 1}, {0.1 * kUnit, 0.2 * kUnit}}},
                                   {2, {{2}, {kUnit}}}};
  const std::vector<double> capacity(3, kUnit), ends = ends_of(loads, capacity, Solver::always);
  CHECK(ends[0] > 8);
  check_ends(loads, capacity, ends);
}

TEST_CASE("random loads end when SimGrid has them end that solves all of them") {
  std::mt19937_64 random(17);
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
  for (int round = 0; round < 40; ++round) {
    const int pools = 3 + draw(10), count = 4 + draw(20);
    std::vector<double> capacity;
    for (int p = 0; p < pools; ++p) capacity.push_back(kUnit * (1 + draw(3)));
    std::vector<Planned> loads;
    for (int i = 0; i < count; ++i) {
      PoolLoad load;
      for (int p = 0; p < pools; ++p)
        if (draw(3) == 0 || (load.pools.empty() && p == pools - 1)) {
          load.pools.push_back(p);
          load.amounts.push_back(kUnit * (draw(2) == 0 ? 1 : 1 + draw(4)));  // pools that are alike, too
        }
      const double start_s = i > 0 && draw(3) == 0 ? -1 - draw(i) : 0.25 * draw(16);
      loads.push_back({start_s, load, 0.5 + 0.125 * draw(8)});
    }
    INFO("round " << round);
    check_ends(loads, capacity, ends_of(loads, capacity, Solver::always));
  }
}
