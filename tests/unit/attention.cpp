// Windows, chunks and sinks of attention, and GPT-OSS's experts, against the same written in LibTorch's plainest ops.
#include <catch2/catch.hpp>

#include "trainer/model/attention.hpp"
#include "trainer/pch.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;
using at::Tensor;

namespace {

Tensor random(std::vector<std::int64_t> shape, std::uint64_t seed) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed), at::kFloat);
}

Tensor leaf(const Tensor& value) { return value.clone().requires_grad_(true); }

bool near(const Tensor& found, const Tensor& expected, double tolerance = 2e-6) {
  return found.isfinite().all().item<bool>() && (found.to(at::kDouble) - expected).abs().max().item<double>() <=
                                                    tolerance * std::max(1.0, expected.abs().max().item<double>());
}

/// q (B, H, S, hd), k and v (B, KV, S, hd), sinks (H) or undefined; sees(query, key). In fp64, all scores at once.
template <typename Sees>
Tensor written_out(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& sinks, double scale, Sees&& sees) {
  const std::int64_t seq = q.size(2), each = q.size(1) / k.size(1);
  Tensor hidden = at::zeros({seq, seq}, at::kBool);
  for (std::int64_t query = 0; query < seq; ++query)
    for (std::int64_t key = 0; key < seq; ++key)
      if (!sees(query, key)) hidden.data_ptr<bool>()[query * seq + key] = true;
  const auto wide = [&](const Tensor& t) { return t.to(at::kDouble).repeat_interleave(each, 1); };
  Tensor scores = (at::matmul(q.to(at::kDouble), wide(k).transpose(2, 3)) * scale).masked_fill(hidden, -INFINITY);
  if (sinks.defined())
    scores = at::cat({scores, sinks.to(at::kDouble).view({1, -1, 1, 1}).expand({q.size(0), -1, seq, 1})}, 3);
  return at::matmul(scores.softmax(3).narrow(3, 0, seq), wide(v));
}

ModelSpec attending() {
  ModelSpec m;
  m.name = "attending", m.layers = 2, m.d_model = 24, m.heads = 6, m.kv_heads = 2, m.head_dim = 4, m.ffn = 32,
  m.vocab = 16;
  return m;
}

/// attend() by the model in both layers, its gradients too, against the same written out. The second layer sees all.
template <typename Sees>
void check_attend(ModelSpec m, std::int64_t seq, Sees&& sees) {
  m.attention.local = {{true, false}};
  m.check("attending");
  const Positions positions = Positions::make(m, seq);
  for (const std::int64_t layer : {0, 1}) {
    const GroupLayout layout = group_layout(m, {}, Group::dense, layer, 0);
    Slot dense = Slot::make(layout, at::kFloat);
    const Tensor sinks = dense.find("attention.sinks");
    if (sinks.defined()) sinks.detach().copy_(random({m.heads}, 9) * 2);
    std::vector<Tensor> found{leaf(random({2, 6, seq, 4}, 1)), leaf(random({2, 2, seq, 4}, 2)),
                              leaf(random({2, 2, seq, 4}, 3))};
    std::vector<Tensor> same;
    for (const Tensor& each : found) same.push_back(leaf(each.detach()));
    if (sinks.defined()) found.push_back(sinks), same.push_back(leaf(sinks.detach()));
    const Tensor out = attend(found[0], found[1], found[2], dense, m, positions, layer);
    const Tensor expected =
        written_out(
            same[0], same[1], same[2], sinks.defined() ? same[3] : Tensor(), m.softmax_scale(),
            [&](std::int64_t query, std::int64_t key) { return key <= query && (layer == 1 || sees(query, key)); })
            .transpose(1, 2)
            .reshape({2 * seq, 24});
    CHECK(near(out, expected));
    const Tensor given = random({2 * seq, 24}, 4);
    (out * given).sum().backward();
    (expected * given).sum().backward();
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(near(found[i].grad(), same[i].grad().to(at::kDouble), 1e-5));
  }
}

}  // namespace

TEST_CASE("a query sees the last keys of its window, across the tiles of the fused kernel") {
  for (const auto& [seq, window] : {std::pair<std::int64_t, std::int64_t>{40, 7}, {40, 1}, {40, 40}, {1100, 30}}) {
    ModelSpec m = attending();
    m.attention.window = window;
    check_attend(m, seq, [w = window](std::int64_t query, std::int64_t key) { return key > query - w; });
  }
}

TEST_CASE("a query sees the earlier keys of its chunk") {
  ModelSpec m = attending();
  m.attention.chunk = 7;
  check_attend(m, 40, [](std::int64_t query, std::int64_t key) { return key / 7 == query / 7; });
}

TEST_CASE("a sink takes its part of every softmax, and learns from it") {
  ModelSpec m = attending();
  m.attention.sinks = true;
  m.attention.window = 7;
  check_attend(m, 40, [](std::int64_t query, std::int64_t key) { return key > query - 7; });
  check_attend(m, 600, [](std::int64_t query, std::int64_t key) { return key > query - 7; });
}

TEST_CASE("sinks without the fused kernel give the same, and a sink of minus infinity changes nothing") {
  const std::int64_t seq = 19;
  const Tensor q = random({2, 6, seq, 4}, 1), k = random({2, 2, seq, 4}, 2), v = random({2, 2, seq, 4}, 3);
  const Tensor sinks = random({6}, 5);
  for (const bool masked : {false, true}) {
    std::optional<Tensor> mask;
    if (masked) mask = at::full({seq, seq}, -INFINITY, at::kFloat).triu(1).view({1, 1, seq, seq});
    std::vector<std::vector<Tensor>> gradients;
    for (const bool fused : {true, false}) {
      const std::vector<Tensor> in{leaf(q), leaf(k), leaf(v), leaf(sinks)};
      const Tensor out = sink_attention(in[0], in[1], in[2], in[3], mask, 0.5, fused);
      (out * random({2, 6, seq, 4}, 6)).sum().backward();
      gradients.push_back({out.detach()});
      for (const Tensor& each : in) gradients.back().push_back(each.grad());
    }
    for (std::size_t i = 0; i < gradients[0].size(); ++i)
      CHECK(near(gradients[0][i], gradients[1][i].to(at::kDouble), 1e-5));
  }
  const Tensor none = at::full({6}, -INFINITY, at::kFloat);
  CHECK(at::equal(sink_attention(q, k, v, none, {}, 0.5, true),
                  at::scaled_dot_product_attention(q, k, v, {}, 0.0, true, 0.5, true)));
}

TEST_CASE("context parallelism gives each rank its rows of a window with sinks") {
  ModelSpec m = attending();
  m.attention.sinks = true, m.attention.window = 9;
  const std::int64_t seq = 48, ranks = 2;
  const GroupLayout layout = group_layout(m, {}, Group::dense, 0, 0);
  const Slot dense = Slot::make(layout, at::kFloat);
  dense["attention.sinks"].detach().copy_(random({m.heads}, 9));
  const Tensor q = random({1, 6, seq, 4}, 1), k = random({1, 2, seq, 4}, 2), v = random({1, 2, seq, 4}, 3);
  const at::NoGradGuard no_grad;
  const Tensor whole = attend(q, k, v, dense, m, Positions::make(m, seq), 0);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const Tensor rows = at::tensor(context_positions(seq, ranks, rank), at::kLong);
    const Tensor own = attend(q.index_select(2, rows), k, v, dense, m, Positions::make(m, seq, ranks, rank), 0);
    CHECK(near(own, whole.index_select(0, rows).to(at::kDouble)));
  }
}

TEST_CASE("the clamped activation and its gradient are GPT-OSS's") {
  const std::int64_t width = 37;
  for (const std::int64_t rows : {1, 5, 1000}) {
    const Tensor first = leaf(random({rows, 2 * width}, 1) * 6), same = leaf(first.detach().to(at::kDouble));
    const Tensor out = activate(first, Activation::clamped_swiglu);
    const Tensor gate = same.narrow(1, 0, width).clamp_max(7), up = same.narrow(1, width, width).clamp(-7, 7);
    const Tensor expected = (up + 1) * gate * (gate * 1.702).sigmoid();
    CHECK(near(out, expected));
    const Tensor given = random({rows, width}, 2);
    out.backward(given), expected.backward(given.to(at::kDouble));
    CHECK(near(first.grad(), same.grad()));
  }
}

TEST_CASE("each row of a grouped product has its group's bias, and groups without rows none to learn") {
  const Tensor rows = leaf(random({7, 8}, 1)), weight = leaf(random({4, 12, 8}, 2)), bias = leaf(random({4, 12}, 3));
  const Tensor ends = at::tensor({3, 3, 4, 7}, at::kInt);
  const Tensor out = grouped_product(rows, weight, ends, true, {}, bias);
  const std::vector<std::int64_t> group{0, 0, 0, 2, 3, 3, 3};
  const Tensor given = random({7, 12}, 4);
  Tensor dbias = at::zeros({4, 12}, at::kDouble);
  for (std::int64_t row = 0; row < 7; ++row) {
    const std::int64_t g = group[static_cast<std::size_t>(row)];
    CHECK(near(out[row].detach(), (at::mv(weight[g], rows[row]) + bias[g]).detach().to(at::kDouble)));
    dbias[g] += given[row];
  }
  out.backward(given);
  CHECK(near(bias.grad(), dbias));
  CHECK(bias.grad()[1].abs().max().item<float>() == 0);
}
