// What holds for any mixture of experts, on one rank's segments.
#include <catch2/catch.hpp>

#include "trainer/model/segments.hpp"
#include "trainer/pch.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;
using at::Tensor;

namespace {

constexpr std::int64_t kSeq = 12;

/// One layer with its weights and gradients.
struct Layer {
  explicit Layer(ModelSpec spec) : model(std::move(spec)), segments(model, layout, kSeq, 2, at::kFloat) {
    for (Group group : {Group::dense, Group::expert}) {
      const GroupLayout groups = group_layout(model, layout, group, 0, 0);
      slots.push_back(Slot::make(groups, at::kFloat));
      slots.back().flat.copy_(make_group(groups, 3).master);
      gradients.push_back(GradientBuffer::make(groups));
      slots.back().accumulate_into(gradients.back());
    }
  }
  /// Forward; `given` adds the backward pass of the sum of the output times it. `weighed` (T, k): 0 for rows whose
  /// weight is taken away, and its gradient with it.
  Tensor run(const Tensor& x, const Tensor& bias = {}, const Tensor& given = {}, const Tensor& weighed = {}) {
    state = {};
    state.input = x;
    segments.attention(state, slots[0], 0, Direction::forward, {}, bias, loss);
    residual = state.residual.clone(), choice = state.choice;
    if (weighed.defined()) state.weights = state.weights * weighed;
    if (model.ffn_width(0) > 0) segments.ffn(state, slots[0], 0, Direction::forward, {});
    if (model.moe(0)) segments.experts(state, slots[1], Direction::forward, {});
    const Tensor out = model.moe(0) ? segments.combine_rows(state, {}) : state.residual;
    if (!given.defined()) return out;
    state.output_gradient = given;
    if (model.moe(0)) {
      segments.combine_rows_backward(state);
      if (weighed.defined()) state.weights_gradient.mul_(weighed);
      segments.experts_backward(state);
    } else {
      segments.ffn_backward(state);
    }
    input_gradient = segments.attention_backward(state);
    return out;
  }

  ModelSpec model;
  Layout layout;
  Segments segments;
  std::vector<Slot> slots;
  std::vector<GradientBuffer> gradients;
  LayerState state;
  RouterLoss loss;
  RouterChoice choice;
  Tensor residual;  ///< after attention
  Tensor input_gradient;
};

ModelSpec small_moe() {
  ModelSpec m;
  m.name = "moe", m.layers = 1, m.d_model = 24, m.heads = m.kv_heads = 3, m.head_dim = 8, m.ffn = 32, m.experts = 6,
  m.top_k = 2, m.vocab = 16;
  return m;
}

Tensor random(std::vector<std::int64_t> shape, std::uint64_t seed) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed), at::kFloat);
}

}  // namespace

TEST_CASE("rows sent to experts and combined again are the input") {
  const Tensor x = random({2 * kSeq, 24}, 1);
  RouterChoice choice;
  RouterLoss loss;
  const Tensor weights = route(random({2 * kSeq, 6}, 2), 2, {}, {0, 0, kSeq}, {}, choice, loss);
  sort_by_slot(choice, {});
  const Tensor back = combine(permute(x, choice, 2), choice, weights, at::zeros_like(x));
  CHECK(at::allclose(back, x, 1e-6, 1e-6));
}

TEST_CASE("experts that are all equal are one dense FFN, forward and backward") {
  ModelSpec spec = small_moe();
  spec.router.aux_loss_weight = 0;  // a dense layer has nothing to balance
  Layer moe(spec);
  spec.experts = spec.top_k = 0;
  Layer dense(spec);
  for (const char* name : {"attention.qkv.weight", "attention.output.weight"})
    dense.slots[0][name].detach().copy_(moe.slots[0][name].detach());
  const std::vector<std::pair<const char*, const char*>> pairs{{"experts.gate_up.weight", "ffn.gate_up.weight"},
                                                               {"experts.down.weight", "ffn.down.weight"}};
  for (const auto& [stacked, own] : pairs) {
    const Tensor experts = moe.slots[1][stacked].detach();
    experts.copy_(experts[0].clone().expand_as(experts));
    dense.slots[0][own].detach().copy_(experts[0]);
  }
  const Tensor x = random({2 * kSeq, 24}, 4), given = random({2 * kSeq, 24}, 8);
  const Tensor expected = dense.run(x, {}, given), found = moe.run(x, {}, given);
  CHECK(at::allclose(found, expected, 1e-6, 1e-6));
  CHECK_FALSE(at::allclose(found, moe.residual, 1e-3, 1e-6));  // there was an FFN
  CHECK(at::allclose(moe.input_gradient, dense.input_gradient, 1e-5, 1e-5));
  for (const auto& [stacked, own] : pairs) {  // a token's weights sum to 1, and so do its shares of the gradient
    const Tensor gradient = moe.slots[1][stacked].grad();
    CHECK(at::allclose(gradient.sum(0), dense.slots[0][own].grad(), 1e-5, 1e-5));
    CHECK((gradient.abs().amax({1, 2}) > 0).all().item<bool>());
  }
  CHECK(moe.slots[0]["router.weight"].grad().abs().max().item<float>() < 1e-5f);  // no choice is better than another
  CHECK(at::allclose(moe.slots[0]["attention.qkv.weight"].grad(), dense.slots[0]["attention.qkv.weight"].grad(), 1e-5,
                     1e-5));
}

TEST_CASE("experts without tokens get no gradient and disturb nobody") {
  Layer layer(small_moe());
  Tensor bias = at::zeros({6});
  bias[1] = bias[4] = 100.0;
  const Tensor x = random({2 * kSeq, 24}, 5), given = random({2 * kSeq, 24}, 6);
  const Tensor out = layer.run(x, bias, given);
  CHECK(out.isfinite().all().item<bool>());
  for (const Tensor& gradient : layer.gradients[1].leaves)
    for (std::int64_t e = 0; e < 6; ++e) CHECK((gradient[e].abs().max().item<float>() > 0) == (e == 1 || e == 4));
}

TEST_CASE("dropped rows count as rows of weight zero, and are not computed") {
  ModelSpec spec = small_moe();
  Layer all(spec);
  spec.router.capacity_factor = 0.75;
  Layer layer(spec);
  const Tensor x = random({2 * kSeq, 24}, 9), given = random({2 * kSeq, 24}, 10);
  const Tensor found = layer.run(x, {}, given);
  const Tensor kept = layer.choice.kept;
  CHECK(layer.choice.order.size(0) == kept.sum().item<std::int64_t>());
  CHECK(layer.choice.order.size(0) <= spec.experts * 6);  // 0.75 * 48 rows / 6 experts
  const Tensor expected = all.run(x, {}, given, kept.to(at::kFloat));
  CHECK(all.choice.order.size(0) == 4 * kSeq);
  CHECK(at::allclose(found, expected, 1e-6, 1e-6));
  CHECK(at::allclose(layer.input_gradient, all.input_gradient, 1e-5, 1e-5));
  for (std::size_t group = 0; group < 2; ++group)
    CHECK(at::allclose(layer.gradients[group].flat, all.gradients[group].flat, 1e-5, 1e-5));
  CHECK(layer.loss.aux.equal(all.loss.aux));
}

TEST_CASE("shared experts add to the routed ones") {
  ModelSpec spec = small_moe();
  spec.shared_ffn = 40;
  Layer layer(spec);
  const Tensor x = random({2 * kSeq, 24}, 7), with = layer.run(x).clone();
  layer.slots[0]["shared_experts.down.weight"].detach().zero_();
  const Tensor without = layer.run(x);
  CHECK_FALSE(at::allclose(with, without, 1e-4, 1e-5));
  Layer alone(small_moe());  // the same names give the same weights
  CHECK(at::allclose(without, alone.run(x), 1e-6, 1e-6));
}
