// Sequences of several examples: their tokens, their targets, and attention that stays inside of each.
#include "trainer/model/document_attention.hpp"

#include <array>
#include <catch2/catch.hpp>

#include "kernels/kernels.h"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/data/mds_writer.hpp"
#include "trainer/model/attention.hpp"
#include "trainer/model/example_batch.hpp"
#include "trainer/pch.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;
using namespace wt::test;

namespace {

std::vector<std::int64_t> numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel()};
}

/// Two turns each: prompt, response.
std::filesystem::path packed_turns(const std::filesystem::path& folder) {
  MdsWriter writer(folder, {{"turns", "json"}});
  for (const char* turns :
       {R"([{"input_ids": [1, 2], "labels": [3]}])", R"([{"input_ids": [4], "labels": [5, 6]}])",
        R"([{"input_ids": [7, 8, 9], "labels": [10, 11, 12, 13]}])", R"([{"input_ids": [14, 15], "labels": []}])"})
    writer.write(std::array<std::string, 1>{turns});
  writer.finish();
  return folder;
}

RunSpec run_of(const std::filesystem::path& folder, double ratio) {
  RunSpec run;
  run.seq = 8, run.global_batch = 2, run.model.vocab = 16;
  run.dataset.use_folder(folder);
  run.dataset.finetuning.emplace().packing_ratio = ratio;
  return run;
}

/// Positions' rows of the whole sequence without cuts, as an additive mask that also forbids other documents.
at::Tensor mask_of(const Documents& documents, std::int64_t seq) {
  at::Tensor mask = at::full({static_cast<std::int64_t>(documents.size()), 1, seq, seq},
                             -std::numeric_limits<double>::infinity(), at::kDouble);
  for (std::size_t b = 0; b < documents.size(); ++b)
    for (std::int64_t q = 0; q < seq; ++q) {
      std::int64_t first = 0;
      for (const std::int64_t begin : documents[b])
        if (begin <= q) first = begin;
      mask[static_cast<std::int64_t>(b)][0][q].slice(0, first, q + 1).zero_();
    }
  return mask;
}

double apart(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

/// Inputs of attention with their gradients; a copy in doubles for the reference.
struct AttentionInputs {
  at::Tensor q, k, v, sinks;
  static AttentionInputs drawn(std::int64_t seq) {
    at::manual_seed(5);
    const auto leaf = [](at::IntArrayRef sizes) { return at::randn(sizes, at::kFloat).requires_grad_(true); };
    return {leaf({3, 4, seq, 8}), leaf({3, 2, seq, 8}), leaf({3, 2, seq, 8}), leaf({4})};
  }
  AttentionInputs again() const {
    const auto copy = [](const at::Tensor& x) { return x.detach().to(at::kDouble).requires_grad_(true); };
    return {copy(q), copy(k), copy(v), copy(sinks)};
  }
};

/// As the ranks of a context group compute it, put together.
at::Tensor attended(const AttentionInputs& in, const ModelSpec& model, const Documents& documents,
                    std::int64_t context) {
  const std::int64_t seq = in.q.size(2);
  Slot weights;
  if (model.attention.sinks) weights.names = {"attention.sinks"}, weights.leaves = {in.sinks};
  at::Tensor out = at::zeros({3, seq, 32}, at::kFloat);
  for (std::int64_t rank = 0; rank < context; ++rank) {
    const Positions positions = Positions::make(model, seq, context, rank);
    const at::Tensor own = at::tensor(context_positions(seq, context, rank), at::kLong);
    const at::Tensor part = attend(in.q.index_select(2, own), in.k, in.v, weights, model, positions, 0, documents);
    out = out.index_add(1, own, part.view({3, own.size(0), 32}));
  }
  return out;
}

/// With all scores and one mask.
at::Tensor attended_under_mask(const AttentionInputs& in, const ModelSpec& model, const Documents& documents) {
  const std::int64_t seq = in.q.size(2);
  at::Tensor mask = mask_of(documents, seq);
  const Positions positions = Positions::make(model, seq);
  for (const auto& more : {positions.masks, positions.local_masks})
    if (!more.empty()) mask = mask + more[0].to(at::kDouble);
  at::Tensor scores = at::matmul(in.q, in.k.repeat_interleave(2, 1).transpose(2, 3)) / std::sqrt(8.0) + mask;
  if (model.attention.sinks) scores = at::cat({scores, in.sinks.view({1, 4, 1, 1}).expand({3, 4, seq, 1})}, 3);
  return at::matmul(scores.softmax(-1).narrow(3, 0, seq), in.v.repeat_interleave(2, 1))
      .transpose(1, 2)
      .reshape({3, seq, 32});
}

}  // namespace

TEST_CASE("examples of a sequence have their own targets, and nothing predicts the first of the next") {
  const TempDirectory folder;
  const RunSpec run = run_of(packed_turns(folder / "data"), 1.5);
  const ShardCache data(run.dataset);
  ExampleBatches batches(data, run.dataset, run);
  const std::vector<std::int64_t> all{0, 1, 2, 3, 4, 5, 6, 7}, ends{0, 1, 6, 7};
  const std::int64_t none = WT_IGNORED_TARGET;
  CHECK(run.samples_per_step() == 3);
  const ExampleStep step = batches.step(std::vector<std::int64_t>{0, 1, 2});
  CHECK(step.sequences == std::vector<PackedExamples>{{2}, {0, 1}});
  CHECK(step.targets == 7);
  const Microbatch batch = batches.load(step.sequences, all);
  CHECK(numbers(batch.tokens) == std::vector<std::int64_t>{7, 8, 9, 10, 11, 12, 13, 0, 1, 2, 3, 4, 5, 6, 0, 0});
  CHECK(numbers(batch.targets) == std::vector<std::int64_t>{none, none, 10, 11, 12, 13, none, none,  //
                                                            none, 3, none, 5, 6, none, none, none});
  CHECK(batch.documents == Documents{{0}, {0, 3}});
  const Microbatch part = batches.load(step.sequences, ends);  // a rank's pieces under context parallelism
  CHECK(numbers(part.tokens) == std::vector<std::int64_t>{7, 8, 13, 0, 1, 2, 0, 0});
  CHECK(numbers(part.targets) == std::vector<std::int64_t>{none, none, none, none, none, 3, none, none});
  CHECK(part.documents == batch.documents);
}

TEST_CASE("examples of their own sequences need no documents, and a step without a target is refused") {
  const TempDirectory folder;
  const RunSpec run = run_of(packed_turns(folder / "data"), 1);
  const ShardCache data(run.dataset);
  ExampleBatches batches(data, run.dataset, run);
  const ExampleStep step = batches.step(std::vector<std::int64_t>{1, 3});
  CHECK(step.sequences == std::vector<PackedExamples>{{1}, {3}});
  CHECK(step.targets == 2);
  const std::vector<std::int64_t> all{0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(batches.load(step.sequences, all).documents.empty());
  const Microbatch nothing = batches.load(std::vector<PackedExamples>{{kNoSample}}, all);
  CHECK(targets_in(nothing) == 0);
  CHECK_THROWS_WITH(batches.step(std::vector<std::int64_t>{3, 3}),
                    Catch::Contains("found no token to learn in the 2 sequences of a step, sample 3 among them"));
  RunSpec small = run;
  small.model.vocab = 12;
  const ExampleBatches narrow(data, small.dataset, small);
  CHECK_THROWS_WITH(narrow.load(std::vector<PackedExamples>{{2}}, all),
                    Catch::Contains("token 12 in sample 2, the model's vocab_size is 12"));
}

TEST_CASE("attention of documents is attention under a mask, with its gradients, however many ranks share a sequence") {
  const Documents documents{{0, 3, 4, 9}, {0}, {0, 15}};
  ModelSpec plain;
  plain.layers = 1, plain.d_model = 32, plain.heads = 4, plain.kv_heads = 2, plain.head_dim = 8;
  ModelSpec biased = plain, local = plain;
  biased.attention.alibi = true;
  local.attention.window = 4, local.attention.sinks = true;
  const AttentionInputs drawn = AttentionInputs::drawn(16);
  const at::Tensor gradient = at::randn({3, 16, 32}, at::kFloat);
  for (const ModelSpec& model : {plain, biased, local})
    for (const std::int64_t context : {1, 2, 4}) {
      INFO("context " << context << ", window " << model.attention.window << ", biases " << model.attention.alibi);
      const AttentionInputs in = drawn, reference = drawn.again();
      for (const at::Tensor* x : {&in.q, &in.k, &in.v, &in.sinks}) x->mutable_grad().reset();
      const at::Tensor out = attended(in, model, documents, context);
      const at::Tensor expected = attended_under_mask(reference, model, documents);
      (out * gradient).sum().backward();
      (expected * gradient).sum().backward();
      CHECK(apart(out, expected) < 1e-5);
      CHECK(apart(in.q.grad(), reference.q.grad()) < 1e-5);
      CHECK(apart(in.k.grad(), reference.k.grad()) < 1e-5);
      CHECK(apart(in.v.grad(), reference.v.grad()) < 1e-5);
      if (model.attention.sinks) CHECK(apart(in.sinks.grad(), reference.sinks.grad()) < 1e-5);
    }
}
