// The Hopper grouped GEMM, whole and as it is, on the CPU (tests/fixtures/cuda_executor): every form, both tile widths,
// tails, empty groups, extreme routings, warps, copies and products in random orders; and mistakes that are planted in
// single instructions, which must all be found.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "kernels/kernels.h"
#include "tests/fixtures/cuda_executor/sm90.hpp"
#include "tests/fixtures/routing_checks.hpp"

using namespace wt::kernel_test;
using Catch::Matchers::Contains;
using wt::cuda_executor::Planted;

namespace {

constexpr WtStream kOnExecutor{0, nullptr};

Doubles integers(std::mt19937_64& random, int64_t n) {
  std::uniform_int_distribution<int> draw(-3, 3);
  Doubles values(static_cast<size_t>(n));
  for (double& value : values) value = draw(random);
  return values;
}

/// The order of warps, copies and products in a case; WT_RANDOM_SEED=N gives others.
void set_order(uint64_t seed) {
  const char* asked = std::getenv("WT_RANDOM_SEED");
  wt::cuda_executor::set_seed(seed + 1000 * (asked ? std::strtoull(asked, nullptr, 10) : 0));
}

/// Sums of small integers are exact; the products are rounded once.
void check_exact(std::vector<int32_t> ends, int64_t n, int64_t k, uint64_t seed) {
  std::mt19937_64 random{seed};
  const int64_t rows = ends.back(), groups = int64_t(ends.size());
  const Grouped g{std::move(ends),           n, k, integers(random, rows * k), integers(random, groups * n * k),
                  integers(random, rows * n)};
  CAPTURE(g.ends, n, k, seed);
  checked = kOnExecutor;
  set_order(seed);
  const Products found = products_of(WT_BF16, g);
  CHECK((found.y == pack(WT_BF16, g.forward())));
  CHECK((found.dx == pack(WT_BF16, g.backward_rows())));
  CHECK((found.dweight == pack(WT_BF16, g.backward_weight())));
}

}  // namespace

TEST_CASE("Hopper's grouped GEMM on the executor: tails and extreme routings, wide and narrow tiles") {
  const Routing routing =
      GENERATE(Routing::random, Routing::one_takes_all, Routing::one_row, Routing::nobody, Routing::skewed);
  const int64_t groups = GENERATE(1, 7), n = GENERATE(8, 264), k = GENERATE(8, 136);
  std::mt19937_64 random{uint64_t(groups * 1000 + n + k)};
  check_exact(ends_of(routing, groups, 40, random), n, k, uint64_t(n + k));
}

TEST_CASE("Hopper's grouped GEMM on the executor: more blocks of K than stages, several tiles a block") {
  const auto [groups, rows_each, n, k] =
      GENERATE(std::array<int64_t, 4>{3, 150, 392, 400}, std::array<int64_t, 4>{70, 3, 64, 128});
  const uint64_t seed = GENERATE(1, 2);
  std::mt19937_64 random{uint64_t(groups)};
  check_exact(ends_of(Routing::random, groups, rows_each, random), n, k, seed);
}

TEST_CASE("Hopper's grouped GEMM on the executor: a group's infinities stay in its own gradient") {
  std::mt19937_64 random{5};
  Grouped g = draw_grouped(WT_BF16, {70, 75, 75, 200}, 64, 64, random);
  checked = kOnExecutor;
  set_order(1);
  const Doubles clean = g.backward_weight();
  for (size_t i = 70 * 64; i < 75 * 64; ++i) g.x[i] = g.dy[i] = INFINITY;
  const Doubles found = unpack(WT_BF16, products_of(WT_BF16, g).dweight);
  const auto part = [](const Doubles& all, size_t from, size_t to) {
    return Doubles(all.begin() + std::ptrdiff_t(from * 4096), all.begin() + std::ptrdiff_t(to * 4096));
  };
  CHECK(error_of_sums(part(found, 0, 1), part(clean, 0, 1)) < tolerance(WT_BF16));
  CHECK(error_of_sums(part(found, 2, 4), part(clean, 2, 4)) < tolerance(WT_BF16));
}

namespace {

/// What the executor says of a launch with a mistake; empty if it finds none.
std::string found_with(Planted mistake, uint64_t seed) {
  std::mt19937_64 random{9};
  // Ragged, with more blocks of K than stages in both directions, so that every stage comes round.
  const Grouped g = draw_grouped(WT_BF16, {90, 90, 430}, 264, 328, random);
  const auto x = pack(WT_BF16, g.x), weight = pack(WT_BF16, g.weight), dy = pack(WT_BF16, g.dy);
  std::vector<unsigned char> y(x.size() * 2), dweight(weight.size() * 2);
  set_order(seed);
  wt::cuda_executor::planted = mistake;
  std::string found;
  try {
    wt_grouped_gemm_forward(kOnExecutor, WT_BF16, x.data(), weight.data(), g.ends.data(), g.rows(), g.groups(), g.n,
                            g.k, y.data());
    wt_grouped_gemm_backward_weight(kOnExecutor, WT_BF16, dy.data(), x.data(), g.ends.data(), g.rows(), g.groups(), g.n,
                                    g.k, dweight.data());
  } catch (const wt::cuda_executor::Failure& failure) {
    found = failure.what();
  }
  wt::cuda_executor::planted = Planted::nothing;
  return found;
}

}  // namespace

TEST_CASE("planted in Hopper's grouped GEMM: every mistake is found, and named") {
  const auto [mistake, message] = GENERATE(table<Planted, std::string>({
      {Planted::full_phase, "reads 16 bytes at offset"},
      {Planted::empty_phase,
       "1 waits in mbarrier.try_wait for parity 0 on mbarrier 1 of 8 arrivals (its phase 0 runs: 8 "
       "arrivals and 0 bytes to come) at grouped_gemm.cu"},
      {Planted::early_reuse, "read with nothing between"},
      {Planted::no_products_wait, "while an instruction on its way changes it"},
      {Planted::start_of_a, "runs over the end of its swizzled row"},
      {Planted::start_of_b, "runs over the end of its swizzled row"},
      {Planted::stride_of_b, "has a stride that is no multiple of its pattern"},
      {Planted::few_bytes, "0 arrivals and -16 bytes to come"},
      {Planted::many_bytes, "0 arrivals and 16 bytes to come"},
      {Planted::one_arrival, "read with nothing between"},
      {Planted::no_init_done, "whose initialisation no fence.mbarrier_init follows"},
      {Planted::no_async_fence, "no fence.proxy.async between"},
      {Planted::no_named_barrier, "with nothing between"},
      {Planted::no_products_begin, "since the last wgmma.fence"},
      {Planted::many_registers, "setmaxnreg.inc to 240"},
  }));
  const uint64_t seed = GENERATE(1, 2, 3);
  const std::string found = found_with(mistake, seed);
  CAPTURE(int(mistake), seed);
  CHECK_THAT(found, Contains(message));
}

TEST_CASE("with nothing planted nothing is found") { CHECK(found_with(Planted::nothing, 1).empty()); }
