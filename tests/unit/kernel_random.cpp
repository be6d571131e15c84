// Every CPU kernel against its reference at shapes and routings drawn from a seed, on every instruction set of this
// machine. Widths are any number, seldom a multiple of a register.
#include <catch2/catch.hpp>

#include "kernels/kernels.h"
#include "tests/fixtures/routing_checks.hpp"

using namespace wt::kernel_test;

namespace {

/// Of each kind, on each instruction set; fewer on the executor, which takes a thousand times as long.
uint64_t draw_count() { return checked.device < 0 ? 100 : 5; }
int64_t most_tokens() { return checked.device < 0 ? 300 : 60; }

struct Draw {
  std::mt19937_64 random;
  explicit Draw(uint64_t seed) : random(seed) {}

  int64_t between(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random); }
  bool chance() { return between(0, 1) == 1; }
  /// As many of few as of many.
  int64_t size(int64_t most) { return between(1, std::max<int64_t>(1, most >> between(0, 5))); }
  int64_t divisor(int64_t of) {
    std::vector<int64_t> all;
    for (int64_t d = 1; d <= of; ++d)
      if (of % d == 0) all.push_back(d);
    return all[size_t(between(0, int64_t(all.size()) - 1))];
  }
  WtDtype dtype() { return chance() ? WT_FP32 : WT_BF16; }
};

enum class Experts { any, one_takes_all, most_empty, one_token };

struct Routes {
  WtRouterSpec spec;
  Doubles logits;
  std::vector<float> bias;  ///< or none
  std::vector<int64_t> slot_of_expert;
};

Routes draw_routes(Experts experts, Draw& draws) {
  Routes r;
  const int64_t T = experts == Experts::one_token ? 1 : draws.size(most_tokens()), E = draws.size(256),
                groups = draws.divisor(E);
  const int64_t top_groups = draws.between(1, groups),
                k = draws.between(1, std::min<int64_t>(8, top_groups * (E / groups)));
  r.spec = {T,
            E,
            k,
            draws.divisor(T),
            draws.chance() ? WT_SOFTMAX : WT_SIGMOID,
            groups,
            top_groups,
            int(draws.between(1, 2)),
            draws.chance(),
            draws.chance() ? 1.0f : 2.5f,
            false};
  if (experts == Experts::one_takes_all) r.spec.group_best = 1;  // two others may be worth more than the one
  r.logits = draw(draws.random, WT_FP32, T * E);
  // 16 more than the others, of which none is beyond 6: those are chosen.
  const int64_t favoured = experts == Experts::one_takes_all ? 1 : std::min(E, k + 1),
                first = draws.between(0, E - favoured);
  if (experts == Experts::one_takes_all || experts == Experts::most_empty)
    for (int64_t i = 0; i < T * favoured; ++i) r.logits[size_t(i / favoured * E + first + i % favoured)] += 16;
  else if (draws.chance())
    r.bias = floats(draw(draws.random, WT_FP32, E, 0.1));
  r.slot_of_expert.resize(size_t(E));
  std::iota(r.slot_of_expert.begin(), r.slot_of_expert.end(), 0);
  std::shuffle(r.slot_of_expert.begin(), r.slot_of_expert.end(), draws.random);
  return r;
}

}  // namespace

TEST_CASE("random routings: router, sort, permute, combine and their gradients") {
  if (!use_isa()) return;
  const Experts experts = GENERATE(Experts::any, Experts::one_takes_all, Experts::most_empty, Experts::one_token);
  for (uint64_t seed = 0; seed < draw_count(); ++seed) {
    CAPTURE(seed);
    Draw draws(seed);
    const Routes in = draw_routes(experts, draws);
    const auto [T, E, k] = Shape{in.spec.T, in.spec.E, in.spec.k};
    CAPTURE(T, E, k, in.spec.sequence, in.spec.score, in.spec.groups, in.spec.top_groups, in.spec.group_best,
            in.spec.normalize);
    const Routed r = route(in.logits, in.spec, in.bias.empty() ? nullptr : in.bias.data(), in.slot_of_expert.data());
    check_router(in.spec, in.logits, in.bias, r);
    check_router_gradient(in.spec, in.logits, r, draws.chance(), draws.random);
    check_sort(in.spec, r, in.slot_of_expert);
    if (experts == Experts::one_takes_all) CHECK(*std::max_element(r.slot_counts.begin(), r.slot_counts.end()) == T);
    if (experts == Experts::most_empty && in.spec.groups == 1)
      CHECK(std::count(r.slot_counts.begin(), r.slot_counts.end(), 0) >= E - k - 1);
    check_moves(draws.dtype(), {T, E, k}, draws.size(150), r, draws.random);
  }
}

TEST_CASE("random routings: the mean of a token's k copies is the token") {
  if (!use_isa()) return;
  for (uint64_t seed = 0; seed < draw_count(); ++seed) {
    CAPTURE(seed);
    Draw draws(seed);
    const Routes in = draw_routes(Experts::any, draws);
    const auto [T, E, k] = Shape{in.spec.T, in.spec.E, in.spec.k};
    const int64_t D = draws.size(150);
    const WtDtype dtype = draws.dtype();
    const Routed r = route(in.logits, in.spec);
    const Doubles x = draw(draws.random, dtype, T * D);
    const auto px = pack(dtype, x);
    auto rows = pack(dtype, Doubles(size_t(T * k * D))), back = px;
    const std::vector<float> weights(size_t(T * k), 1.0f / float(k));
    REQUIRE(wt_permute_forward(checked, dtype, px.data(), r.order.data(), T, k, D, rows.data()) == WT_OK);
    REQUIRE(wt_combine_forward(checked, dtype, rows.data(), r.inverse.data(), weights.data(), nullptr, T, k, D,
                               back.data()) == WT_OK);
    CHECK(distance(unpack(dtype, back), x) < 1e-6);  // in bf16 too: what rounds to x is within fp32's rounding of it
  }
}

TEST_CASE("random groups: the three products") {
  if (!use_isa() || checked.device >= 0) return;  // on CUDA: tests of their own
  const Routing routing = GENERATE(Routing::random, Routing::one_takes_all, Routing::one_row, Routing::skewed);
  for (uint64_t seed = 0; seed < draw_count(); ++seed) {
    CAPTURE(seed);
    Draw draws(seed);
    const int64_t groups = draws.size(256), rows_each = draws.between(1, 1 + 300 / groups), n = draws.size(60),
                  k = draws.size(60);
    CAPTURE(groups, rows_each, n, k);
    const WtDtype dtype = draws.dtype();
    check_products(dtype, draw_grouped(dtype, ends_of(routing, groups, rows_each, draws.random), n, k, draws.random));
  }
}

TEST_CASE("random shapes: norm, activation, rotary positions, loss, optimiser, blocks") {
  if (!use_isa()) return;
  for (uint64_t seed = 0; seed < draw_count(); ++seed) {
    CAPTURE(seed);
    Draw draws(seed);
    const WtDtype dtype = draws.dtype();
    check_rmsnorm(dtype, draws.size(300), draws.size(150), draws.random);
    check_swiglu(dtype, draws.size(300), draws.size(100), draws.random);
    check_rope(dtype, draws.size(4), draws.size(60), draws.between(0, 6), draws.between(1, 3), 2 * draws.size(40),
               draws.random);
    const int64_t T = draws.size(300), V = draws.size(600);
    std::vector<int64_t> target(size_t(T), 0);
    for (int64_t& t : target) t = draws.between(0, 4) == 0 ? -100 : draws.between(0, V - 1);
    check_cross_entropy(dtype, draw(draws.random, dtype, T * V, 4), target, V);
    check_adamw(draws.size(9000), int(draws.between(1, 4)), draws.random);
    check_lion(draws.size(9000), int(draws.between(1, 4)), draws.random);
    for (const WtBlockFormat format : {WT_INT8, WT_FP8})
      check_blocks(dtype, format, draws.size(5), draws.size(400), draws.random);
  }
}
