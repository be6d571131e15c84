// A layout in the words of Megatron, torchtitan and AutoModel, and what other stacks say.
#include "configs/files/layout_words.hpp"

#include <catch2/catch.hpp>

#include "configs/files/layout.hpp"
#include "configs/files/stack.hpp"

using namespace wt;

namespace {

/// 2 x 4 stages of tensor 2 with context 2, and experts over 8 of the 16 data x tensor ranks, not divided.
Layout deep() {
  Layout l;
  l.replicate = 2, l.shard = 4, l.expert = 8, l.context = 2;
  l.tensor = 2, l.sequence_parallel = true, l.whole_experts = true;
  l.pipeline = 4, l.virtual_stages = 2;
  l.reshard_after_forward = l.reduce_every_microbatch = false;
  return l;
}

std::string words(const Layout& layout, const char* stack) { return layout_words(layout, read_stack(stack)); }

}  // namespace

TEST_CASE("Megatron's stacks say TP, PP, VPP, EP, ETP, CP and DP") {
  Layout l = deep();
  CHECK(l.world() == 64);
  // DP = world / (TP x PP x CP) = 64 / 16; the optimizer's state is divided over 4 of 8 data x context ranks.
  for (const char* stack : {"megatron-core", "megatron-lm", "megatron-lm-te", "megatron-bridge", "nemo"})
    CHECK(words(l, stack) == "TP2+SP PP4 VPP2 EP8 ETP1 CP2 DP4, distributed optimizer over 4");
  l.optimizer_shard = 2;
  CHECK(words(l, "megatron-core") == "TP2+SP PP4 VPP2 EP8 ETP1 CP2 DP4, distributed optimizer");
  l.dispatcher = Dispatcher::hybridep;
  CHECK(words(l, "nemo") == "TP2+SP PP4 VPP2 EP8 ETP1 CP2 DP4, distributed optimizer, hybridep");
  Layout fsdp;
  fsdp.shard = 64;
  CHECK(words(fsdp, "megatron-core") == "TP1 PP1 DP64, Megatron-FSDP optim_grads_params over 64");
  Layout one;
  CHECK(words(one, "megatron-core") == "TP1 PP1 DP1");
}

TEST_CASE("torchtitan says the degrees of its job file, the shard degree without context parallelism") {
  CHECK(words(deep(), "torchtitan") ==
        "data_parallel_replicate_degree 2, data_parallel_shard_degree 2, tensor_parallel_degree 2, "
        "pipeline_parallel_degree 4, context_parallel_degree 2, expert_parallel_degree 8, "
        "expert_tensor_parallel_degree 1, pipeline_parallel_schedule Interleaved1F1B");
  Layout fsdp;
  fsdp.shard = 64;
  CHECK(words(fsdp, "torchtitan") == "data_parallel_shard_degree 64");
  fsdp.reshard_after_forward = false;
  CHECK(words(fsdp, "torchtitan") == "data_parallel_shard_degree 64, fsdp_reshard_after_forward never");
  CHECK(words(Layout(), "torchtitan") == "data_parallel_replicate_degree 1");
}

TEST_CASE("AutoModel says sizes, other stacks the short form") {
  CHECK(words(deep(), "automodel") == "dp_size 4, dp_replicate_size 2, tp_size 2, pp_size 4, cp_size 2, ep_size 8");
  for (const char* stack : {"levanter", "windtunnel-train", "llm-foundry"})
    CHECK(words(deep(), stack) == deep().name());
}

TEST_CASE("in a table Megatron's words are used, and the short form for others") {
  CHECK(layout_label(deep(), read_stack("nemo")) == words(deep(), "nemo"));
  CHECK(layout_label(deep(), read_stack("torchtitan")) == deep().name());
}
