// The scheduler of the sm_90a grouped GEMM (kernels/cuda/grouped_tiles.hpp) at many groups. All else of it runs with
// the kernel (grouped_on_executor.cpp).
#include "kernels/cuda/grouped_tiles.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "tests/fixtures/grouped_reference.hpp"

using namespace wt::kernel_test;
using namespace wt::kernels::grouped;
using wt::kernels::GroupedForm;

namespace {

std::vector<int> first_tiles(GroupedForm form, Sizes s, int tile_n, const Grouped& g) {
  std::vector<int> first{0};
  for (int64_t i = 0; i < g.groups(); ++i)
    first.push_back(first.back() + tiles_of_group(form, s, tile_n, int(g.end(i) - g.begin(i))));
  return first;
}

Tile tile_at(GroupedForm form, Sizes s, int tile_n, const std::vector<int>& first, const Grouped& g, int number) {
  const int group = group_of_tile(first.data(), s.groups, number);
  return tile_in_group(form, s, tile_n, number - first[size_t(group)], group, int(g.begin(group)),
                       int(g.end(group) - g.begin(group)));
}

}  // namespace

TEST_CASE("the scheduler covers each group's product once, however its rows fall, and no tile is empty") {
  const GroupedForm form = GENERATE(GroupedForm::forward, GroupedForm::backward_weight);
  const int tile_n = GENERATE(128, 256);
  const Routing routing =
      GENERATE(Routing::random, Routing::one_takes_all, Routing::one_row, Routing::nobody, Routing::skewed);
  const int64_t groups = GENERATE(1, 64, 1024);
  std::mt19937_64 random{uint64_t(groups)};
  Grouped g;
  g.ends = ends_of(routing, groups, 300, random);
  const Sizes s{int(groups), int(g.rows()), 2056, 1400};
  const auto first = first_tiles(form, s, tile_n, g);
  CHECK(first.back() <= most_tiles(form, s, tile_n));
  std::vector<std::array<int, 3>> seen;  // group, m, n
  bool inside_all = true;
  for (int number = 0; number < first.back(); ++number) {
    const Tile t = tile_at(form, s, tile_n, first, g, number);
    inside_all = inside_all && inside(form, s, t, 0, 0) && t.m % kTileM == 0 && t.n % tile_n == 0 &&
                 t.first_row == g.begin(t.group) && t.group_rows == g.end(t.group) - g.begin(t.group);
    seen.push_back({t.group, t.m, t.n});
  }
  CHECK(inside_all);
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  size_t expected = 0;  // tiles that hold an element, counted from the sizes alone
  for (int64_t i = 0; i < groups; ++i) {
    const int m = output_rows(form, s, int(g.end(i) - g.begin(i)));
    for (int row = 0; row < m; row += kTileM) expected += size_t((output_columns(form, s) + tile_n - 1) / tile_n);
  }
  CHECK(seen.size() == expected);
}
