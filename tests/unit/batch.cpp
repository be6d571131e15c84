// The tokens of a microbatch, and those that lie ahead of each.
#include <catch2/catch.hpp>

#include "kernels/kernels.h"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/data/mds_reader.hpp"
#include "trainer/data/mds_writer.hpp"
#include "trainer/model/batch.hpp"
#include "trainer/model/segments.hpp"
#include "trainer/pch.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;
using namespace wt::test;

namespace {

std::vector<std::int64_t> values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel()};
}

}  // namespace

TEST_CASE("targets are as many places on as a module predicts, and none behind the end of the sequence") {
  const TempDirectory folder;
  MdsWriter writer(folder / "data", {{"tokens", "ndarray:uint16"}});
  writer.write_tokens(std::vector<std::uint16_t>{10, 11, 12, 13, 14, 15, 16});  // two more than max_seq_len + 1
  writer.write_tokens(std::vector<std::uint16_t>{20, 21, 22, 23, 24, 25, 26});
  writer.finish();
  const MdsReader data(folder / "data");
  RunSpec run;
  run.seq = 4, run.model.vocab = 30, run.model.mtp_layers = 2;
  const std::vector<std::int64_t> samples{1, 0}, all{0, 1, 2, 3}, ends{0, 3};
  const std::int64_t none = WT_IGNORED_TARGET;

  const Microbatch whole = load_microbatch(data, run, samples, all, false);
  CHECK(values(whole.tokens) == std::vector<std::int64_t>{20, 21, 22, 23, 10, 11, 12, 13});
  CHECK(values(whole.targets[0]) == std::vector<std::int64_t>{21, 22, 23, 24, 11, 12, 13, 14});
  CHECK(values(whole.targets[1]) == std::vector<std::int64_t>{22, 23, 24, none, 12, 13, 14, none});
  CHECK(values(whole.targets[2]) == std::vector<std::int64_t>{23, 24, none, none, 13, 14, none, none});

  const Microbatch part =
      load_microbatch(data, run, samples, ends, false);  // a rank's pieces under context parallelism
  CHECK(values(part.tokens) == std::vector<std::int64_t>{20, 23, 10, 13});
  CHECK(values(part.targets[2]) == std::vector<std::int64_t>{23, none, 13, none});
  run.model.mtp_layers = 0;
  CHECK(load_microbatch(data, run, samples, all, false).targets.size(0) == 1);
}

// As LLM Foundry trains on them: inputs are the tokens, targets the same shifted by one, the last one ignored.
TEST_CASE("the last token of a sample of max_seq_len tokens has no target") {
  const TempDirectory folder;
  MdsWriter writer(folder / "data", {{"tokens", "ndarray:uint16"}});
  writer.write_tokens(std::vector<std::uint16_t>{10, 11, 12, 13});
  writer.write_tokens(std::vector<std::uint16_t>{20, 21, 22, 23, 24, 25});  // read to max_seq_len, too
  writer.finish();
  const MdsReader data(folder / "data");
  RunSpec run;
  run.seq = 4, run.model.vocab = 30, run.model.mtp_layers = 1;
  const std::vector<std::int64_t> samples{0, 1}, all{0, 1, 2, 3};
  const std::int64_t none = WT_IGNORED_TARGET;
  CHECK(is_last_target_missing(data, run));
  CHECK_THROWS_WITH(load_microbatch(data, run, samples, all, false),
                    Catch::Contains("sample 0 has 4 tokens, max_seq_len 4 needs 5"));
  const Microbatch batch = load_microbatch(data, run, samples, all, true);
  CHECK(values(batch.tokens) == std::vector<std::int64_t>{10, 11, 12, 13, 20, 21, 22, 23});
  CHECK(values(batch.targets[0]) == std::vector<std::int64_t>{11, 12, 13, none, 21, 22, 23, none});
  CHECK(values(batch.targets[1]) == std::vector<std::int64_t>{12, 13, none, none, 22, 23, none, none});
  run.seq = 3;
  CHECK_FALSE(is_last_target_missing(data, run));
  run.seq = 5;
  CHECK_THROWS_WITH(is_last_target_missing(data, run),
                    Catch::Contains("its first sample has 4 tokens, max_seq_len 5 needs 6"));
}

TEST_CASE("a rank's work is its own share of the batch, not an even one") {
  RunSpec run;
  run.global_batch = 8, run.layout.replicate = 3, run.layout.microbatch = 2;
  std::int64_t next = 0;
  for (const std::int64_t rank : {0, 1, 2}) {
    const RankWork work(run, rank, false);
    CHECK(work.share.first == next);
    CHECK(work.share.count == (rank < 2 ? 3 : 2));
    const Microbatches& parts = work.sequences;
    CHECK((parts.count - 1) * parts.each + parts.last == work.share.count);
    std::vector<std::int64_t> own(static_cast<std::size_t>(work.share.count));
    std::int64_t taken = 0;
    for (int microbatch = 0; microbatch < parts.count; ++microbatch)
      taken += std::ssize(microbatch_samples(work, std::span<const std::int64_t>(own), microbatch));
    CHECK(taken == work.share.count);
    next += work.share.count;
  }
  CHECK(next == run.global_batch);
  CHECK_THROWS_WITH(run.sequences(), Catch::Contains("found 8 for 3 ranks"));
}

TEST_CASE("the loss is divided by the targets that there are") {
  ModelSpec model;
  model.layers = model.heads = model.kv_heads = 1, model.d_model = model.head_dim = 8;
  const Layout layout;
  CHECK(Segments(model, layout, 8, 3, at::kFloat).loss_tokens(0) == 24);
  CHECK(Segments(model, layout, 8, 3, at::kFloat, 0, at::kCPU, true).loss_tokens(0) == 21);
  CHECK(Segments(model, layout, 8, 3, at::kFloat, 0, at::kCPU, true).loss_tokens(1) == 18);
}
