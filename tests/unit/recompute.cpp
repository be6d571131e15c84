// Which blocks are computed again: LLM Foundry's grammar of modules and blocks, its text form and its place in run
// files.
#include <catch2/catch.hpp>
#include <fstream>
#include <numeric>

#include "configs/base/error.hpp"
#include "configs/files/recompute.hpp"
#include "configs/files/run.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;

namespace {

/// The blocks of 10 that a rule for attention names.
std::string blocks(const std::string& words, std::int64_t layers = 10) {
  const Recompute recompute = recompute_from_string("attention:" + words);
  std::string out;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    if (recompute.of(layer, layers).attention) out += std::to_string(layer);
  return out;
}

const char* const kRun = R"(
max_duration: 2ba
max_seq_len: 8
global_train_batch_size: 1
device_train_microbatch_size: 1
model: {name: tiny, n_layers: 6, d_model: 8, n_heads: 2, vocab_size: 32, attn_config: {kv_n_heads: 1, head_dim: 4},
  ffn_config: {ffn_hidden_size: 16, moe_num_experts: 4, moe_top_k: 2}}
fsdp_config: )";

RunSpec read(const std::string& fsdp_config) {
  const test::TempDirectory folder;
  std::ofstream(folder / "run.yaml") << kRun << fsdp_config << "\n";
  return read_run(folder / "run.yaml");
}

std::string target(const std::string& value) {
  return to_string(
      read("{activation_checkpointing: true, activation_checkpointing_target: " + value + "}").layout.recompute);
}

std::string error_of(const std::string& fsdp_config) {
  try {
    read(fsdp_config);
  } catch (const Error& error) {
    return error.code() == Code::usage ? error.what() : "another code";
  }
  return "no error";
}

}  // namespace

TEST_CASE("words name the blocks that LLM Foundry's parse_ele_str names") {
  CHECK(blocks("first-3") == "012");
  CHECK(blocks("last-2") == "89");
  CHECK(blocks("middle-4") == "2345");  // from 9 // 2 - 4 // 2
  CHECK(blocks("middle-3") == "345");
  CHECK(blocks("middle-40", 5) == "01234");
  CHECK(blocks("range-2-5") == "234");
  CHECK(blocks("first-1,last-1,range-4-6") == "0459");
  CHECK(blocks("last-20", 3) == "012");
}

TEST_CASE("chunk-n and every-n count in each chunk of a pipeline, without one in the model") {
  CHECK(blocks("chunk-3") == "012");
  CHECK(blocks("every-3") == "258");
  CHECK(blocks("every-4", 4) == "3");
  const std::vector<std::int64_t> chunks{3, 4, 0, 3};
  const auto of_chunks = [&](const char* words) {
    const Recompute recompute = recompute_from_string(std::string("block:") + words);
    std::string out;
    for (std::int64_t layer = 0; layer < 10; ++layer)
      if (recompute.of(layer, 10, chunks).block) out += std::to_string(layer);
    const Recompute ranges = recompute.as_ranges(10, chunks);
    CHECK((recompute.counts_in_chunks() && !ranges.counts_in_chunks()));
    for (std::int64_t layer = 0; layer < 10; ++layer) CHECK(ranges.of(layer, 10) == recompute.of(layer, 10, chunks));
    return out;
  };
  CHECK(of_chunks("chunk-2") == "013478");
  CHECK(of_chunks("every-2") == "1468");
  CHECK(to_string(recompute_from_string("block:every-2").as_ranges(4)) == "block:range-1-2,range-3-4");
  CHECK(recompute_from_string("block:first-2,last-1").as_ranges(9) == recompute_from_string("block:first-2,last-1"));
  CHECK_THROWS_WITH(recompute_from_string("block:every-11").check(10, "here"), Catch::Contains("every-11 holds none"));
  CHECK_THROWS_WITH(recompute_from_string("attention:chunk-1+core:every-1").check(10, "here", chunks),
                    Catch::Contains("attention and core of block 0"));
}

TEST_CASE("every-n is refused where a chunk has fewer blocks than n, by the chunk") {
  const auto every = [](std::int64_t n, const std::vector<std::int64_t>& chunks) {
    recompute_from_string("block:every-" + std::to_string(n)).check(10, "here", chunks);
  };
  const std::vector<std::int64_t> chunks{0, 3, 4, 3, 0};  // a chunk without blocks has none to recompute
  for (std::int64_t n = 1; n <= 3; ++n) CHECK_NOTHROW(every(n, chunks));
  CHECK_THROWS_WITH(
      every(4, chunks),
      "here: recompute of block: every-4 holds none of the 3 blocks of chunk 2 of 5; needs every-3 or less");
  CHECK_THROWS_WITH(every(5, {5, 2, 3}), Catch::Contains("every-5 holds none of the 2 blocks of chunk 2 of 3"));
  CHECK_NOTHROW(every(10, {}));
  CHECK_THROWS_WITH(every(11, {}),
                    "here: recompute of block: every-11 holds none of the 10 blocks; needs every-10 or less");
  const std::string staged =
      "{pipeline_parallel_degree: 3, reshard_after_forward: false, gradient_reduction: step, "
      "activation_checkpointing: true, activation_checkpointing_target: {block: every-";
  CHECK(error_of(staged + "2}}") == "no error");
  CHECK_THAT(error_of(staged + "3}}"), Catch::Contains("every-3 holds none of the 2 blocks of chunk 1 of 3"));
}

TEST_CASE("run files take a module, a list of modules, a map to numbers, lists and words") {
  CHECK(read("{activation_checkpointing: false}").layout.recompute == Recompute::none);
  CHECK(read("{activation_checkpointing: true}").layout.recompute == Recompute::block);
  CHECK(target("null") == "block");
  CHECK(target("experts") == "experts");
  CHECK(target("[norm, attention]") == "attention+norm");
  CHECK(target("[layernorm, moe_act, core_attn]") == "norm+core+moe_act");  // Megatron-Core's words
  CHECK(target("{attention: 2}") == "attention:first-2");
  CHECK(target("{experts: [0, 3, last-1]}") == "experts:range-0-1,range-3-4,last-1");
  CHECK(target("{mptblock: 'first-1, last-1', grouped_query_attention: range-1-5}") ==
        "block:first-1,last-1+attention:range-1-5");
}

TEST_CASE("text and run file read back to the same plan") {
  for (const std::string text : {"none", "block", "attention+experts", "attention:first-2,last-2+experts:range-2-5",
                                 "experts+norm", "block:range-0-1+experts:range-1-6+norm:last-2", "moe:first-2",
                                 "norm+core+moe_act", "block/int8", "attention:last-3/fp8"}) {
    const Recompute recompute = recompute_from_string(text);
    CHECK(to_string(recompute) == text);
    RunSpec run = read("{}");
    run.layout.recompute = recompute;
    const test::TempDirectory folder;
    std::ofstream(folder / "again.yaml") << run_to_yaml(run);
    CHECK(read_run(folder / "again.yaml").layout.recompute == recompute);
  }
}

TEST_CASE("what cannot be is refused with what is allowed") {
  const auto bad = [](const std::string& value) {
    return error_of("{activation_checkpointing: true, activation_checkpointing_target: " + value + "}");
  };
  CHECK_THAT(bad("mhc"), Catch::Contains("found 'mhc', allowed block, attention, experts, norm, core, products, moe, "
                                         "moe_act, mla_up_proj, mlp, shared_experts"));
  CHECK_THAT(bad("[moe, moe_act]"), Catch::Contains("found moe and moe_act of block 0"));
  CHECK_THAT(bad("[experts, moe]"), Catch::Contains("found moe and experts of block 0"));
  CHECK_THAT(bad("mla_up_proj"), Catch::Contains("mla_up_proj for model tiny; needs latent attention"));
  CHECK_THAT(bad("mlp"), Catch::Contains("needs an FFN in layers without experts"));
  CHECK_THAT(bad("shared_experts"), Catch::Contains("needs shared experts"));
  CHECK_THAT(bad("{experts: most-3}"),
             Catch::Contains("found 'most-3', allowed first-n, last-n, middle-n, chunk-n, every-n, range-i-j"));
  CHECK_THAT(bad("{experts: range-3-3}"), Catch::Contains("found 'range-3-3'"));
  CHECK_THAT(bad("{experts: 0}"), Catch::Contains("found '0'"));
  CHECK_THAT(bad("{experts: []}"), Catch::Contains("empty list"));
  CHECK_THAT(bad("{experts: [6]}"), Catch::Contains("range-6-7 holds none of the 6 blocks; allowed are blocks 0 to 5"));
  CHECK_THAT(bad("[experts, experts]"), Catch::Contains("found experts twice"));
  CHECK_THAT(bad("{block: first-3, experts: range-2-5}"),
             Catch::Contains("block 2 is to be recomputed as a whole and in parts"));
  CHECK_THAT(error_of("{activation_checkpointing_target: experts}"),
             Catch::Contains("activation_checkpointing is false"));
  CHECK_THAT(error_of("{activation_compression: int8}"), Catch::Contains("no block computes its attention again"));
  CHECK_THAT(error_of("{activation_checkpointing: true, activation_compression: int4}"), Catch::Contains("int4"));
  CHECK_THROWS_WITH(recompute_from_string("block/zip"), Catch::Contains("none, int8, fp8"));
  CHECK_THROWS_WITH(recompute_from_string("block+"), Catch::Contains("found ''"));
}

TEST_CASE("what the trainer has not is said by name") {
  const auto lacks = [](const std::string& fsdp_config) { return untrainable(read(fsdp_config)); };
  const auto with = [&](const std::string& value) {
    return lacks("{activation_checkpointing: true, activation_checkpointing_target: " + value + "}");
  };
  CHECK(with("[attention, experts, norm]").empty());
  CHECK(with("[moe_act, core]") == std::vector<std::string>{"recompute of core", "recompute of moe_act"});
  CHECK(with("{moe: 1}") == std::vector<std::string>{"recompute of moe"});
  CHECK(lacks("{cuda_graphs: full}") == std::vector<std::string>{"cuda_graphs full"});
  RunSpec run = read("{activation_checkpointing: true, activation_checkpointing_target: norm}");
  run.model.shared_ffn = 4;
  REQUIRE(untrainable(run).size() == 1);
  CHECK_THAT(untrainable(run).front(), Catch::Contains("recompute of norm in layer 0"));
  run.optimizer.kind = OptimizerKind::muon;
  CHECK(untrainable(run).back() == "optimizer muon");
}
