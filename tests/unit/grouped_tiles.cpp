// The sm_90a grouped GEMM without a GPU: its scheduler, boxes, descriptors, clearing and stores (kernels/cuda/
// grouped_tiles.hpp) drive a model of the hardware (tests/support/sm90_model.hpp) through whole products. What only a
// GPU can show, and a test on the CPU cannot: the instructions themselves and their timing.
#include "kernels/cuda/grouped_tiles.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "tests/support/grouped_reference.hpp"
#include "tests/support/sm90_model.hpp"

using namespace wt::kernel_test;
using namespace wt::kernels::grouped;
using wt::kernels::GroupedForm;

namespace {

constexpr double kUnwritten = -777.5;

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

/// One tile through the model, as the kernel's two roles go about it; every store must meet an unwritten element.
void compute(GroupedForm form, Sizes s, int tile_n, const Tile& tile, const Tensor3& a, const Tensor3& b,
             Doubles& out) {
  const bool ta = a_transposed(form), tb = b_transposed(form);
  Sm90 machine(uint32_t(stage_bytes(tile_n)));
  std::vector<Accumulators> sums(kConsumers, Accumulators(tile_n));
  for (int block = 0; block < tile.blocks; ++block) {
    int64_t bytes = 0;
    for (int i = 0; i < boxes(ta, kTileM); ++i) {
      const Box box = box_of_a(form, tile, block, i);
      bytes += machine.copy_box(a, box_rows(ta, kTileM), box.offset, box.inner, box.outer, box.depth);
    }
    for (int i = 0; i < boxes(tb, tile_n); ++i) {
      const Box box = box_of_b(form, tile, block, i);
      bytes += machine.copy_box(b, box_rows(tb, tile_n), box.offset, box.inner, box.outer, box.depth);
    }
    REQUIRE(bytes == stage_bytes(tile_n));  // what the full barrier expects
    const int valid = form == GroupedForm::backward_weight ? valid_rows(tile, block) : kTileK;
    for (int i = 0; i < units_to_clear(tile_n, valid); ++i) machine.clear_unit(unit_to_clear(valid, i));

    for (int step = 0; step < kTileK / kMmaK; ++step) {
      const uint64_t of_b = descriptor(Sm90::kBase + kBOffset + uint32_t(step * step_bytes(tb)), tb);
      std::vector<double> columns(size_t(tile_n * kMmaK));
      for (int n = 0; n < tile_n; ++n)
        for (int k = 0; k < kMmaK; ++k) columns[size_t(n * kMmaK + k)] = machine.operand(of_b, tb, n, k);
      for (int consumer = 0; consumer < kConsumers; ++consumer) {
        const uint64_t of_a = descriptor(Sm90::kBase + uint32_t(a_offset(consumer) + step * step_bytes(ta)), ta);
        for (int m = 0; m < kMmaM; ++m) {
          double row[kMmaK];
          for (int k = 0; k < kMmaK; ++k) row[k] = machine.operand(of_a, ta, m, k);
          for (int n = 0; n < tile_n; ++n) {
            double sum = 0;
            for (int k = 0; k < kMmaK; ++k) sum += row[k] * columns[size_t(n * kMmaK + k)];
            sums[size_t(consumer)].at(m, n) += sum;
          }
        }
      }
    }
  }
  for (int consumer = 0; consumer < kConsumers; ++consumer)
    for (int t = 0; t < 128; ++t)
      for (int half = 0; half < 2; ++half)
        for (int pair = 0; pair < tile_n / 16; ++pair) {
          const auto two = [&](int thread, bool right) {
            const int i = pair_register(pair, right, half);
            return std::array<double, 2>{sums[size_t(consumer)].of(thread, i),
                                         sums[size_t(consumer)].of(thread, i + 1)};
          };
          const auto mine = two(t, takes_right(t));
          const auto got = two(t ^ 1, !takes_right(t ^ 1));  // what the neighbour does not keep
          const auto& low = takes_right(t) ? got : mine;
          const auto& high = takes_right(t) ? mine : got;
          const int row = consumer * kMmaM + accumulator_row(t, 2 * half), column = piece_column(t, pair);
          if (!inside(form, s, tile, row, column)) continue;
          const int64_t at = output_index(form, s, tile, row, column);
          REQUIRE(at % kPieceColumns == 0);  // 8 bytes
          for (size_t e = 0; e < kPieceColumns; ++e) {
            double& element = out.at(size_t(at) + e);
            REQUIRE(element == kUnwritten);
            element = e < 2 ? low[e] : high[e - 2];
          }
        }
}

Doubles integers(std::mt19937_64& random, int64_t n) {
  std::uniform_int_distribution<int> draw(-3, 3);
  Doubles values(static_cast<size_t>(n));
  for (double& value : values) value = draw(random);
  return values;
}

}  // namespace

TEST_CASE("sm_90a grouped GEMM on a model of the hardware: exact products, every element written once") {
  const GroupedForm form = GENERATE(GroupedForm::forward, GroupedForm::backward_rows, GroupedForm::backward_weight);
  const int tile_n = GENERATE(128, 256);
  const Routing routing =
      GENERATE(Routing::random, Routing::one_takes_all, Routing::one_row, Routing::nobody, Routing::skewed);
  const int seed = GENERATE(1, 2);
  std::mt19937_64 random{uint64_t(seed)};
  Grouped g;
  g.ends = ends_of(routing, seed == 1 ? 3 : 5, 70, random);
  g.n = 8 * std::uniform_int_distribution<int64_t>(1, 34)(random);  // up to 272: tails of every tile
  g.k = 8 * std::uniform_int_distribution<int64_t>(1, 34)(random);
  g.x = integers(random, g.rows() * g.k), g.dy = integers(random, g.rows() * g.n),
  g.weight = integers(random, g.groups() * g.n * g.k);
  const Sizes s{int(g.groups()), int(g.rows()), int(g.n), int(g.k)};
  CAPTURE(s.groups, s.rows, s.n, s.k);

  const Tensor3 x{&g.x, g.k, g.rows(), 1}, dy{&g.dy, g.n, g.rows(), 1}, weight{&g.weight, g.k, g.n, g.groups()};
  const Tensor3& a = form == GroupedForm::forward ? x : dy;
  const Tensor3& b = form == GroupedForm::backward_weight ? x : weight;
  const Doubles expected = form == GroupedForm::forward         ? g.forward()
                           : form == GroupedForm::backward_rows ? g.backward_rows()
                                                                : g.backward_weight();
  Doubles out(expected.size(), kUnwritten);
  const std::vector<int> first = first_tiles(form, s, tile_n, g);
  CHECK(first.back() <= most_tiles(form, s, tile_n));
  for (int number = 0; number < first.back(); ++number)
    compute(form, s, tile_n, tile_at(form, s, tile_n, first, g, number), a, b, out);
  CHECK(out.size() == expected.size());
  CHECK(std::mismatch(out.begin(), out.end(), expected.begin()).first - out.begin() == std::ptrdiff_t(out.size()));
}

TEST_CASE("what one group holds does not leak into another's weight gradient, not even infinity") {
  std::mt19937_64 random{3};
  Grouped g;
  g.ends = {70, 75, 75, 150};
  g.n = g.k = 16;
  g.x = integers(random, 150 * 16), g.dy = integers(random, 150 * 16);
  const Doubles clean = g.backward_weight();
  for (size_t i = 70 * 16; i < 75 * 16; ++i) g.x[i] = g.dy[i] = INFINITY;  // group 1
  const Sizes s{4, 150, 16, 16};
  const GroupedForm form = GroupedForm::backward_weight;
  Doubles out(clean.size(), kUnwritten);
  const auto first = first_tiles(form, s, 128, g);
  for (int number = 0; number < first.back(); ++number)
    compute(form, s, 128, tile_at(form, s, 128, first, g, number), {&g.dy, 16, 150, 1}, {&g.x, 16, 150, 1}, out);
  for (size_t i = 0; i < out.size(); ++i) {
    if (i / 256 != 1) CHECK(out[i] == clean[i]);
  }
}

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

namespace {

/// A shared-memory barrier by "mbarrier": a phase ends when all arrivals and all expected bytes have come.
struct Barrier {
  int arrivals, pending = arrivals;
  int64_t bytes = 0;
  uint32_t phase = 0;
  bool passed(uint32_t parity) const { return (phase & 1) != parity; }  // the phase of that parity is over
  void arrive() { --pending, settle(); }
  void come(int64_t n) { bytes -= n, settle(); }
  void settle() {
    if (pending == 0 && bytes == 0) ++phase, pending = arrivals;
  }
};

}  // namespace

TEST_CASE("the ring of stages neither hangs nor overwrites what is still read, in any order of events") {
  const int stages_count = GENERATE(2, 4, 6), seed = GENERATE(range(0, 20));
  constexpr int kBlocks = 50, kWarps = 8, kBytes = 1000;
  std::mt19937_64 random{uint64_t(seed)};
  std::vector<Barrier> full(size_t(stages_count), Barrier{1}), empty(size_t(stages_count), Barrier{kWarps});
  std::vector<int> holds(size_t(stages_count), -1);  // the block that a stage holds
  std::vector<std::pair<int, int>> copies;           // stage, block: on their way
  Ring producer(stages_count);
  std::vector<Ring> consumers(kWarps, Ring(stages_count));
  std::vector<int> read(kWarps, 0), released(kWarps, 0);  // blocks read; released is one behind, as the kernel does it
  int sent = 0;
  for (int idle = 0; idle < 2000 && released != std::vector<int>(kWarps, kBlocks); ++idle) {
    const size_t who = std::uniform_int_distribution<size_t>(0, kWarps + 1)(random);
    if (who == kWarps) {
      if (sent == kBlocks || !empty[size_t(producer.stage)].passed(producer.empty_parity())) continue;
      full[size_t(producer.stage)].bytes += kBytes;
      full[size_t(producer.stage)].arrive();
      copies.emplace_back(producer.stage, sent++);
      producer.next();
    } else if (who == kWarps + 1) {
      if (copies.empty()) continue;
      const auto it =
          copies.begin() + std::uniform_int_distribution<std::ptrdiff_t>(0, std::ptrdiff_t(copies.size()) - 1)(random);
      const auto [stage, block] = *it;
      copies.erase(it);
      for (int done : released) REQUIRE(done >= block - stages_count + 1);  // nobody still reads what is overwritten
      holds[size_t(stage)] = block;
      full[size_t(stage)].come(kBytes);
    } else {
      Ring& at = consumers[who];
      if (read[who] == kBlocks) {
        if (released[who] < kBlocks) empty[size_t((kBlocks - 1) % stages_count)].arrive(), ++released[who];
        continue;
      }
      if (!full[size_t(at.stage)].passed(at.full_parity())) continue;
      REQUIRE(holds[size_t(at.stage)] == read[who]);
      if (read[who] > 0) empty[size_t((read[who] - 1) % stages_count)].arrive(), ++released[who];
      ++read[who];
      at.next();
    }
    idle = 0;
  }
  CHECK(released == std::vector<int>(kWarps, kBlocks));
}
