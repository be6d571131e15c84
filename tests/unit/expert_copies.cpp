// Experts with several slots: how rows are cut, and what ranks exchange.
#include "sim/program/compose/expert_copies.hpp"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "configs/base/error.hpp"

using namespace wt;

namespace {

ModelSpec four_experts() {
  ModelSpec m;
  m.layers = 1, m.d_model = 4, m.ffn = 2, m.experts = 4, m.top_k = 2;
  return m;
}

Layout two_ranks(std::vector<std::int64_t> slots) {
  Layout l;
  l.shard = l.expert = 2;
  l.placement = {std::move(slots)};
  return l;
}

}  // namespace

TEST_CASE("rows are cut evenly, the first copies get what is over") {
  const Layout l = two_ranks({0, 1, 0, 2, 3, 0});
  CHECK(rows_per_slot(l, 0, {7, 5, 1, 0}) == std::vector<double>{3, 5, 2, 1, 0, 2});
  CHECK(rows_per_slot(l, 0, {1.5, 5, 1, 0}) == std::vector<double>{0.5, 5, 0.5, 1, 0, 0.5});
}

TEST_CASE("no row is lost, and copies differ by one at most") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::int64_t> slots{0, 1, 2, 3, 0, 0, 0, 0};
    for (std::size_t i = 4; i < slots.size(); ++i) slots[i] = static_cast<std::int64_t>(random() % 4);
    std::shuffle(slots.begin(), slots.end(), random);
    std::vector<double> counts;
    for (int e = 0; e < 4; ++e) counts.push_back(static_cast<double>(random() % 50));
    const auto rows = rows_per_slot(two_ranks(slots), 0, counts);
    for (std::int64_t e = 0; e < 4; ++e) {
      double sum = 0, low = 1e9, high = 0;
      for (std::size_t s = 0; s < slots.size(); ++s)
        if (slots[s] == e) sum += rows[s], low = std::min(low, rows[s]), high = std::max(high, rows[s]);
      CHECK(sum == counts[static_cast<std::size_t>(e)]);
      CHECK(high - low <= 1);
    }
  }
}

TEST_CASE("what two ranks exchange is what both hold") {
  const Layout l = two_ranks({0, 1, 0, 2, 3, 0});
  const CopyExchange first = copy_exchange(four_experts(), l, 0, 0), second = copy_exchange(four_experts(), l, 0, 1);
  CHECK(first.experts == std::vector<std::int64_t>{0, 1});
  CHECK(second.experts == std::vector<std::int64_t>{0, 2, 3});
  CHECK(first.shared == std::vector<std::vector<std::int64_t>>{{}, {0}});
  CHECK(second.rows() == std::vector<std::int64_t>{1, 0});
  CHECK(is_further_copy(l, 0, 2));
  CHECK(!is_further_copy(l, 0, 0));
}

TEST_CASE("a placement that misses an expert or does not fill the ranks is refused") {
  CHECK_THROWS_WITH(two_ranks({0, 1, 0, 2, 1, 0}).check(four_experts(), "here"),
                    Catch::Contains("expert 3 has no slot"));
  CHECK_THROWS_WITH(two_ranks({0, 1, 2, 3, 0}).check(four_experts(), "here"), Catch::Contains("does not divide"));
  CHECK_THROWS_WITH(two_ranks({0, 1, 2, 4}).check(four_experts(), "here"), Catch::Contains("found expert 4"));
}
