// Tables of measured training steps: what the cells say, what follows from them, and what is wrong with a row.
#include <fmt/core.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/files/stack.hpp"
#include "sim/measurements/csv.hpp"
#include "sim/measurements/run_layout.hpp"
#include "sim/measurements/run_rows.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;

namespace {

using Cells = std::map<std::string, std::string>;

/// A run that says everything.
const Cells kRun = {{"row_id", "r1"},
                    {"source_id", "s"},
                    {"framework", "LLM Foundry/Composer + PyTorch FSDP1"},
                    {"gpu", "H100-80GB"},
                    {"n_gpus", "32"},
                    {"gpus_per_node", "8"},
                    {"interconnect", "IB"},
                    {"model", "Llama"},
                    {"arch_type", "dense"},
                    {"arch_evidence", "read"},
                    {"layers", "32"},
                    {"hidden", "4096"},
                    {"heads", "32"},
                    {"kv_heads", "8"},
                    {"head_dim", ""},
                    {"ffn_hidden", "14336"},
                    {"expert_ffn", ""},
                    {"gated", "1"},
                    {"vocab", "128256"},
                    {"experts", ""},
                    {"top_k", ""},
                    {"shared_experts", ""},
                    {"seq_len", "4096"},
                    {"params_total", "8030000000"},
                    {"fsdp_mode", "HSDP"},
                    {"fsdp_shard_group", "4"},
                    {"dp", "8"},
                    {"ep", ""},
                    {"etp", ""},
                    {"tp", "2"},
                    {"pp", "2"},
                    {"vp", ""},
                    {"pipeline_layout", ""},
                    {"cp", "1"},
                    {"micro_batch", "2"},
                    {"grad_accum", ""},
                    {"global_batch_seqs", "64"},
                    {"act_ckpt", "selective (per-op)"},
                    {"precision", "amp_bf16/DEFAULT"},
                    {"moe_routing", ""},
                    {"dispatcher", ""},
                    {"cuda_graphs", ""},
                    {"preset", ""},
                    {"ep_overlap", ""},
                    {"step_time_s", ""},
                    {"tokens_per_s_per_gpu", "4096"},
                    {"mem_gb", "40"}};

std::vector<RunRow> rows_of(const std::vector<Cells>& lines) {
  std::string text;
  for (const auto& [column, cell] : kRun) text += column + ",";
  text += "another\n";
  for (const Cells& changed : lines) {
    for (const auto& [column, cell] : kRun) text += "\"" + (changed.count(column) ? changed.at(column) : cell) + "\",";
    text += "a note\n";
  }
  const test::TempDirectory folder;
  test::write_bytes(folder / "runs.csv", text);
  return read_run_rows(folder / "runs.csv");
}
RunRow row_of(const Cells& changed) { return rows_of({changed}).at(0); }

std::vector<RunRow> tables_of(const std::string& lines) {
  const test::TempDirectory folder;
  test::write_bytes(folder / "t.csv",
                    "source,framework,interconnect,model,gpu,n_gpus,parallelism,batch/"
                    "seq,precision,measured_metric,measured_value,predicted_value\n" +
                        lines);
  return read_run_rows(folder / "t.csv");
}

}  // namespace

TEST_CASE("a run's row says its layout, and what follows from it") {
  const RunRow row = row_of({});
  REQUIRE(row.unusable.empty());
  CHECK(row.line == 2);
  CHECK(row.name == "Llama, 32 x H100-80GB, dp 8 tp 2 pp 2, 4 x 2 x 4096 tokens");
  CHECK((row.dp == 8 && row.tp == 2 && row.pp == 2 && row.cp == 1 && row.vp == 1 && row.ep == 1));
  CHECK((row.zero_stage == 3 && row.shard_group == 4));
  CHECK(row.accumulation == 4);  // 64 sequences / (8 ranks x 2)
  CHECK(row.step_s == Approx(64.0 * 4096 / (4096 * 32)));
  CHECK(row.memory_bytes == 40.0 * (1 << 30));
  CHECK(row.memory_of == MemoryOf::peak);
  CHECK(row_of({{"framework", "nanotron"}}).memory_of == MemoryOf::peak_reserved);
  CHECK(row.recompute == recompute_from_string("products"));
  CHECK(row_of({{"act_ckpt", "selective (attention core)"}}).recompute == recompute_from_string("core"));
  CHECK(row_of({{"act_ckpt", "selective: layernorm+moe_act"}}).recompute == recompute_from_string("norm+moe_act"));
  CHECK(row_of({{"act_ckpt", "selective: mla_up_proj, mlp"}}).recompute == recompute_from_string("mla_up_proj+mlp"));
  const RunRow every = row_of({{"act_ckpt", "selective (every-n layer)"}});
  CHECK((every.recompute.of(1, 32).block && !every.recompute.of(2, 32).block && every.recompute.of(31, 32).block));
  CHECK(every.assumed.size() == 1);
  CHECK(row.precision.word == "amp_bf16");
  CHECK(row.sequence_parallel);
  CHECK((row.model.kv_heads == 8 && row.model.head_dim == 128 && row.model.ffn == 14336));
  CHECK_FALSE(row.model.tied);  // 8.03 B parameters are those of two vocabulary matrices
  CHECK(row.assumed.empty());
}

TEST_CASE("releases of one model are one group, in any source of a framework and cut to any number of layers") {
  const std::string group = row_of({}).group;
  CHECK(row_of({{"source_id", "later"}, {"model", "Llama 3.1 (cut)"}, {"layers", "8"}, {"vocab", "128256"}}).group ==
        group);
  CHECK(row_of({{"hidden", "8192"}, {"heads", "64"}}).group != group);
  CHECK(row_of({{"framework", "nanotron"}}).group != group);
}

TEST_CASE("what a source does not say is assumed, and the row says so") {
  const RunRow row = row_of(
      {{"heads", ""}, {"kv_heads", ""}, {"ffn_hidden", ""}, {"vocab", ""}, {"params_total", "7e9"}, {"act_ckpt", ""}});
  REQUIRE(row.unusable.empty());
  CHECK(row.model.ffn == 11008);
  CHECK(static_cast<double>(row.model.total_parameters()) == Approx(7e9).epsilon(1e-3));
  CHECK(row.recompute == Recompute::none);
  CHECK(row.assumed == std::vector<std::string>{"heads of 128", "FFN of 11008",
                                                "vocabulary of " + std::to_string(row.model.vocab), "no recompute"});
  CHECK(row_of({{"micro_batch", ""}}).microbatch == 1);
  CHECK(row_of({{"micro_batch", ""}, {"grad_accum", "4"}}).microbatch == 2);
  const auto both = rows_of({{{"act_ckpt", "full"}}, {{"act_ckpt", ""}}});
  CHECK(both[1].recompute == Recompute::block);
  CHECK(both[1].assumed == std::vector<std::string>{"recompute as in the source's other runs"});
}

TEST_CASE("words and numbers of other tables are understood or refused, never taken for something else") {
  CHECK(row_of({{"gated", "1.0"}}).model.activation == Activation::swiglu);
  CHECK(row_of({{"gated", "False"}}).model.activation == Activation::gelu);
  CHECK(row_of({{"gated", "maybe"}}).unusable.find("found 'maybe'") != std::string::npos);
  CHECK(row_of({{"experts", "0"}, {"cp", "0"}}).unusable.empty());
  const auto stage = [&](const std::string& mode) {
    return row_of({{"fsdp_mode", mode}, {"fsdp_shard_group", ""}}).zero_stage;
  };
  CHECK(stage("DDP") == 0);
  CHECK(stage("SHARD_GRAD_OP") == 1);
  CHECK(stage("FULL_SHARD") == 3);
  CHECK(stage("zero3") == 3);
  CHECK(stage("ZeRO stage 1") == 1);
  CHECK(stage("none") == 0);
  CHECK(row_of({{"fsdp_mode", "sharded"}}).unusable.find("found 'sharded'") != std::string::npos);
  CHECK_FALSE(row_of({{"framework", "Megatron-DeepSpeed"}, {"gpu", "A100-80GB"}}).sequence_parallel);
  CHECK(row_of({{"act_ckpt", "Full"}}).recompute == Recompute::block);
  CHECK(row_of({{"act_ckpt", "False"}}).recompute == Recompute::none);
  // What is not said of the weights follows from the framework.
  const auto silent = [&](const std::string& framework) {
    return row_of({{"framework", framework}, {"fsdp_mode", ""}, {"fsdp_shard_group", ""}}).zero_stage;
  };
  CHECK(silent("NeMo") == 1);
  CHECK(silent("Megatron-Bridge") == 1);
  CHECK(silent("NeMo AutoModel (PyTorch FSDP2)") == 3);
  CHECK(silent("Homegrown") == 0);
  for (const char* column : {"tp", "n_gpus", "micro_batch", "grad_accum", "hidden", "layers"})
    CHECK(row_of({{column, "4294967296"}}).unusable.find("found '4294967296', needs a whole number") !=
          std::string::npos);
}

TEST_CASE("degrees that are not said follow from the others, or are not there") {
  CHECK(row_of({{"tp", ""}}).tp == 2);  // 32 GPUs, 8 replicas, 2 stages
  const RunRow bare = row_of({{"tp", ""}, {"pp", ""}, {"dp", ""}, {"cp", ""}, {"fsdp_shard_group", ""}});
  REQUIRE(bare.unusable.empty());
  CHECK((bare.tp == 1 && bare.pp == 1 && bare.dp == 32 && bare.shard_group == 32));
  CHECK(std::count(bare.assumed.begin(), bare.assumed.end(), "no tensor parallelism") == 1);
  CHECK(row_of({{"precision", ""}}).precision.word == "amp_bf16");
}

TEST_CASE("a table needs few columns, and its others are what it does not say") {
  const test::TempDirectory folder;
  test::write_bytes(folder / "few.csv",
                    "seq_len,hidden,layers,model,n_gpus,gpu,step_time_s,global_batch_seqs,heads\n"
                    "4096,4096,32,M,8,H20,9,16,32\n4096,4096,32,M,8,H20,9,17,32\n4096,4096,,M,8,H20,9,16,32\n");
  const auto rows = read_run_rows(folder / "few.csv");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].unusable.find("neither vocabulary nor parameters said") != std::string::npos);
  CHECK(rows[2].unusable.find("layers not said") != std::string::npos);
  test::write_bytes(folder / "more.csv",
                    "seq_len,hidden,layers,model,n_gpus,gpu,step_time_s,global_batch_seqs,heads,vocab\n"
                    "4096,4096,32,M,8,H20,9,16,32,32000\n4096,4096,32,M,8,H20,9,17,32,32000\n");
  const auto more = read_run_rows(folder / "more.csv");
  CHECK(more[0].unusable.empty());
  CHECK((more[0].dp == 8 && more[0].accumulation == 2 && more[0].precision.word == "amp_bf16"));
  CHECK(more[1].unusable.find("a global batch of 17 sequences for 8 ranks") != std::string::npos);
  test::write_bytes(folder / "other.csv", "gpu,nodes,gpus,collective\nH100,1,8,all_reduce\n");
  CHECK(test::usage_error([&] { read_run_rows(folder / "other.csv"); }).find("column 'n_gpus' missing") !=
        std::string::npos);
}

TEST_CASE("experts are cut over a tensor group, or its ranks have their own") {
  const Cells moe = {{"experts", "64"}, {"top_k", "8"}, {"expert_ffn", "768"}};
  const auto with = [&](Cells cells) {
    cells.insert(moe.begin(), moe.end());
    return row_of(cells);
  };
  CHECK_FALSE(with({{"ep", "8"}}).whole_experts);
  CHECK(with({{"ep", "8"}, {"etp", "1"}}).whole_experts);
  CHECK(with({{"ep", "16"}}).whole_experts);  // more than 8 replicas have
  CHECK(with({{"ep", "8"}, {"etp", "4"}}).unusable.find("etp: found 4 with tensor groups of 2") != std::string::npos);
}

TEST_CASE("kReleaseDrift is the farthest that a recipe moved between releases of NeMo") {
  std::map<std::string, std::pair<double, double>> recipes;  // least and most seconds
  for (const RunRow& r : read_run_rows("configs/measurements/training_runs.csv")) {
    if (r.framework != "NeMo/Megatron-Core" || !(r.step_s > 0)) continue;
    const std::string recipe = fmt::format("{} layers, {} x {}, tp {} pp {} ep {}, {} x {}, {}", r.model.layers, r.gpus,
                                           r.gpu, r.tp, r.pp, r.ep, r.global_batch, r.microbatch, r.precision.word);
    auto [it, fresh] = recipes.try_emplace(recipe, r.step_s, r.step_s);
    it->second = {std::min(it->second.first, r.step_s), std::max(it->second.second, r.step_s)};
  }
  double farthest = 1;
  for (const auto& [recipe, times] : recipes) farthest = std::max(farthest, times.second / times.first);
  CHECK(recipes.size() > 10);
  CHECK(farthest == Approx(kReleaseDrift).epsilon(0.005));
}

TEST_CASE("how rows are sent to experts stands in columns of its own, in known words") {
  CHECK(row_of({{"dispatcher", "hybridep"}}).dispatcher == Dispatcher::hybridep);
  CHECK(row_of({{"dispatcher", "deepep"}}).dispatcher == Dispatcher::deepep);
  CHECK(row_of({{"dispatcher", "alltoall"}}).dispatcher == Dispatcher::alltoall);
  CHECK(row_of({}).dispatcher == Dispatcher::alltoall);
  CHECK(row_of({{"dispatcher", "deepep-uccl"}}).dispatcher == Dispatcher::uccl);
  CHECK(row_of({{"dispatcher", "pigeon"}}).unusable.find("dispatcher: found 'pigeon'") != std::string::npos);
  CHECK(row_of({{"cuda_graphs", "partial"}}).cuda_graphs == CudaGraphs::partial);
  CHECK(row_of({{"cuda_graphs", "full"}}).cuda_graphs == CudaGraphs::full);
  CHECK(row_of({{"moe_routing", "capacity 1"}}).routing == RunRow::Routing::balanced);
  CHECK(row_of({{"moe_routing", "capacity 2.5"}}).routing == RunRow::Routing::natural);
  CHECK(row_of({{"moe_routing", "capacity 2.5"}}).capacity_factor == 2.5);
  CHECK_FALSE(row_of({{"moe_routing", "capacity 2.5"}}).model.router.padded);
  CHECK(row_of({{"moe_routing", "capacity 1.15 padded"}}).model.router.padded);
  CHECK(row_of({{"ep", "8"}, {"dispatcher", "ring"}}).dispatcher == Dispatcher::allgather);
  CHECK(row_of({{"moe_routing", "capacity"}}).unusable.find("moe_routing: found 'capacity'") != std::string::npos);
  CHECK(row_of({{"fsdp_mode", "DDP + distributed optimizer"}}).zero_stage == 1);
  CHECK(row_of({{"ep_overlap", "1"}}).exchange_overlapped);
  CHECK_FALSE(row_of({{"ep_overlap", "0"}}).exchange_overlapped);
  CHECK(row_of({{"moe_routing", "forced_balance"}}).routing == RunRow::Routing::balanced);
  CHECK(row_of({{"moe_routing", "natural"}}).routing == RunRow::Routing::natural);
  CHECK(row_of({}).routing == RunRow::Routing::unsaid);
  for (const char* framework : {"NeMo/Megatron-Core", "Megatron-Bridge/Megatron-Core"}) {
    const RunRow recipe = row_of({{"framework", framework}, {"experts", "8"}, {"top_k", "2"}});
    INFO(framework << ": " << recipe.unusable);
    CHECK(recipe.routing == RunRow::Routing::balanced);
    CHECK_FALSE(recipe.assumed.empty());  // what recipes do is not what the source says
    CHECK(row_of({{"framework", framework}, {"experts", "8"}, {"top_k", "2"}, {"moe_routing", "natural"}}).routing ==
          RunRow::Routing::natural);
  }
  CHECK(row_of({{"framework", "NeMo AutoModel (FSDP2 + EP)"}, {"experts", "8"}, {"top_k", "2"}}).routing ==
        RunRow::Routing::unsaid);
  CHECK(row_of({{"dispatcher", "carrier pigeon"}}).unusable ==
        "dispatcher: found 'carrier pigeon', allowed alltoall, allgather, deepep, deepep-uccl, hybridep, or nothing");
  CHECK(row_of({{"moe_routing", "by chance"}}).unusable.find("allowed forced_balance, natural") != std::string::npos);
}

TEST_CASE("known words are taken out of a sentence, wherever they stand in it") {
  using Routing = RunRow::Routing;
  struct Said {
    const char* text;
    Routing routing;
    Dispatcher dispatcher;
    double capacity;
  };
  for (const Said& s :
       {Said{"forced_balance, dropless; dispatcher DeepEP over UCCL", Routing::balanced, Dispatcher::uccl, 0},
        Said{"forced_balance; dispatcher NCCL all-to-all", Routing::balanced, Dispatcher::alltoall, 0},
        Said{"forced_balance, dropless; dispatcher HybridEP", Routing::balanced, Dispatcher::hybridep, 0},
        Said{"Forced balance; DeepEP over NVSHMEM", Routing::balanced, Dispatcher::deepep, 0},
        Said{"natural with capacity factor 3 (token_drop); dispatcher DeepEP", Routing::natural, Dispatcher::deepep, 3},
        Said{"natural with capacity factor 1", Routing::balanced, Dispatcher::alltoall, 1},
        Said{"natural (aux loss); dispatcher NCCL all-to-all (default)", Routing::natural, Dispatcher::alltoall, 0},
        Said{"natural; no expert parallelism", Routing::natural, Dispatcher::alltoall, 0},
        Said{"forced_balance (fake balanced gate), dropless", Routing::balanced, Dispatcher::alltoall, 0},
        Said{"dropless", Routing::unsaid, Dispatcher::alltoall, 0},
        Said{"not stated", Routing::unsaid, Dispatcher::alltoall, 0}}) {
    const RunRow row = row_of({{"moe_routing", s.text}});
    INFO(s.text << ": " << row.unusable);
    CHECK((row.routing == s.routing && row.dispatcher == s.dispatcher && row.capacity_factor == s.capacity));
    CHECK(row.unusable.empty());
    CHECK(row.assumed.empty());
  }
  CHECK(row_of({{"cuda_graphs", "partial CUDA graph"}}).cuda_graphs == CudaGraphs::partial);
  CHECK(row_of({{"ep_overlap", "EP overlap ON"}}).exchange_overlapped);
  CHECK_FALSE(row_of({{"ep_overlap", "overlap off"}}).exchange_overlapped);
  CHECK(row_of({{"act_ckpt", "no recompute"}}).recompute == Recompute::none);
  CHECK(row_of({{"act_ckpt", "full activation checkpointing"}}).recompute == Recompute::block);
  for (const char* text : {"selective (core attention)", "selective recompute of core_attn"})
    CHECK((row_of({{"act_ckpt", text}}).recompute == recompute_from_string("core") &&
           row_of({{"act_ckpt", text}}).assumed.empty()));
}

TEST_CASE("words that are not known beside known ones are listed in what the row assumes") {
  const auto assumed = [](const Cells& cells) {
    const RunRow row = row_of(cells);
    INFO(row.unusable);
    CHECK(row.unusable.empty());
    return row.assumed;
  };
  using Lines = std::vector<std::string>;
  CHECK(assumed({{"moe_routing", "natural, jittered; dispatcher DeepEP v2"}}) ==
        Lines{"not understood: jittered, v2 (moe_routing)"});
  CHECK(assumed({{"dispatcher", "DeepEP (low latency)"}}) == Lines{"not understood: low latency (dispatcher)"});
  CHECK(assumed({{"act_ckpt", "selective (graph default policy)"}}) ==
        Lines{"not understood: graph default policy (act_ckpt)"});
  CHECK(row_of({{"act_ckpt", "selective (graph default policy)"}}).recompute == recompute_from_string("core"));
  CHECK(assumed({{"act_ckpt", "selective: mla_up_proj, mhc"}}) == Lines{"not understood: mhc (act_ckpt)"});
  CHECK(assumed({{"precision", "mxfp8 grouped GEMMs"}}) == Lines{"not understood: grouped GEMMs (precision)"});
  CHECK(assumed({{"fsdp_mode", "HSDP, one copy over 4"}}) == Lines{"not understood: one copy over 4 (fsdp_mode)"});
  // What is denied is not said.
  CHECK(row_of({{"moe_routing", "dropless, not forced_balance"}}).routing == RunRow::Routing::unsaid);
  CHECK(assumed({{"moe_routing", "natural; DeepEP off"}}) == Lines{"not understood: DeepEP off (moe_routing)"});
  CHECK(row_of({{"moe_routing", "natural; DeepEP off"}}).dispatcher == Dispatcher::alltoall);
  CHECK(row_of({{"moe_routing", "non-natural"}}).unusable.find("found 'non-natural'") != std::string::npos);
  // A word inside another one is another word.
  CHECK(row_of({{"moe_routing", "unnatural"}}).unusable.find("found 'unnatural'") != std::string::npos);
}

TEST_CASE("a sentence that contradicts itself, or another column, is refused") {
  const auto refused = [](const Cells& cells, const char* why) {
    INFO(why);
    CHECK_THAT(row_of(cells).unusable, Catch::Contains(why));
  };
  refused({{"moe_routing", "natural; forced_balance"}}, "says both forced_balance and natural");
  refused({{"moe_routing", "natural, dropless, capacity 1.25"}}, "says both dropless and a capacity");
  refused({{"moe_routing", "natural; DeepEP; HybridEP"}}, "says both deepep and hybridep");
  refused({{"moe_routing", "natural; no expert parallelism"}, {"experts", "8"}, {"top_k", "2"}, {"ep", "8"}},
          "and ep says 8");
  refused({{"moe_routing", "natural; HybridEP"}, {"dispatcher", "deepep"}},
          "dispatcher: found 'deepep', and moe_routing says hybridep");
  refused({{"act_ckpt", "full, selective"}}, "says both selective and full");
  refused({{"cuda_graphs", "full, partial"}}, "says both full and partial");
  refused({{"fsdp_mode", "ZeRO-1, later ZeRO-3"}}, "says both ZeRO-1 and ZeRO-3");
}

TEST_CASE("the published tables are understood to the last word") {
  for (const char* table :
       {"training_runs", "torchtitan_runs", "later_runs", "runs_2026", "runs_late_2026", "own_runs", "large_runs"})
    for (const RunRow& row : read_run_rows("configs/measurements/" + std::string(table) + ".csv"))
      for (const std::string& assumed : row.assumed) {
        INFO(row.name);
        CHECK((!row.unusable.empty() || assumed.find("not understood") == std::string::npos));
      }
}

TEST_CASE("experts, heads wider than their share and a tied embedding are read from where they stand") {
  const RunRow moe = row_of({{"experts", "128"},
                             {"top_k", "8"},
                             {"shared_experts", "1"},
                             {"expert_ffn", "768"},
                             {"ep", "8"},
                             {"head_dim", "64"}});
  REQUIRE(moe.unusable.empty());
  CHECK((moe.model.experts == 128 && moe.model.top_k == 8 && moe.model.ffn == 768 && moe.model.shared_ffn == 768));
  CHECK((moe.model.head_dim == 64 && moe.ep == 8));
  CHECK(row_of({{"gated", "0"}}).model.tied);
  CHECK(row_of({{"params_total", "7.505e9"}}).model.tied);
}

TEST_CASE("a batch follows from accumulation, and accumulation from a batch") {
  const RunRow row = row_of({{"grad_accum", "3"}, {"global_batch_seqs", ""}});
  REQUIRE(row.unusable.empty());
  CHECK(row.global_batch == 8 * 2 * 3);
  CHECK(row.step_s == Approx(48.0 * 4096 / (4096 * 32)));
  for (const auto& [said, word] : {std::pair{"FP8", "amp_fp8"},
                                   {"fp8 (Float8 linear)", "amp_fp8"},
                                   {"fp8 (MXFP8)", "amp_mxfp8"},
                                   {"fp8 (blockwise)", "amp_fp8_blockwise"},
                                   {"NVFP4", "amp_nvfp4"},
                                   {"bf16 (fp32 grad accum)", "amp_bf16"},
                                   {"fp32 (TF32 products)", "tf32"},
                                   {"fp32", "fp32"}})
    CHECK(row_of({{"precision", said}}).precision.word == word);
  CHECK(row_of({{"precision", "int4"}}).unusable.find("found int4, allowed are fp32, tf32, amp_bf16") !=
        std::string::npos);
}

TEST_CASE("of a pipeline whose batch and microbatches disagree the microbatches count") {
  const RunRow row = row_of({{"grad_accum", "9"}});
  CHECK(row.unusable.empty());
  CHECK(row.global_batch == 8 * 2 * 9);
  REQUIRE(row.assumed.size() == 1);
  CHECK(row.assumed[0].find("a batch of 144 sequences") != std::string::npos);
}

namespace {

/// DeepSeek-V3 with 8 of its layers.
Cells preset_cells(const Cells& changed) {
  Cells out = {{"preset", "deepseek-v3"},
               {"model", "DeepSeek-V3 cut to 8 layers"},
               {"arch_type", "moe"},
               {"layers", "8"},
               {"hidden", "7168"},
               {"heads", "128"},
               {"kv_heads", ""},
               {"ffn_hidden", "18432"},
               {"expert_ffn", "2048"},
               {"vocab", "129280"},
               {"experts", "256"},
               {"top_k", "8"},
               {"shared_experts", "1"},
               {"params_total", ""},
               {"tp", "1"},
               {"dp", "16"},
               {"pp", "2"}};
  for (const auto& [column, cell] : changed) out[column] = cell;
  return out;
}

}  // namespace

TEST_CASE("a preset says the shape, and the row of a model that is cut how many of its layers") {
  const RunRow row = row_of(preset_cells({}));
  CHECK(row.unusable == "");
  CHECK(row.model.name == "DeepSeek-V3 cut to 8 layers");
  CHECK(row.model.layers == 8);
  CHECK(row.model.attention.mla.on());
  CHECK(row.model.dense_layers == 3);
  CHECK(row.model.mtp_layers == 0);
  const RunRow hybrid = row_of(preset_cells({{"arch_type", "hybrid_moe"},
                                             {"model", "Nemotron 3 Nano"},
                                             {"preset", "nemotron-3-nano-30b-a3b"},
                                             {"layers", "29"},
                                             {"hidden", "2688"},
                                             {"heads", "32"},
                                             {"kv_heads", "2"},
                                             {"ffn_hidden", ""},
                                             {"expert_ffn", "1856"},
                                             {"gated", "0"},
                                             {"vocab", "131072"},
                                             {"experts", "128"},
                                             {"top_k", "6"},
                                             {"params_total", "30e9"}}));
  CHECK(hybrid.unusable == "");
  CHECK(hybrid.model.linear.on());
}

TEST_CASE("a row whose shape is not its preset's is refused, and both are named") {
  CHECK(
      row_of(preset_cells({{"model", "DeepSeek-V3"}})).unusable ==
      "preset deepseek-v3 is another model than the row's: layers 61 and 8; correct the row, or leave its preset out");
  for (const auto& [cells, said] : std::vector<std::pair<Cells, const char*>>{
           {{{"hidden", "4096"}}, "hidden 7168 and 4096"},
           {{{"heads", "64"}}, "heads 128 and 64"},
           {{{"experts", "128"}, {"top_k", "4"}}, "experts 256 and 128; top_k 8 and 4"},
           {{{"expert_ffn", "1024"}}, "expert_ffn 2048 and 1024"},
           {{{"ffn_hidden", "14336"}}, "ffn_hidden 18432 and 14336"},
           {{{"shared_experts", "0"}}, "shared_experts of width 2048 and 0"},
           {{{"shared_experts", "2"}}, "shared_experts of width 2048 and 2"},
           {{{"gated", "0"}}, "gated 1 and 0"},
           {{{"vocab", "128256"}}, "vocab 129280 and 128256"},
           {{{"params_total", "671e9"}}, "and 671e9"},  // of all layers
           {{{"arch_type", "dense"}}, "arch_type moe and dense"},
           {{{"preset", "llama3-8b"}, {"arch_type", ""}, {"experts", ""}}, "layers 32 and 8"},
           {{{"preset", "llama3-8b"}, {"kv_heads", "4"}}, "kv_heads 8 and 4"}}) {
    Cells changed = cells;
    if (changed.count("preset")) changed["model"] = "Llama";
    INFO(said);
    CHECK_THAT(row_of(preset_cells(changed)).unusable, Catch::Contains(said));
  }
  // An empty cell says nothing, vocabularies are filled up, and sources round.
  const Cells silent = {{"hidden", "7168"}, {"heads", ""},       {"ffn_hidden", ""},
                        {"expert_ffn", ""}, {"vocab", "129536"}, {"experts", ""},
                        {"top_k", ""},      {"gated", ""},       {"shared_experts", ""}};
  CHECK(row_of(preset_cells(silent)).unusable == "");
}

TEST_CASE("a row's pipeline_layout says chunks and modules of multi-token prediction") {
  const auto row = [](const std::string& layout) {
    return row_of(preset_cells({{"vp", "2"}, {"pipeline_layout", layout}}));
  };
  const Layout said = staged_layout_of(row("Et*4|t*4|m|L"));
  CHECK(said.chunk_layers == std::vector<std::int64_t>{4, 4, 0, 0});
  CHECK(said.modules_before_head);
  CHECK(row("Et*4|t*4|m|L").model.mtp_layers == 1);
  CHECK(row("Et*3|t*2|t*2|tL").model.mtp_layers == 0);
  CHECK(staged_layout_of(row("")).chunk_layers.empty());
  CHECK(row("Et*4|x|L").unusable.find("pipeline_layout: 'Et*4|x|L': found 'x'") != std::string::npos);
}

TEST_CASE("one row that cannot be used does not take the others away") {
  const std::vector<std::pair<Cells, std::string>> wrong = {
      {{{"tp", "4"}}, "64 ranks on 32 GPUs"},
      {{{"mem_gb", "-1"}}, "found '-1'"},
      {{{"step_time_s", "-3"}}, "found '-3'"},
      {{{"layers", "2.5"}}, "needs a whole number"},
      {{{"grad_accum", "9"}, {"pp", "1"}, {"n_gpus", "16"}}, "a global batch of 64 sequences is not"},
      {{{"preset", "no-such-model"}}, "no-such-model"},
      {{{"global_batch_seqs", "65"}}, "a global batch of 65 sequences for"},
      {{{"arch_type", "hybrid_moe"}}, "layers of several kinds"},
      {{{"fsdp_shard_group", "3"}}, "shard groups of 3"},
      {{{"act_ckpt", "some"}}, "found 'some'"},
      {{{"act_ckpt", "selective: mhc"}}, "of whose modules none is known"},
      {{{"act_ckpt", "selective (some blocks whole)"}}, "how many blocks is not said"},
      {{{"vp", "18"}}, "2 pipeline stages of 18 chunks for 32 layers"},
      {{{"heads", "33"}, {"kv_heads", "33"}}, "33 heads for tensor parallelism of 2"}};
  for (const auto& [cells, reason] : wrong) {
    const auto rows = rows_of({{}, cells, {}});
    REQUIRE(rows.size() == 3);
    INFO(rows[1].unusable);
    CHECK(rows[1].unusable.find(reason) != std::string::npos);
    CHECK((rows[0].unusable.empty() && rows[2].unusable.empty()));
  }
}

TEST_CASE("tables of simulators say shape, layout and batch in words") {
  const auto rows = tables_of(
      "VIA-Research/vTrain,Megatron-DeepSpeed,NVLink,gpt h1024 l12 a16,A100,8,TP2 DP2 PP2 full-recompute 1F1B,batch 16 "
      "mbs 4 seq "
      "1024,fp16,iteration_time_ms,250,1\n"
      "Korthikanti,Megatron-LM,Selene,gpt3-175B,A100-80G,64,TP8 PP8 DP1 int3 recompute=attn_only tpcomm=rs_ag,batch 64 "
      "mbs 1 seq "
      "2048,fp16,GiB_activations,12,1\n"
      "x,Megatron-LM,NVLink,llama,A100,1,TP1,batch 1 mbs 1 seq 1024,fp16,iteration_time_s,1,1\n"
      "x,Megatron-LM,NVLink,gpt h1024 l12 a16,A100,1,TP1,batch 1 mbs 1 seq 1024,fp16,power_W,1,1\n"
      "x,\"gpt,A100\n"
      "x,Megatron-LM,NVLink,gpt h1024 l12 a16,A100,1,TP1,batch 1 mbs 1 seq 1024,fp16,iteration_time_s,0,1\n");
  REQUIRE(rows.size() == 6);
  CHECK(rows[5].unusable.find("needs a number above 0") != std::string::npos);
  const RunRow& v = rows[0];
  REQUIRE(v.unusable.empty());
  CHECK((v.model.layers == 12 && v.model.d_model == 1024 && v.model.heads == 16 && v.model.ffn == 4096 &&
         v.model.vocab == 51200));
  CHECK((v.tp == 2 && v.dp == 2 && v.pp == 2 && v.microbatch == 4 && v.accumulation == 2 && v.seq == 1024));
  CHECK(v.recompute == Recompute::block);
  CHECK(v.step_s == Approx(0.25));
  const RunRow& k = rows[1];
  REQUIRE(k.unusable.empty());
  CHECK((k.vp == 3 && k.sequence_parallel && k.recompute == recompute_from_string("core")));
  CHECK(k.memory_of == MemoryOf::activations);
  CHECK(k.memory_bytes == 12.0 * (1 << 30));
  CHECK(rows[2].unusable.find("needs a shape as in") != std::string::npos);
  CHECK(rows[3].unusable.find("'power_W'") != std::string::npos);
  CHECK(rows[4].unusable == kBrokenLine);
}

TEST_CASE("a share of memory is one of what the same table says without recompute") {
  const std::string rest =
      "TP1 PP1 DP1 int1 recompute=full tpcomm=ar,batch 1 mbs 1 seq 1024,fp16,activation_mem_pct_of_none[full],8,1\n";
  const auto rows = tables_of(
      "x,Megatron-LM,NVLink,gpt h1024 l12 a16,A100,1,TP1 PP1 DP1 int1 recompute=none tpcomm=ar,batch 1 mbs 1 seq "
      "1024,fp16,GiB_activations,50,1\n"
      "x,Megatron-LM,NVLink,gpt h1024 l12 a16,A100,1," +
      rest + "x,Megatron-LM,NVLink,gpt h2048 l12 a16,A100,1," + rest);
  CHECK(rows.at(1).memory_bytes == Approx(4.0 * (1 << 30)));
  CHECK(rows.at(1).memory_of == MemoryOf::activations);
  CHECK(rows.at(2).unusable.find("no GiB_activations of 'gpt h2048 l12 a16'") != std::string::npos);
}

TEST_CASE("the tables in the tree are read whole") {
  const auto usable = [](const std::vector<RunRow>& rows) {
    return std::count_if(rows.begin(), rows.end(), [](const RunRow& row) { return row.unusable.empty(); });
  };
  const auto runs = read_run_rows("configs/measurements/training_runs.csv");
  CHECK(runs.size() == 600);
  CHECK(usable(runs) == 600);  // one has other layers; of four pipelines the microbatches say the batch
  CHECK(
      std::all_of(runs.begin(), runs.end(), [](const RunRow& row) { return !row.unusable.empty() || row.step_s > 0; }));
  CHECK(usable(read_run_rows("configs/measurements/torchtitan_runs.csv")) == 17);
  CHECK(usable(read_run_rows("configs/measurements/later_runs.csv")) ==
        124);  // two do not say how many blocks are recomputed
  const auto tables = read_run_rows("configs/measurements/simulator_tables.csv");
  CHECK(tables.size() == 1484);
  CHECK(usable(tables) == 1484);
}

TEST_CASE("a table is read by the names of its columns, in any order, with others beside where that is allowed") {
  const test::TempDirectory folder;
  const auto file = folder / "t.csv";
  test::write_bytes(file,
                    "\xEF\xBB\xBF"
                    "b, a ,c\r\n1,\"2, 3\",4\r\n\r\n5,\"6\r\n7,8,9\r\n");
  const CsvTable table = read_csv(file, {"a", "b"}, OtherColumns::ignored);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].cells == std::vector<std::string>{"2, 3", "1"});
  CHECK(table.rows[1].line == 5);
  REQUIRE(table.broken.size() == 1);  // an open quote ends with its line
  CHECK(table.broken[0].line == 4);
  CHECK(table.at("b") == 1);
  CHECK_THROWS_AS(table.at("c"), Error);
  CHECK(test::usage_error([&] { read_csv(file, {"a", "b"}); }).find("found the column 'c'") != std::string::npos);
  CHECK(test::usage_error([&] {
          read_csv(file, {"a", "d"}, OtherColumns::ignored);
        }).find("column 'd' missing") != std::string::npos);
  test::write_bytes(file, "a,a\n1,2\n");
  CHECK(test::usage_error([&] { read_csv(file, {"a"}); }).find("'a' twice") != std::string::npos);
  test::write_bytes(file, "\"a\n1\n");
  CHECK(test::usage_error([&] { read_csv(file, {"a"}); }).find("quote out of place") != std::string::npos);
  CHECK(test::usage_error([&] { read_run_rows(folder.path()); }).find("cannot be read") != std::string::npos);
}
