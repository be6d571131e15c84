// Stacks as data: what the presets say of memory, which rows they are for, strict reading.
#include "configs/files/stack.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/find.hpp"

using namespace wt;
using Catch::Contains;

namespace {

StackSpec parsed(const std::string& memory) {
  YamlMap map =
      YamlMap::from_text("name: mine\nframeworks: [Mine]\nsource: its code\nmemory: {" + memory + "}\n", "mine.yaml");
  return stack_from_yaml(map);
}

}  // namespace

TEST_CASE("presets are named as their files, and each word belongs to one of them") {
  const std::vector<StackSpec> stacks = read_stacks();
  std::vector<std::string> names;
  for (const StackSpec& stack : stacks) {
    names.push_back(stack.name);
    for (const std::string& word : stack.frameworks) CHECK(stack_of(word, stacks).name == stack.name);
  }
  CHECK(names == preset_names("stacks"));
}

TEST_CASE("a framework's memory is that of its stack, PyTorch's FSDP where nothing else is said") {
  const std::vector<StackSpec> stacks = read_stacks();
  for (const char* framework : {"NeMo/Megatron-Core", "Megatron-Bridge/Megatron-Core", "Megatron-LM (SimuMax, B200)"}) {
    const MemoryFacts facts = stack_of(framework, stacks).memory;
    INFO(framework);
    CHECK(facts.logit_bytes == 2);
    CHECK((facts.fused_gate && facts.context_by_heads && facts.resident_weights));
    CHECK(facts.weight_gradients == WeightGradients::dummy);
    CHECK_FALSE((facts.dropout || facts.late_reuse || facts.first_rank_only));
  }
  for (const char* framework : {"Megatron-LM", "Megatron-DeepSpeed"}) {
    const MemoryFacts facts = stack_of(framework, stacks).memory;
    INFO(framework);
    CHECK(facts.logit_bytes == 12);
    CHECK((facts.dropout && facts.fused_gate && facts.resident_weights));
    CHECK(facts.weight_gradients == WeightGradients::in_place);
    CHECK_FALSE((facts.context_by_heads || facts.late_reuse || facts.first_rank_only));
  }
  for (const StackSpec& stack : stacks) CHECK(stack.separate_reduce_group == (stack.name == "windtunnel-train"));
  const StackSpec nanotron = stack_of("nanotron", stacks);
  CHECK((nanotron.balanced_stages && nanotron.memory.late_reuse && nanotron.memory.first_rank_only &&
         nanotron.memory.resident_weights));
  CHECK_FALSE((nanotron.memory.dropout || nanotron.memory.fused_gate));
  CHECK(nanotron.memory.weight_gradients == WeightGradients::added);
  CHECK(stack_of("something new", stacks).memory == pytorch_fsdp());
  MemoryFacts copied = pytorch_fsdp();
  for (const auto& [framework, copies] : {std::pair{"torchtitan FSDP2", CollectiveCopies::both},
                                          {"KempnerForge (PyTorch FSDP2)", CollectiveCopies::both},
                                          {"FMS + PyTorch FSDP1", CollectiveCopies::gradients}}) {
    const StackSpec stack = stack_of(framework, stacks);
    INFO(framework);
    CHECK_FALSE(stack.balanced_stages);
    copied.collective_copies = copies;
    CHECK(stack.memory == copied);
    CHECK(stack.memory_described() == (stack.name != "kempnerforge"));
  }
  CHECK(pytorch_fsdp().optimizer_bytes == 12);
  CHECK(pytorch_fsdp().logit_bytes == 12);
  CHECK_FALSE((pytorch_fsdp().fused_gate || pytorch_fsdp().resident_weights));
  CHECK(read_stack("windtunnel-train").memory == MemoryFacts{});  // so that a plan is the same with and without it
}

TEST_CASE("every fact of memory is read") {
  MemoryFacts said;
  said.gradient_bytes = 2, said.optimizer_bytes = 8, said.logit_bytes = 6;
  said.weight_gradients = WeightGradients::in_place, said.collective_copies = CollectiveCopies::both;
  said.loss_chunks = 8, said.product_workspace_bytes = 32 << 20, said.kept_inputs = 3;
  said.grouped_products = false;
  said.whole_states = said.last_rank_only = said.dropout = said.context_by_heads = said.losses_in_turn =
      said.late_reuse = said.resident_weights = said.first_rank_only = true;
  CHECK(
      parsed(
          "gradient: 2B, optimizer: 8B, logit: 6B, weight_gradients: in_place, collective_copies: both, dropout: true, "
          "fused_gate: true, attention_by_head: true, attention_masks: true, context_by_heads: true, "
          "losses_in_turn: true, late_reuse: true, resident_weights: true, first_rank_only: true, loss_chunks: 8, "
          "kept_inputs: 3, product_workspace: 32MiB, grouped_products: false, whole_states: true, last_rank_only: true")
          .memory == said);
}

TEST_CASE("a loss in chunks: a number of pieces, or Liger's powers of two of tokens") {
  CHECK(parsed("loss_chunks: liger").memory.loss_chunks == kLigerChunks);
  CHECK(loss_piece_tokens(kLigerChunks, 8192, 128256, 4096) == 256);  // 128256 / 4096 = 31.3, 8192 / 32 = 256
  CHECK(loss_piece_tokens(kLigerChunks, 1000, 4096, 4096) == 1000);
  CHECK(loss_piece_tokens(kLigerChunks, 1000, 8192, 4096) == 512);  // 500, rounded up to a power of two
  CHECK(loss_piece_tokens(1, 1000, 8192, 4096) == 1000);
  CHECK(loss_piece_tokens(3, 1000, 8192, 4096) == 334);
  CHECK(loss_piece_tokens(2000, 1000, 8192, 4096) == 1);
}

TEST_CASE("factors on the typical stack's step are read by name") {
  YamlMap map = YamlMap::from_text(
      "name: mine\nframeworks: [Mine]\nsource: its code\nstep: {products: 0.9, item_s: 2}\n", "mine.yaml");
  const StackSpec mine = stack_from_yaml(map);
  CHECK(mine.step == std::map<std::string, double>{{"products", 0.9}, {"item_s", 2}});
  for (const char* wrong : {"{product: 1}", "{products: 0}", "{products: fast}", "{host_power: 2}"}) {
    YamlMap bad = YamlMap::from_text(
        std::string("name: mine\nframeworks: [Mine]\nsource: its code\nstep: ") + wrong + "\n", "mine.yaml");
    CHECK_THROWS_WITH(stack_from_yaml(bad), Contains("step."));
  }
}

TEST_CASE("keys, units and names that do not exist are refused, with the nearest that does") {
  CHECK_THROWS_WITH(parsed("fused_gates: true"), Contains("memory.fused_gates") && Contains("'fused_gate'"));
  CHECK_THROWS_WITH(parsed("logit: 2"), Contains("memory.logit") && Contains("KiB"));
  CHECK_THROWS_WITH(parsed("logit: -2B"), Contains("memory.logit"));
  CHECK_THROWS_WITH(parsed("weight_gradients: scratch"), Contains("memory.weight_gradients") && Contains("dummy"));
  CHECK_THROWS_WITH(parsed("dropout: 0.1"), Contains("memory.dropout"));
  CHECK_THROWS_WITH(read_stack("megatron-cor"), Contains("did you mean 'megatron-core'?"));
  CHECK_THROWS_AS(read_stack("pytorch"), Error);
}

TEST_CASE("a stack says what it has, and refuses a layout with more") {
  const StackSpec nemo = read_stack("nemo"), foundry = read_stack("llm-foundry");
  Layout layout;
  layout.shard = layout.expert = 8;
  layout.dispatcher = Dispatcher::hybridep;
  layout.exchange_overlap = true;
  layout.cuda_graphs = CudaGraphs::partial;
  CHECK_NOTHROW(nemo.check_layout(layout));
  CHECK_THROWS_WITH(foundry.check_layout(layout),
                    "stack llm-foundry: found token_dispatcher hybridep, which it does not have; needs alltoall");
  layout.dispatcher = Dispatcher::alltoall;
  CHECK_THROWS_WITH(foundry.check_layout(layout), Contains("overlap_expert_exchange true"));
  layout.exchange_overlap = false;
  CHECK_THROWS_WITH(foundry.check_layout(layout), Contains("cuda_graphs partial"));
  layout.cuda_graphs = CudaGraphs::none;
  CHECK_NOTHROW(foundry.check_layout(layout));
  CHECK(read_stack("automodel").dispatchers.front() == Dispatcher::deepep);
  CHECK(read_stack("typical").dispatchers == StackSpec{}.dispatchers);
  YamlMap map = YamlMap::from_text("name: mine\nframeworks: []\nsource: s\ndispatchers: [pigeon]\n", "mine.yaml");
  CHECK_THROWS_WITH(stack_from_yaml(map),
                    Contains("found 'pigeon', allowed alltoall, allgather, deepep, hybridep, uccl"));
  YamlMap none = YamlMap::from_text("name: mine\nframeworks: []\nsource: s\ndispatchers: []\n", "mine.yaml");
  CHECK_THROWS_WITH(stack_from_yaml(none), Contains("needs one at least"));
}

TEST_CASE("a stack runs the modules and blocks that it has words for") {
  const auto runs = [](const char* stack, const char* recompute) {
    return read_stack(stack).layouts.runs(recompute_from_string(recompute));
  };
  for (const char* recompute : {"none", "block", "products", "products+block", "block:every-3"})
    CHECK(runs("torchtitan", recompute));
  for (const char* recompute : {"core", "norm", "block:chunk-2", "products:every-2+block:every-2"})
    CHECK_FALSE(runs("torchtitan", recompute));
  for (const char* recompute : {"norm", "norm+core+moe_act", "moe", "mlp+shared_experts", "block:chunk-2"})
    CHECK(runs("megatron-core", recompute));
  for (const char* recompute : {"attention", "experts", "products", "block:every-2", "core:chunk-2"})
    CHECK_FALSE(runs("megatron-core", recompute));
  for (const char* recompute : {"attention:last-8", "block:first-2,last-2+attention:range-4-6", "block:every-2"})
    CHECK((runs("llm-foundry", recompute) && runs("windtunnel-train", recompute) && runs("typical", recompute)));
  CHECK((runs("windtunnel-train", "experts:last-2") && !runs("llm-foundry", "experts:last-2")));
  CHECK((runs("windtunnel-train", "norm:first-3") && !runs("llm-foundry", "norm:first-3")));
  CHECK((runs("typical", "mlp:middle-2") && !runs("windtunnel-train", "mlp")));
}

TEST_CASE("a list that a stack cannot be without is refused empty") {
  for (const char* key : {"reshard_after_forward", "gradient_reduction", "sequence_parallel", "placement"}) {
    YamlMap map = YamlMap::from_text(std::string("name: mine\nframeworks: []\nsource: s\nlayouts: {") + key + ": []}\n",
                                     "mine.yaml");
    CHECK_THROWS_WITH(stack_from_yaml(map), Contains(std::string("layouts.") + key) && Contains("needs one at least"));
  }
}

TEST_CASE("a stack says where its host waits for rows") {
  CHECK(read_stack("torchtitan").sync_points == SyncPoints::exchange);
  CHECK(read_stack("maxtext").sync_points == SyncPoints::none);
  CHECK(read_stack("nemo").sync_points == SyncPoints::experts);
  YamlMap map = YamlMap::from_text("name: mine\nframeworks: []\nsource: s\nsync_points: router\n", "mine.yaml");
  CHECK_THROWS_WITH(stack_from_yaml(map), Contains("sync_points") && Contains("exchange"));
}

TEST_CASE("a stack says which library computes its experts") {
  CHECK(read_stack("torchtitan").grouped_products == "torch");
  CHECK(read_stack("nemo").grouped_products == "te");
  CHECK(read_stack("typical").grouped_products.empty());
  YamlMap map = YamlMap::from_text("name: mine\nframeworks: []\nsource: s\ngrouped_products: torhc\n", "mine.yaml");
  CHECK_THROWS_WITH(stack_from_yaml(map), Contains("grouped_products") && Contains("torch"));
}

TEST_CASE("a release is asked for behind an @") {
  CHECK(read_stack("nemo").measured_release());
  const StackSpec known = read_stack("nemo@25.02"), later = read_stack("nemo@27.01");
  CHECK((known.name == "nemo" && known.release == "25.02" && known.measured_release()));
  CHECK((later.release == "27.01" && !later.measured_release()));
  CHECK_THROWS_WITH(read_stack("nemo@"), Contains("found no release behind the @"));
  CHECK_THROWS_WITH(read_stack("nemmo@25.02"), Contains("nemo"));
}
