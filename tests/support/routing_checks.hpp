// CPU kernels of routing, each against its double-precision reference at routings of the caller's: router, sort,
// permute, combine, grouped products. Fixed routings in tests/unit/kernel_routing.cpp and grouped_gemm.cpp, random ones
// in kernel_random.cpp.
#pragma once
#include "tests/support/grouped_reference.hpp"
#include "tests/support/kernel_checks.hpp"

namespace wt::kernel_test {

struct Shape {
  int64_t T, E, k;
};

struct Routed {
  std::vector<float> scores, weights;
  std::vector<int64_t> index, counts, order, inverse, slot_counts;
  Doubles share_sums, lse_squares;
};

/// Softmax over one sequence, no groups.
inline WtRouterSpec plain(Shape shape, bool normalize) {
  return {shape.T, shape.E, shape.k, std::max<int64_t>(1, shape.T), WT_SOFTMAX, 1, 1, 1, normalize, 1, false};
}

inline Routed route(const Doubles& logits, const WtRouterSpec& spec, const float* bias = nullptr,
                    const int64_t* slot_of_expert = nullptr) {
  const size_t n = size_t(spec.T * spec.k), sequences = size_t(spec.T / spec.sequence), E = size_t(spec.E);
  Routed r;
  r.scores.resize(size_t(spec.T) * E), r.weights.resize(n), r.index.resize(n), r.counts.resize(sequences * E, -1);
  r.order.resize(n), r.inverse.resize(n), r.slot_counts.resize(E);
  r.share_sums.resize(sequences * E, -1), r.lse_squares.resize(sequences, -1);
  const auto flogits = floats(logits);
  const WtStatus status =
      wt_router_forward(checked, spec, flogits.data(), bias, r.index.data(), r.scores.data(), r.weights.data(),
                        r.counts.data(), r.share_sums.data(), r.lse_squares.data());
  INFO(wt_kernel_error());
  REQUIRE(status == WT_OK);
  REQUIRE(wt_sort_by_expert(checked, r.index.data(), slot_of_expert, int64_t(n), spec.E, r.order.data(),
                            r.inverse.data(), r.slot_counts.data()) == WT_OK);
  return r;
}

/// Scores, choice, weights and sums of route().
inline void check_router(const WtRouterSpec& spec, const Doubles& logits, const std::vector<float>& bias,
                         const Routed& r) {
  const size_t E = size_t(spec.E), k = size_t(spec.k), sequence = size_t(spec.sequence);
  const bool sigmoid = spec.score == WT_SIGMOID;
  const Doubles scores = reference::router_scores(logits, E, sigmoid);
  CHECK(distance(doubles(r.scores), scores) < 1e-6);
  Doubles judged =
      doubles(r.scores);  // the very numbers that the choice is among: others may lie within their rounding
  for (size_t i = 0; !bias.empty() && i < judged.size(); ++i) judged[i] = r.scores[i] + bias[i % E];
  REQUIRE(r.index == reference::router_choice(judged, E, k, size_t(spec.groups), size_t(spec.top_groups),
                                              size_t(spec.group_best)));
  CHECK(distance(doubles(r.weights), reference::router_weights(scores, r.index, E, k, spec.normalize, spec.scale)) <
        2e-6);
  CHECK(distance(r.share_sums, reference::share_sums(scores, E, sequence, sigmoid)) < 2e-6);
  CHECK(distance(r.lse_squares, reference::lse_squares(logits, E, sequence)) < 2e-6);
  std::vector<int64_t> counts(r.counts.size(), 0);
  for (size_t i = 0; i < r.index.size(); ++i) ++counts[i / (k * sequence) * E + size_t(r.index[i])];
  CHECK(r.counts == counts);
}

/// The gradient of weights and, if `balanced`, of the sums, by finite differences of some tokens' logits.
inline void check_router_gradient(const WtRouterSpec& spec, const Doubles& logits, const Routed& r, bool balanced,
                                  std::mt19937_64& random) {
  const int64_t T = spec.T, sequences = T / spec.sequence;
  const size_t E = size_t(spec.E), k = size_t(spec.k);
  const bool sigmoid = spec.score == WT_SIGMOID;
  const Doubles dweights = draw(random, WT_FP32, T * spec.k), dshares = draw(random, WT_FP32, sequences * spec.E);
  const auto fdweights = floats(dweights), fdshares = floats(dshares), flogits = floats(logits);
  std::vector<float> fdlogits(logits.size());
  REQUIRE(wt_router_backward(checked, spec, fdweights.data(), r.scores.data(), r.index.data(),
                             balanced ? fdshares.data() : nullptr, balanced ? flogits.data() : nullptr,
                             balanced ? 0.1f : 0.0f, fdlogits.data()) == WT_OK);
  const Doubles dlogits = doubles(fdlogits);
  for (int64_t t : some_rows(T, random)) {
    const reference::Index index(r.index.begin() + t * spec.k, r.index.begin() + (t + 1) * spec.k);
    const auto weights_at = [&](const Doubles& at) {
      return reference::router_weights(reference::router_scores(at, E, sigmoid), index, E, k, spec.normalize,
                                       spec.scale);
    };
    const auto shares_at = [&](const Doubles& at) {
      return reference::share_sums(reference::router_scores(at, E, sigmoid), E, 1, sigmoid);
    };
    const auto squares_at = [&](const Doubles& at) { return reference::lse_squares(at, E, 1); };
    const Doubles own = row_of(logits, t, T);
    Doubles expected = reference::numeric_gradient(weights_at, own, row_of(dweights, t, T));
    if (balanced) {
      const Doubles aux = reference::numeric_gradient(shares_at, own, row_of(dshares, t / spec.sequence, sequences));
      const Doubles z = reference::numeric_gradient(squares_at, own, {0.1});
      for (size_t i = 0; i < E; ++i) expected[i] += aux[i] + z[i];
    }
    CHECK(distance(row_of(dlogits, t, T), expected) < 4e-6);
  }
}

/// Rows are conserved, and sorted stably by the slots of their experts.
inline void check_sort(const WtRouterSpec& spec, const Routed& r, const std::vector<int64_t>& slot_of_expert) {
  CHECK(std::accumulate(r.counts.begin(), r.counts.end(), int64_t{0}) == spec.T * spec.k);
  std::vector<int64_t> slots = r.index, slot_counts(size_t(spec.E), 0);
  for (int64_t& slot : slots) slot = slot_of_expert[size_t(slot)];
  for (size_t i = 0; i < r.counts.size(); ++i) slot_counts[size_t(slot_of_expert[i % size_t(spec.E)])] += r.counts[i];
  CHECK(r.slot_counts == slot_counts);
  CHECK(r.order == reference::sort_by_slot(slots));
  CHECK(r.inverse == reference::inverse_of(r.order));
}

/// Permute, combine and their gradients.
inline void check_moves(WtDtype dtype, Shape shape, int64_t D, const Routed& r, std::mt19937_64& random) {
  const auto [T, E, k] = shape;
  const int64_t N = T * k;
  const size_t choices = size_t(k), width = size_t(D);
  const Doubles x = draw(random, dtype, T * D), drows = draw(random, dtype, N * D), before = draw(random, dtype, T * D);
  const auto px = pack(dtype, x), pdrows = pack(dtype, drows);
  auto rows = pdrows, dx = pack(dtype, before), dx_alone = px;
  REQUIRE(wt_permute_forward(checked, dtype, px.data(), r.order.data(), T, k, D, rows.data()) == WT_OK);
  CHECK(unpack(dtype, rows) == reference::permute(x, r.order, choices, width));
  const Doubles ones(size_t(N), 1);
  REQUIRE(wt_permute_backward(checked, dtype, pdrows.data(), r.inverse.data(), T, k, D, 0, dx_alone.data()) == WT_OK);
  CHECK(distance(unpack(dtype, dx_alone), reference::combine(drows, r.inverse, ones, Doubles(x.size()), choices)) <
        tolerance(dtype));
  REQUIRE(wt_permute_backward(checked, dtype, pdrows.data(), r.inverse.data(), T, k, D, 1, dx.data()) == WT_OK);
  CHECK(distance(unpack(dtype, dx), reference::combine(drows, r.inverse, ones, before, choices)) < tolerance(dtype));

  const Doubles weights = doubles(r.weights);
  auto out = px;
  REQUIRE(wt_combine_forward(checked, dtype, pdrows.data(), r.inverse.data(), r.weights.data(), px.data(), T, k, D,
                             out.data()) == WT_OK);
  CHECK(distance(unpack(dtype, out), reference::combine(drows, r.inverse, weights, x, choices)) < tolerance(dtype));
  auto gradient = pdrows;
  std::vector<float> dweights(static_cast<size_t>(N));
  REQUIRE(wt_combine_backward(checked, dtype, px.data(), gradient.data(), r.inverse.data(), r.weights.data(), T, k, D,
                              gradient.data(),
                              dweights.data()) == WT_OK);  // in place of the rows
  const auto [by_rows, by_weights] = reference::combine_backward(x, drows, r.inverse, weights, choices);
  CHECK(distance(unpack(dtype, gradient), by_rows) < tolerance(dtype));
  CHECK(distance(doubles(dweights), by_weights) < tolerance(WT_FP32));
}

struct Products {
  std::vector<unsigned char> y, dx, dweight;
  bool operator==(const Products&) const = default;
};

inline Products products_of(WtDtype dtype, const Grouped& g) {
  const int64_t rows = g.rows(), groups = g.groups();
  const auto x = pack(dtype, g.x), weight = pack(dtype, g.weight), dy = pack(dtype, g.dy);
  const auto sevens = [dtype](int64_t n) { return pack(dtype, Doubles(size_t(n), 7)); };
  Products out{sevens(rows * g.n), sevens(rows * g.k), sevens(groups * g.n * g.k)};
  REQUIRE(wt_grouped_gemm_forward(checked, dtype, x.data(), weight.data(), g.ends.data(), rows, groups, g.n, g.k,
                                  out.y.data()) == WT_OK);
  REQUIRE(wt_grouped_gemm_backward_rows(checked, dtype, dy.data(), weight.data(), g.ends.data(), rows, groups, g.n, g.k,
                                        out.dx.data()) == WT_OK);
  REQUIRE(wt_grouped_gemm_backward_weight(checked, dtype, dy.data(), x.data(), g.ends.data(), rows, groups, g.n, g.k,
                                          out.dweight.data()) == WT_OK);
  return out;
}

inline void check_products(WtDtype dtype, const Grouped& g) {
  const Products found = products_of(dtype, g);
  CHECK(error_of_sums(unpack(dtype, found.y), g.forward()) < tolerance(dtype));
  CHECK(error_of_sums(unpack(dtype, found.dx), g.backward_rows()) < tolerance(dtype));
  CHECK(error_of_sums(unpack(dtype, found.dweight), g.backward_weight()) < tolerance(dtype));
}

}  // namespace wt::kernel_test
