// Router, sort, permute and combine on the CPU: references, gradients, and what routing must conserve, on random
// routing and on its extremes (one expert takes all, empty experts, one token, k = 1, k = E).
#include <catch2/catch.hpp>

#include "kernels/kernels.h"
#include "tests/fixtures/routing_checks.hpp"

using namespace wt::kernel_test;
namespace reference = wt::reference;

TEST_CASE("router: scores, choice, weights, sums and gradient of every variant") {
  if (!use_isa()) return;
  struct Variant {
    Shape shape;
    int64_t sequence, groups, top_groups;
  };
  const auto [shape, sequence, groups, top_groups] =
      GENERATE(Variant{{6, 8, 2}, 3, 1, 1}, Variant{{1, 1, 1}, 1, 1, 1}, Variant{{4, 40, 4}, 1, 5, 2},
               Variant{{2, 6, 6}, 2, 3, 3}, Variant{{3, 37, 4}, 3, 37, 5}, Variant{{2, 512, 8}, 1, 8, 4},
               Variant{{4, 12, 3}, 2, 4, 1});
  const auto [T, E, k] = shape;
  const bool sigmoid = GENERATE(false, true), normalize = GENERATE(true, false), biased = GENERATE(true, false);
  const int group_best = GENERATE(1, 2);
  std::mt19937_64 random{uint64_t(E)};
  // The bias brings some below zero, which an expert that is not there must not beat.
  Doubles bias = draw(random, WT_FP32, E, 0.1);
  for (double& b : bias) b -= 1;
  const Doubles logits = draw(random, WT_FP32, T * E, 2);
  const auto fbias = floats(bias);
  const WtRouterSpec spec{T,          E,         k,    sequence, sigmoid ? WT_SIGMOID : WT_SOFTMAX, groups, top_groups,
                          group_best, normalize, 2.5f, false};
  const Routed r = route(logits, spec, biased ? fbias.data() : nullptr);
  check_router(spec, logits, biased ? fbias : std::vector<float>{}, r);
  if (E <= 64)
    check_router_gradient(spec, logits, r, GENERATE(true, false), random);  // finite differences of every logit
}

TEST_CASE("router: ties go to the lowest expert and group, NaN rows stay valid") {
  if (!use_isa()) return;
  Doubles logits(2 * 20, 1.0);
  logits[19] = logits[17] = 2.0;
  logits[20] = NAN;
  const Routed r = route(logits, plain({2, 20, 3}, true));
  CHECK(r.index == std::vector<int64_t>{17, 19, 0, 0, 1, 2});
  CHECK(std::isnan(r.weights[3]));
  // Sigmoid keeps the NaN to one expert, which is chosen so that the weights show it.
  WtRouterSpec spec = plain({2, 20, 3}, false);
  spec.score = WT_SIGMOID, spec.groups = 4, spec.top_groups = GENERATE(1, 2), spec.group_best = 2;
  logits[20] = 1.0, logits[33] = NAN;
  const Routed grouped = route(logits, spec);
  const bool one_group = spec.top_groups == 1;
  CHECK(grouped.index == std::vector<int64_t>{17, 19, one_group ? 15 : 0, 13, one_group ? 10 : 0, one_group ? 11 : 1});
  CHECK(std::isnan(grouped.weights[3]));
  CHECK_FALSE(std::isnan(grouped.weights[4]));
}

TEST_CASE("router: equal logits take the first experts, as do scores that vanish") {
  if (!use_isa()) return;
  const int64_t E = GENERATE(1, 5, 64, 512), k = GENERATE(1, 4);
  if (k > E) return;
  WtRouterSpec spec = plain({3, E, GENERATE(true, false) ? E : k}, true);
  spec.score = GENERATE(WT_SOFTMAX, WT_SIGMOID);
  const double logit = GENERATE(0.0, 3.0, -1e4, 1e4);
  const Routed r = route(Doubles(size_t(3 * E), logit), spec);
  for (int64_t i = 0; i < 3 * spec.k; ++i) CHECK(r.index[size_t(i)] == i % spec.k);
  const bool vanished = spec.score == WT_SIGMOID && logit == -1e4;  // weights and shares of nothing are zero, not NaN
  for (float weight : r.weights) CHECK(weight == Approx(vanished ? 0.0 : 1.0 / double(spec.k)));
  for (double share : r.share_sums) CHECK(share == Approx(vanished ? 0.0 : 3.0 / double(E)));
}

TEST_CASE("router: a given choice keeps its order and gets the weights of the scores") {
  if (!use_isa()) return;
  std::mt19937_64 random{5};
  const Doubles logits = draw(random, WT_FP32, 4 * 8);
  WtRouterSpec spec = plain({4, 8, 3}, true);
  const Routed chosen = route(logits, spec);
  const auto flogits = floats(logits);
  spec.given = true;
  std::vector<float> scores(32), weights(12);
  std::vector<int64_t> index = chosen.index;
  REQUIRE(wt_router_forward(checked, spec, flogits.data(), nullptr, index.data(), scores.data(), weights.data(),
                            nullptr, nullptr, nullptr) == WT_OK);
  CHECK(index == chosen.index);
  CHECK(weights == chosen.weights);
  index[7] = 8;
  CHECK(wt_router_forward(kCpu, spec, flogits.data(), nullptr, index.data(), scores.data(), weights.data(), nullptr,
                          nullptr, nullptr) == WT_INVALID_ARGUMENT);
}

TEST_CASE("router: what cannot be is refused") {
  const std::vector<float> logits(24);
  std::vector<float> scores(24), weights(24);
  std::vector<int64_t> index(24);
  const auto call = [&](WtRouterSpec spec) {
    return wt_router_forward(kCpu, spec, logits.data(), nullptr, index.data(), scores.data(), weights.data(), nullptr,
                             nullptr, nullptr);
  };
  const WtRouterSpec good{4, 6, 2, 2, WT_SIGMOID, 3, 1, 2, true, 1, false};
  CHECK(call(good) == WT_OK);
  const auto refused = [&](auto change, const std::string& named) {
    WtRouterSpec bad = good;
    change(bad);
    CHECK(call(bad) == WT_INVALID_ARGUMENT);
    CHECK_THAT(wt_kernel_error(), Catch::Contains(named));
  };
  refused([](WtRouterSpec& s) { s.sequence = 3; }, "sequence is 3");
  refused([](WtRouterSpec& s) { s.sequence = 0; }, "sequence is 0");
  refused([](WtRouterSpec& s) { s.groups = 4; }, "groups is 4");
  refused([](WtRouterSpec& s) { s.top_groups = 4; }, "top_groups is 4");
  refused([](WtRouterSpec& s) { s.group_best = 3; }, "group_best is 3");
  refused([](WtRouterSpec& s) { s.k = 3; }, "at most experts of top_groups = 2");
  refused([](WtRouterSpec& s) { s.score = static_cast<WtRouterScore>(2); }, "score is 2");
}

TEST_CASE("the extremes of routing conserve rows and order them stably") {
  if (!use_isa()) return;
  const auto [T, E, k] = GENERATE(Shape{50, 8, 2}, Shape{50, 8, 1}, Shape{9, 6, 6}, Shape{1, 4, 2}, Shape{0, 4, 2});
  const bool one_takes_all = GENERATE(true, false);
  std::mt19937_64 random{uint64_t(T * E + k)};
  Doubles logits = draw(random, WT_FP32, T * E);
  for (int64_t t = 0; one_takes_all && t < T; ++t) logits[size_t(t * E + 3)] = 1e4;  // the rest underflow to 0
  std::vector<int64_t> slot_of_expert(static_cast<size_t>(E));
  for (int64_t e = 0; e < E; ++e) slot_of_expert[size_t(e)] = E - 1 - e;
  const Routed r = route(logits, plain({T, E, k}, true), nullptr, slot_of_expert.data());

  check_sort(plain({T, E, k}, true), r, slot_of_expert);
  if (one_takes_all && T > 0) CHECK(r.counts[3] == T);
}

TEST_CASE("permute, combine and their gradients") {
  if (!use_isa()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const auto [T, E, k] = GENERATE(Shape{5, 4, 2}, Shape{4, 3, 3}, Shape{1, 5, 1});
  const int64_t D = GENERATE(1, 16, 21);
  std::mt19937_64 random{uint64_t(D)};
  check_moves(dtype, {T, E, k}, D, route(draw(random, WT_FP32, T * E), plain({T, E, k}, false)), random);
}

TEST_CASE("a dropped choice has no row: it adds nothing and gets no gradient") {
  if (!use_isa()) return;
  const WtDtype dtype = WT_FP32;
  const int64_t T = 3, k = 2, D = GENERATE(1, 21), rows = 4;
  std::mt19937_64 random{11};
  const std::vector<int64_t> inverse{2, WT_DROPPED, 0, 3, WT_DROPPED, 1};
  const auto x = floats(draw(random, dtype, rows * D)), weights = floats(draw(random, dtype, T * k)),
             residual = floats(draw(random, dtype, T * D)), dout = floats(draw(random, dtype, T * D));
  std::vector<float> out(size_t(T * D)), drows(size_t(rows * D)), dweights(size_t(T * k), 7.0F), dx(size_t(T * D));
  REQUIRE(wt_combine_forward(checked, dtype, x.data(), inverse.data(), weights.data(), residual.data(), T, k, D,
                             out.data()) == WT_OK);
  REQUIRE(wt_combine_backward(checked, dtype, dout.data(), x.data(), inverse.data(), weights.data(), T, k, D,
                              drows.data(), dweights.data()) == WT_OK);
  REQUIRE(wt_permute_backward(checked, dtype, x.data(), inverse.data(), T, k, D, 0, dx.data()) == WT_OK);
  for (int64_t t = 0; t < T; ++t)
    for (int64_t d = 0; d < D; ++d) {
      double sum = residual[size_t(t * D + d)], moved = 0;
      for (int64_t c = 0; c < k; ++c) {
        const int64_t row = inverse[size_t(t * k + c)];
        if (row == WT_DROPPED) continue;
        sum += double(weights[size_t(t * k + c)]) * x[size_t(row * D + d)], moved += x[size_t(row * D + d)];
        CHECK(drows[size_t(row * D + d)] == Approx(weights[size_t(t * k + c)] * dout[size_t(t * D + d)]));
      }
      CHECK(out[size_t(t * D + d)] == Approx(sum).margin(1e-6));
      CHECK(dx[size_t(t * D + d)] == Approx(moved).margin(1e-6));
    }
  CHECK((dweights[1] == 0 && dweights[4] == 0 && dweights[0] != 0));
}

TEST_CASE("identity experts with normalised weights give every token back") {
  if (!use_isa()) return;
  const auto [T, E, k] = GENERATE(Shape{200, 16, 4}, Shape{33, 5, 5}, Shape{1, 3, 1});
  const int64_t D = 24;
  std::mt19937_64 random{7};
  const Routed r = route(draw(random, WT_FP32, T * E, 3), plain({T, E, k}, true));
  const auto x = floats(draw(random, WT_FP32, T * D));
  std::vector<float> rows(size_t(T * k * D)), back(x.size());
  REQUIRE(wt_permute_forward(checked, WT_FP32, x.data(), r.order.data(), T, k, D, rows.data()) == WT_OK);
  REQUIRE(wt_combine_forward(checked, WT_FP32, rows.data(), r.inverse.data(), r.weights.data(), nullptr, T, k, D,
                             back.data()) == WT_OK);
  CHECK(distance(doubles(back), doubles(x)) < 1e-6);
}

TEST_CASE("gathering by a permutation and then by its inverse is the identity") {
  const int64_t n = 31, D = 5;
  std::mt19937_64 random{3};
  const auto x = floats(draw(random, WT_FP32, n * D));
  std::vector<int64_t> index(size_t(n), 0);
  std::iota(index.begin(), index.end(), 0);
  std::shuffle(index.begin(), index.end(), random);
  const auto inverse = reference::inverse_of(index);
  std::vector<float> moved(x.size()), back(x.size());
  REQUIRE(wt_gather_rows(checked, WT_FP32, x.data(), index.data(), n, n, D, moved.data()) == WT_OK);
  CHECK(doubles(moved) == reference::gather(doubles(x), index, size_t(D)));
  REQUIRE(wt_gather_rows(checked, WT_FP32, moved.data(), inverse.data(), n, n, D, back.data()) == WT_OK);
  CHECK(back == x);
}
