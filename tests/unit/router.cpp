// The router's variants against autograd through plain tensor operations, and what holds for any of them.
#include <catch2/catch.hpp>

#include "configs/files/microbatches.hpp"
#include "trainer/model/router.hpp"
#include "trainer/pch.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;
using at::Tensor;

namespace {

constexpr std::int64_t kTokens = 24, kExperts = 8, kTopK = 2, kSeq = 6;

Tensor random(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  return at::randn({rows, columns}, at::make_generator<at::CPUGeneratorImpl>(seed), at::kFloat);
}

struct Routed {
  Tensor weights, gradient;
  RouterChoice choice;
  RouterLoss loss;
};

/// Weights, and the gradient of logits for the loss sum(weights * given) + balancing losses.
Routed run(const RouterSpec& spec, const Tensor& logits, const Tensor& given, const RouterLossScale& scale,
           const Tensor& bias = {}) {
  Routed out;
  const Tensor leaf = logits.clone().requires_grad_(true);
  const Tensor weights = route(leaf, kTopK, spec, scale, bias, out.choice, out.loss);
  torch::autograd::backward({weights}, {given});
  out.weights = weights.detach(), out.gradient = leaf.grad();
  return out;
}

/// The same by autograd, with the router's own choice.
Tensor reference_gradient(const RouterSpec& spec, const Tensor& logits, const Tensor& given,
                          const RouterLossScale& scale, const Routed& routed) {
  const Tensor leaf = logits.clone().requires_grad_(true);
  const bool softmax = spec.score == RouterSpec::Score::softmax;
  const Tensor scores = softmax ? leaf.softmax(1) : leaf.sigmoid();
  Tensor weights = scores.gather(1, routed.choice.index);
  if (spec.normalize) weights = weights / weights.sum(1, true);
  weights = weights * spec.scale;
  const Tensor shares = softmax ? scores : scores / scores.sum(1, true);
  const Tensor chosen =
      at::zeros_like(logits).scatter_(1, routed.choice.index, 1.0).view({-1, kSeq, kExperts}).sum(1, true);
  const Tensor aux = (shares.view({-1, kSeq, kExperts}) * chosen).sum() * scale.aux;
  const Tensor z = leaf.logsumexp(1).square().sum() * scale.z;
  ((weights * given).sum() + aux + z).backward();
  return leaf.grad();
}

RouterSpec deepseek_v3() {
  RouterSpec spec;
  spec.score = RouterSpec::Score::sigmoid, spec.groups = 4, spec.top_groups = 2, spec.scale = 2.5;
  return spec;
}

bool close(const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-5, 1e-6); }

}  // namespace

TEST_CASE("the gradient of every variant is autograd's") {
  RouterSpec plain, sigmoid = deepseek_v3(), scaled;
  scaled.scale = 3, scaled.normalize = false;
  RouterSpec v2 = scaled;
  v2.groups = 4, v2.top_groups = 2, v2.group_score = RouterSpec::GroupScore::best;
  sigmoid.normalize = GENERATE(true, false);
  const Tensor logits = random(kTokens, kExperts, 1), given = random(kTokens, kTopK, 2),
               bias = 0.1 * random(1, kExperts, 3)[0];
  const RouterLossScale scale{0.02, GENERATE(0.0, 0.01), kSeq};
  for (const RouterSpec& spec : {plain, sigmoid, scaled, v2}) {
    const Routed routed = run(spec, logits, given, scale, spec.score == RouterSpec::Score::sigmoid ? bias : Tensor());
    CHECK(close(routed.gradient, reference_gradient(spec, logits, given, scale, routed)));
  }
}

TEST_CASE("group-limited choice takes the best of the groups whose two best are best") {
  RouterSpec spec = deepseek_v3();
  spec.groups = 2, spec.top_groups = 1, spec.normalize = false, spec.scale = 1;
  // Group 0 has the single best expert, group 1 the two best together.
  const Tensor logits = at::tensor({4.0f, -4.0f, -4.0f, -4.0f, 1.0f, 2.0f, 0.0f, -1.0f}).view({1, 8});
  RouterChoice choice;
  RouterLoss loss;
  route(logits, kTopK, spec, {0, 0, 1}, {}, choice, loss);
  CHECK(choice.index.equal(at::tensor({5, 4}, at::kLong).view({1, 2})));
  // DeepSeek-V2: a group is worth its best expert alone.
  spec.score = RouterSpec::Score::softmax, spec.group_score = RouterSpec::GroupScore::best;
  RouterChoice best;
  const Tensor weights = route(logits, kTopK, spec, {0, 0, 1}, {}, best, loss);
  CHECK(best.index.equal(at::tensor({0, 1}, at::kLong).view({1, 2})));
  CHECK(close(weights, logits.softmax(1).narrow(1, 0, 2)));
}

TEST_CASE("the bias chooses but does not weigh") {
  const Tensor logits = random(kTokens, kExperts, 4), given = at::ones({kTokens, kTopK});
  const RouterSpec spec;
  Tensor bias = at::zeros({kExperts});
  const Routed without = run(spec, logits, given, {0, 0, kSeq}), zero = run(spec, logits, given, {0, 0, kSeq}, bias);
  CHECK(zero.choice.index.equal(without.choice.index));
  CHECK(close(zero.weights, without.weights));
  bias[3] = 100.0;
  const Routed biased = run(spec, logits, given, {0, 0, kSeq}, bias);
  CHECK(biased.choice.expert_counts[3].item<std::int64_t>() == kTokens);
  const Tensor chosen = logits.softmax(1).gather(1, biased.choice.index);
  CHECK(close(biased.weights, chosen / chosen.sum(1, true)));
}

TEST_CASE("the bias moves against the load, and its sum stays") {
  Tensor bias = at::zeros({2, 4});
  update_router_bias(bias, at::tensor({10.0f, 2.0f, 2.0f, 2.0f, 5.0f, 5.0f, 5.0f, 5.0f}).view({2, 4}), 0.001);
  // Signs -1, 1, 1, 1 have the mean 0.5; equal loads move nothing.
  CHECK(close(bias, at::tensor({-0.0015f, 0.0005f, 0.0005f, 0.0005f, 0.0f, 0.0f, 0.0f, 0.0f}).view({2, 4})));
}

TEST_CASE("forced routing ignores the scores") {
  RouterSpec balanced, zipf;
  balanced.forced = RouterSpec::Forced::balanced, zipf.forced = RouterSpec::Forced::zipf, zipf.zipf_exponent = 1.5;
  const Tensor given = at::ones({240, kTopK});
  const RouterLossScale scale{0, 0, kSeq};
  const Routed even = run(balanced, random(240, kExperts, 5), given, scale);
  CHECK(even.choice.expert_counts.equal(at::full({kExperts}, 60, at::kLong)));
  const Routed skewed = run(zipf, random(240, kExperts, 5), given, scale),
               again = run(zipf, random(240, kExperts, 6), given, scale);
  CHECK(skewed.choice.index.equal(again.choice.index));
  CHECK((skewed.choice.expert_counts[0] > 2 * skewed.choice.expert_counts[3]).item<bool>());
  CHECK((skewed.choice.index.select(1, 0) != skewed.choice.index.select(1, 1)).all().item<bool>());
}

TEST_CASE("beyond its capacity an expert's rows weigh nothing and get no gradient") {
  RouterSpec spec;
  spec.forced = RouterSpec::Forced::zipf, spec.capacity_factor = 1.0;
  const Tensor logits = random(kTokens, kExperts, 7), given = random(kTokens, kTopK, 8);
  const Routed routed = run(spec, logits, given, {0, 0, kSeq});
  std::vector<std::int64_t> load(kExperts, 0);
  const std::int64_t capacity = kTokens * kTopK / kExperts;
  std::int64_t dropped = 0;
  for (std::int64_t i = 0; i < kTokens * kTopK; ++i) {
    const bool full = load[static_cast<std::size_t>(routed.choice.index.data_ptr<std::int64_t>()[i])]++ >= capacity;
    CHECK((routed.weights.data_ptr<float>()[i] == 0) == full);
    dropped += full;
  }
  CHECK(dropped > 0);
  CHECK(routed.choice.kept.equal(routed.weights != 0));
  const Routed none = run(spec, logits, given * (routed.weights == 0), {0, 0, kSeq});
  CHECK(none.gradient.abs().max().item<float>() < 1e-7f);
}

TEST_CASE("rows beyond the capacity have no place among the sorted rows, wherever experts and their copies are") {
  RouterSpec spec;
  spec.forced = RouterSpec::Forced::zipf, spec.capacity_factor = 1.5;
  const Tensor logits = random(kTokens, kExperts, 7), given = random(kTokens, kTopK, 8);
  const std::vector<std::int64_t> placement =
      GENERATE(std::vector<std::int64_t>{}, std::vector<std::int64_t>{7, 2, 5, 0, 3, 6, 1, 4},
               std::vector<std::int64_t>{0, 1, 2, 3, 0, 4, 5, 6, 7, 0});
  Routed routed = run(spec, logits, given, {0, 0, kSeq});
  RouterChoice& choice = routed.choice;
  sort_by_slot(choice, SlotMap::make(placement, kExperts, at::kCPU));
  const std::int64_t rows = choice.kept.sum().item<std::int64_t>();
  REQUIRE((rows > 0 && rows < kTokens * kTopK));
  CHECK(choice.order.size(0) == rows);
  CHECK(choice.slot_counts.sum().item<std::int64_t>() == rows);
  CHECK(choice.expert_counts.sum().item<std::int64_t>() == kTokens * kTopK);  // what the router chose
  std::vector<std::int64_t> load(kExperts, 0);
  std::int64_t row = 0;
  for (std::int64_t slot = 0; slot < choice.slot_counts.size(0); ++slot)
    for (std::int64_t i = 0; i < choice.slot_counts[slot].item<std::int64_t>(); ++i, ++row) {
      const std::int64_t at = choice.order[row].item<std::int64_t>();
      const std::int64_t expert = choice.index.view({-1})[at].item<std::int64_t>();
      CHECK(expert == (placement.empty() ? slot : placement[static_cast<std::size_t>(slot)]));
      CHECK(choice.inverse[at].item<std::int64_t>() == row);
      ++load[static_cast<std::size_t>(expert)];
    }
  for (const std::int64_t each : load) CHECK(each <= spec.capacity(kTokens * kTopK, kExperts));
  CHECK((choice.inverse == -1).equal(choice.kept.view({-1}).logical_not()));
}

TEST_CASE("the balancing gradient is that of the sequences, however they are cut into microbatches") {
  const Tensor logits = random(kTokens, kExperts, 9), nothing = at::zeros({kTokens, kTopK});
  const RouterLossScale scale{0.02, 0.01, kSeq};
  const Routed whole = run({}, logits, nothing, scale);
  const Microbatches sequences = Microbatches::split(kTokens / kSeq, GENERATE(1, 2, 3));
  RouterLoss sum;
  std::vector<Tensor> parts;
  std::int64_t begin = 0;
  for (std::int64_t m = 0; m < sequences.count; ++m) {
    const std::int64_t tokens = sequences.of(m) * kSeq;
    const Routed part = run({}, logits.narrow(0, begin, tokens).contiguous(), nothing.narrow(0, begin, tokens), scale);
    begin += tokens;
    parts.push_back(part.gradient);
    add_loss(sum.aux, part.loss.aux), add_loss(sum.z, part.loss.z);
  }
  CHECK(at::cat(parts).equal(whole.gradient));
  CHECK(sum.aux.item<double>() == Approx(whole.loss.aux.item<double>()));
  CHECK(sum.z.item<double>() == Approx(whole.loss.z.item<double>()));
}
