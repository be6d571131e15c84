// Router, sort, permute and combine on the CPU: references, gradients, and what routing must conserve, on random
// routing and on its extremes (one expert takes all, empty experts, one token, k = 1, k = E).
#include <catch2/catch.hpp>

#include "kernels/kernels.h"
#include "tests/support/kernel_arrays.hpp"
#include "tests/support/kernel_reference.hpp"

using namespace wt::kernel_test;
namespace reference = wt::reference;

namespace {

const WtStream kCpu{-1, nullptr};

bool use_isa() { return wt_kernel_set_isa(GENERATE("avx512", "avx2", "baseline")) == WT_OK; }

struct Shape {
  int64_t T, E, k;
};

struct Routed {
  std::vector<float> probs, weights;
  std::vector<int64_t> index, counts, order, inverse, slot_counts;
};

Routed route(const Doubles& logits, Shape shape, bool normalize, const int64_t* slot_of_expert = nullptr) {
  const auto [T, E, k] = shape;
  const size_t n = size_t(T * k);
  Routed r{std::vector<float>(size_t(T * E)), std::vector<float>(n),   std::vector<int64_t>(n),
           std::vector<int64_t>(size_t(E)),   std::vector<int64_t>(n), std::vector<int64_t>(n),
           std::vector<int64_t>(size_t(E))};
  const auto flogits = floats(logits);
  REQUIRE(wt_router_forward(kCpu, flogits.data(), T, E, k, normalize, r.probs.data(), r.weights.data(), r.index.data(),
                            r.counts.data()) == WT_OK);
  REQUIRE(wt_sort_by_expert(kCpu, r.index.data(), slot_of_expert, T * k, E, r.order.data(), r.inverse.data(),
                            r.slot_counts.data()) == WT_OK);
  return r;
}

}  // namespace

TEST_CASE("router: probabilities, choice, weights, counts and gradient") {
  if (!use_isa()) return;
  const auto [T, E, k] = GENERATE(Shape{5, 8, 2}, Shape{1, 1, 1}, Shape{3, 37, 4}, Shape{2, 5, 5}, Shape{1, 64, 1});
  const bool normalize = GENERATE(true, false), with_aux = GENERATE(true, false);
  std::mt19937_64 random{uint64_t(E)};
  const Doubles logits = draw(random, WT_FP32, T * E, 2);
  const Routed r = route(logits, {T, E, k}, normalize);
  const Doubles probs = reference::softmax(logits, size_t(E));
  CHECK(distance(doubles(r.probs), probs) < 1e-6);
  REQUIRE(r.index == reference::top_k(logits, size_t(E), size_t(k)));
  const auto weights_at = [&](const Doubles& at) {
    return reference::router_weights(reference::softmax(at, size_t(E)), r.index, size_t(E), size_t(k), normalize);
  };
  CHECK(distance(doubles(r.weights), weights_at(logits)) < 1e-6);
  std::vector<int64_t> counts(size_t(E), 0);
  for (int64_t e : r.index) ++counts[size_t(e)];
  CHECK(r.counts == counts);
  CHECK(r.slot_counts == counts);

  const Doubles dweights = draw(random, WT_FP32, T * k), daux = draw(random, WT_FP32, T * E);
  const auto fdweights = floats(dweights), fdaux = floats(daux);
  std::vector<float> dlogits(size_t(T * E));
  REQUIRE(wt_router_backward(kCpu, fdweights.data(), r.probs.data(), r.index.data(), r.weights.data(),
                             with_aux ? fdaux.data() : nullptr, T, E, k, normalize, dlogits.data()) == WT_OK);
  Doubles expected = reference::numeric_gradient(weights_at, logits, dweights);
  const Doubles aux =
      reference::numeric_gradient([&](const Doubles& at) { return reference::softmax(at, size_t(E)); }, logits, daux);
  for (size_t i = 0; with_aux && i < aux.size(); ++i) expected[i] += aux[i];
  CHECK(distance(doubles(dlogits), expected) < 2e-6);
}

TEST_CASE("router: ties go to the lowest expert, NaN rows stay valid") {
  if (!use_isa()) return;
  Doubles logits(2 * 20, 1.0);
  logits[19] = logits[17] = 2.0;
  logits[20] = NAN;
  const Routed r = route(logits, {2, 20, 3}, true);
  CHECK(r.index == std::vector<int64_t>{17, 19, 0, 0, 1, 2});
  CHECK(std::isnan(r.weights[3]));
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
  const Routed r = route(logits, {T, E, k}, true, slot_of_expert.data());

  CHECK(std::accumulate(r.counts.begin(), r.counts.end(), int64_t{0}) == T * k);
  if (one_takes_all) CHECK(r.counts[3] == T);
  for (int64_t e = 0; e < E; ++e) CHECK(r.slot_counts[size_t(E - 1 - e)] == r.counts[size_t(e)]);
  std::vector<int64_t> slots = r.index;
  for (int64_t& slot : slots) slot = E - 1 - slot;
  CHECK(r.order == reference::sort_by_slot(slots));
  CHECK(r.inverse == reference::inverse_of(r.order));
}

TEST_CASE("permute, combine and their gradients") {
  if (!use_isa()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const auto [T, E, k] = GENERATE(Shape{5, 4, 2}, Shape{4, 3, 3}, Shape{1, 5, 1});
  const int64_t D = GENERATE(1, 16, 21), N = T * k;
  std::mt19937_64 random{uint64_t(D)};
  const Routed r = route(draw(random, WT_FP32, T * E), {T, E, k}, false);
  const Doubles x = draw(random, dtype, T * D), drows = draw(random, dtype, N * D), before = draw(random, dtype, T * D);
  const auto px = pack(dtype, x), pdrows = pack(dtype, drows);
  auto rows = pdrows, dx = pack(dtype, before), dx_alone = px;

  REQUIRE(wt_permute_forward(kCpu, dtype, px.data(), r.order.data(), T, k, D, rows.data()) == WT_OK);
  const auto f = [&](const Doubles& at) { return reference::permute(at, r.order, size_t(k), size_t(D)); };
  CHECK(unpack(dtype, rows) == f(x));
  Doubles expected = reference::numeric_gradient(f, x, drows);
  REQUIRE(wt_permute_backward(kCpu, dtype, pdrows.data(), r.inverse.data(), T, k, D, 0, dx_alone.data()) == WT_OK);
  CHECK(distance(unpack(dtype, dx_alone), expected) < tolerance(dtype));
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
  REQUIRE(wt_permute_backward(kCpu, dtype, pdrows.data(), r.inverse.data(), T, k, D, 1, dx.data()) == WT_OK);
  CHECK(distance(unpack(dtype, dx), expected) < tolerance(dtype));

  const Doubles weights = doubles(r.weights);
  auto out = px;
  REQUIRE(wt_combine_forward(kCpu, dtype, pdrows.data(), r.inverse.data(), r.weights.data(), px.data(), T, k, D,
                             out.data()) == WT_OK);
  CHECK(distance(unpack(dtype, out), reference::combine(drows, r.inverse, weights, x, size_t(k))) < tolerance(dtype));
  auto gradient = pdrows;
  std::vector<float> dweights(static_cast<size_t>(N));
  REQUIRE(wt_combine_backward(kCpu, dtype, px.data(), gradient.data(), r.inverse.data(), r.weights.data(), T, k, D,
                              gradient.data(), dweights.data()) == WT_OK);  // in place of the rows
  const auto by_rows = [&](const Doubles& at) { return reference::combine(at, r.inverse, weights, before, size_t(k)); };
  const auto by_weight = [&](const Doubles& at) { return reference::combine(drows, r.inverse, at, before, size_t(k)); };
  CHECK(distance(unpack(dtype, gradient), reference::numeric_gradient(by_rows, drows, x)) < tolerance(dtype));
  CHECK(distance(doubles(dweights), reference::numeric_gradient(by_weight, weights, x)) < tolerance(WT_FP32));
}

TEST_CASE("identity experts with normalised weights give every token back") {
  if (!use_isa()) return;
  const auto [T, E, k] = GENERATE(Shape{200, 16, 4}, Shape{33, 5, 5}, Shape{1, 3, 1});
  const int64_t D = 24;
  std::mt19937_64 random{7};
  const Routed r = route(draw(random, WT_FP32, T * E, 3), {T, E, k}, true);
  const auto x = floats(draw(random, WT_FP32, T * D));
  std::vector<float> rows(size_t(T * k * D)), back(x.size());
  REQUIRE(wt_permute_forward(kCpu, WT_FP32, x.data(), r.order.data(), T, k, D, rows.data()) == WT_OK);
  REQUIRE(wt_combine_forward(kCpu, WT_FP32, rows.data(), r.inverse.data(), r.weights.data(), nullptr, T, k, D,
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
  REQUIRE(wt_gather_rows(kCpu, WT_FP32, x.data(), index.data(), n, n, D, moved.data()) == WT_OK);
  CHECK(doubles(moved) == reference::gather(doubles(x), index, size_t(D)));
  REQUIRE(wt_gather_rows(kCpu, WT_FP32, moved.data(), inverse.data(), n, n, D, back.data()) == WT_OK);
  CHECK(back == x);
}
