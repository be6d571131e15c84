// The head in pieces of tokens, against autograd through plain operations on all tokens at once.
#include <catch2/catch.hpp>

#include "configs/files/memory_facts.hpp"
#include "trainer/model/segments.hpp"
#include "trainer/pch.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;
using at::Tensor;

namespace {

constexpr std::int64_t kHeadTokens = 24, kVocabulary = 40, kHeadWidth = 16;

ModelSpec model_of_head() {
  ModelSpec m;
  m.name = "head", m.layers = 1, m.d_model = kHeadWidth, m.heads = m.kv_heads = 2, m.head_dim = 8, m.ffn = 32;
  m.vocab = kVocabulary;
  return m;
}

struct HeadGradients {
  double loss = 0;
  Tensor input, norm, weight;
};

struct Head {
  explicit Head(bool learned = true) : groups(group_layout(model, layout, Group::head, -1, 0)) {
    weights = Slot::make(groups, at::kFloat, {}, learned);
    weights.flat.copy_(make_group(groups, 3).master);
  }
  HeadGradients run(std::int64_t chunks) const {
    GradientBuffer gradient = GradientBuffer::make(groups);
    Slot slot = weights;
    if (slot.leaves.back().requires_grad()) slot.accumulate_into(gradient);
    const Segments segments(model, layout, kHeadTokens / 2, 2, at::kFloat, 0, at::kCPU, false, chunks);
    const Tensor loss = at::zeros({}, at::kDouble);
    HeadGradients out;
    out.input = segments.head(slot, slot, input, targets, 0, loss);
    out.loss = loss.item<double>(), out.norm = gradient.leaves.front(), out.weight = gradient.leaves.back();
    return out;
  }
  HeadGradients reference() const {
    const auto leaf = [](const Tensor& value) { return value.detach().clone().requires_grad_(true); };
    const Tensor x = leaf(input), gain = leaf(weights.leaves.front()), weight = leaf(weights.leaves.back());
    const Tensor normed = x * (x.square().mean(1, true) + model.norm_eps).rsqrt() * gain;
    const Tensor loss = at::nll_loss(normed.mm(weight.t()).log_softmax(1), targets, {}, at::Reduction::Sum);
    (loss / kHeadTokens).backward();
    return {loss.item<double>(), x.grad(), gain.grad(), weight.grad()};
  }

  ModelSpec model = model_of_head();
  Layout layout;
  GroupLayout groups;
  Slot weights;
  Tensor input = at::randn({kHeadTokens, kHeadWidth}, at::make_generator<at::CPUGeneratorImpl>(1), at::kFloat);
  Tensor targets = [] {
    Tensor out = at::arange(kHeadTokens, at::kLong).mul_(7).remainder_(kVocabulary);
    out.narrow(0, 3, 6).fill_(WT_IGNORED_TARGET);
    return out;
  }();
};

bool near(const Tensor& a, const Tensor& b) { return at::allclose(a, b, 1e-5, 1e-6); }

}  // namespace

TEST_CASE("in any number of pieces the head gives autograd's loss and gradients") {
  const Head head;
  const HeadGradients expected = head.reference();
  // Pieces of 24, 6 and 5 tokens, one without any target, of a single token, and Liger's of 8.
  for (const std::int64_t chunks :
       {std::int64_t{1}, std::int64_t{4}, std::int64_t{5}, std::int64_t{8}, std::int64_t{1000}, kLigerChunks}) {
    INFO(chunks);
    const HeadGradients found = head.run(chunks);
    CHECK(found.loss == Approx(expected.loss).epsilon(1e-6));
    CHECK(near(found.input, expected.input));
    CHECK(near(found.norm, expected.norm));
    CHECK(near(found.weight, expected.weight));
    CHECK(head.run(chunks).weight.equal(found.weight));  // the same bits each time
  }
}

TEST_CASE("a frozen head in pieces hands gradients on and has none") {
  const HeadGradients expected = Head().run(1), found = Head(false).run(4);
  CHECK(near(found.input, expected.input));
  CHECK(found.weight.abs().max().item<float>() == 0);
}
