// A layout in Megatron-Core. Data parallelism is one of two kinds: weights on every rank, gathered once a step after
// the distributed optimizer (ZeRO-1), or Megatron-FSDP. Context and expert ranks are data-parallel ranks, as ours are.

#include <algorithm>
#include <numeric>

#include "configs/files/pipeline_layout.hpp"
#include "planner/recipes/megatron.hpp"

namespace wt {
namespace {

const std::vector<RecipeRow> kDegreeRows{
    {"tensor_model_parallel_size", +[](RunSpec& r) { return &r.layout.tensor; }, 1},
    {"pipeline_model_parallel_size", +[](RunSpec& r) { return &r.layout.pipeline; }, 1},
    {"context_parallel_size", +[](RunSpec& r) { return &r.layout.context; }, 1},
    {"expert_model_parallel_size", +[](RunSpec& r) { return &r.layout.expert; }, 1}};

void write_data_parallelism(RecipeDraft& draft, MegatronKeys& keys) {
  const Layout& l = draft.run.layout;
  // Megatron-LM's validate_args refuses Muon with a sharded optimizer or sharded weights.
  const bool muon = draft.run.optimizer.kind == OptimizerKind::muon, fsdp = megatron_fsdp(draft.run);
  keys.put_flag("use_distributed_optimizer", l.shard * l.optimizer_shard > 1 && !muon);
  keys.put("num_distributed_optimizer_instances", fsdp ? l.replicate : l.replicate / l.optimizer_shard);
  keys.put_flag("use_megatron_fsdp", fsdp);
  if (!keys.flags()) draft.out.put("dist.use_megatron_fsdp", fsdp);
  if (fsdp) {
    keys.put("data_parallel_sharding_strategy", l.reshard_after_forward ? "optim_grads_params" : "optim_grads");
    keys.put("outer_dp_sharding_strategy", l.optimizer_shard > 1 ? "optim" : "no_shard");
    keys.put_flag("gradient_accumulation_fusion", false);
  }
  keys.put("ckpt_format", fsdp ? "fsdp_dtensor" : muon && keys.flags() ? "torch" : "torch_dist");
  const char* const resident =
      "weights stay on every rank there, so that only the ranks of an optimizer's state are said";
  for (const char* key : {"data_parallel_replicate_degree", "data_parallel_shard_degree", "optimizer_shard_degree"})
    draft.why[std::string("fsdp_config.") + key] =
        fsdp ? "Megatron-FSDP cuts the optimizer over all replicas or none" : resident;
  draft.why["fsdp_config.gradient_reduction"] =
      fsdp ? "Megatron-FSDP reduces in every microbatch" : "Megatron-Core sums gradients once a step";
  draft.why["fsdp_config.reshard_after_forward"] = "nothing is gathered for a microbatch there";
}

/// Number of ranks that share experts or sequences; a shard group of ours contains them.
std::int64_t dealt_ranks(const Layout& l) {
  const std::int64_t tensor = l.whole_experts ? l.tensor : 1;
  return std::lcm(l.context, l.expert / std::gcd(l.expert, tensor));
}

void read_data_parallelism(RecipeReading& reading, MegatronKeys& keys, std::int64_t world) {
  Layout& l = reading.run.layout;
  const std::int64_t data = reading.data_ranks(world, l.tensor * l.pipeline, keys.key("tensor_model_parallel_size"));
  const std::int64_t copies = keys.integer("num_distributed_optimizer_instances", 1, 1);
  if (data % copies != 0)
    keys.fail("num_distributed_optimizer_instances", "found {}, needs a divisor of the {} data-parallel ranks", copies,
              data);
  const std::string strategy = keys.text("data_parallel_sharding_strategy", "optim_grads_params");
  const bool asked = keys.flag("use_megatron_fsdp", false), fsdp = asked && strategy != "no_shard";
  if (asked && !keys.has("data_parallel_sharding_strategy"))
    reading.assume("{}: found none, which is no_shard in 0.16.1 and optim_grads_params later; taken as the latter",
                   keys.key("data_parallel_sharding_strategy"));
  // PyTorch's FSDP2 (core/distributed/torch_fully_sharded_data_parallel.py), which has neither stages nor experts
  const bool torch = keys.flags() && keys.flag("use_torch_fsdp2", false);
  const bool kept = keys.flags() && keys.flag("torch_fsdp2_no_reshard_after_forward", false);
  const bool sharded = keys.flag("use_distributed_optimizer", !keys.flags()) || fsdp || torch;
  l.shard = sharded ? data / copies : 1;
  l.reshard_after_forward = (fsdp && strategy == "optim_grads_params") || (torch && !kept);
  l.reduce_every_microbatch = (fsdp && strategy != "optim") || torch;
  if (l.pipeline > 1 && l.reduce_every_microbatch) {
    l.reshard_after_forward = l.reduce_every_microbatch = false;
    reading.assume("{}: found {} with a pipeline, taken as weights that stay",
                   keys.key("data_parallel_sharding_strategy"), strategy);
  }
  if (const std::int64_t dealt = std::lcm(l.shard, dealt_ranks(l)); dealt != l.shard && data % dealt == 0) {
    if (sharded || l.reshard_after_forward)
      reading.assume("data_parallel_shard_degree: found {}, taken as {}: experts and sequences are dealt over these",
                     l.shard, dealt);
    else
      reading.assume(
          "data_parallel_shard_degree: found no distributed optimizer, taken as {} ranks that share its state, over "
          "which experts and sequences are dealt",
          dealt);
    l.shard = dealt;
  }
  l.replicate = data / l.shard;
  if (fsdp && keys.text("outer_dp_sharding_strategy", "no_shard") == "optim") l.optimizer_shard = l.replicate;
}

void write_stages(RecipeDraft& draft, MegatronKeys& keys) {
  const Layout& l = draft.run.layout;
  const ModelSpec& m = draft.run.model;
  draft.why["fsdp_config.pipeline_schedule"] = "Megatron-Core has 1F1B, interleaved where stages have chunks";
  const bool even = l.chunk_layers.empty() && m.layers % (l.pipeline * l.virtual_stages) == 0;
  if (l.pipeline > 1 && !even)
    keys.put("pipeline_model_parallel_layout",
             to_string(PipelineLayout{l.layers_of_chunks(m.layers), m.mtp_layers, l.modules_before_head}));
  else if (l.virtual_stages > 1)
    keys.put("virtual_pipeline_model_parallel_size", l.virtual_stages);
  else if (!keys.flags())
    keys.put("virtual_pipeline_model_parallel_size", nullptr);
  if (keys.flags()) return;
  keys.put_if(false, "num_layers_in_first_pipeline_stage", {}),
      keys.put_if(false, "num_layers_in_last_pipeline_stage", {});
  for (const char* counted : {"account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"})
    keys.put_flag(counted, false);  // recipes set these
  if (even || l.pipeline == 1) keys.put("pipeline_model_parallel_layout", nullptr);
}

/// Reads other numbers of layers in the first and last stage, or embedding and head counted as layers.
void read_uneven_ends(RecipeReading& reading, MegatronKeys& keys) {
  Layout& l = reading.run.layout;
  const std::int64_t layers = reading.run.model.layers, chunks = l.pipeline * l.virtual_stages;
  const std::int64_t embedding = keys.flag("account_for_embedding_in_pipeline_split", false) ? 1 : 0,
                     loss = keys.flag("account_for_loss_in_pipeline_split", false) ? 1 : 0;
  std::int64_t first = keys.integer("num_layers_in_first_pipeline_stage", -1, 1),
               last = keys.integer("num_layers_in_last_pipeline_stage", -1, 1);
  if (embedding + loss > 0) {
    const std::int64_t each = (layers + embedding + loss) / chunks;
    first = each - embedding, last = each - loss;
  }
  if (first < 0 && last < 0) return;
  if (l.virtual_stages > 1 && embedding + loss == 0)
    keys.fail("num_layers_in_first_pipeline_stage", "found with several chunks a stage; write it as a pipeline layout");
  const std::int64_t inner = chunks - (first >= 0 ? 1 : 0) - (last >= 0 ? 1 : 0);
  const std::int64_t rest = layers - std::max<std::int64_t>(first, 0) - std::max<std::int64_t>(last, 0);
  if (inner > 0 ? rest <= 0 || rest % inner != 0 : rest != 0)
    keys.fail("num_layers_in_first_pipeline_stage",
              "found {} and {} layers at the ends of {}, needs the other {} chunks to have equally many", first, last,
              layers, inner);
  std::vector<std::int64_t> out(static_cast<std::size_t>(chunks), inner > 0 ? rest / inner : 0);
  if (first >= 0) out.front() = first;
  if (last >= 0) out.back() = last;
  set_chunks(l, std::move(out), layers);
}

void read_stages(RecipeReading& reading, MegatronKeys& keys) {
  Layout& l = reading.run.layout;
  const std::int64_t layers = reading.run.model.layers;
  if (l.pipeline == 1) return;
  if (keys.has("pipeline_model_parallel_layout")) {
    const std::string text = keys.text("pipeline_model_parallel_layout", "");
    const PipelineLayout said =
        pipeline_layout_from_string(text, reading.in.origin() + ": " + keys.key("pipeline_model_parallel_layout"));
    const auto chunks = static_cast<std::int64_t>(said.layers.size());
    if (chunks % l.pipeline != 0)
      keys.fail("pipeline_model_parallel_layout", "found {} chunks, needs a multiple of the {} stages", chunks,
                l.pipeline);
    l.virtual_stages = chunks / l.pipeline;
    set_chunks(l, said.layers, layers);
    l.modules_before_head = said.modules_before_head;
    if (l.modules_before_head) l.chunk_layers = said.layers;
    return;
  }
  l.virtual_stages = keys.integer("virtual_pipeline_model_parallel_size", 1, 1);
  if (const std::int64_t each = keys.flags() ? keys.integer("num_layers_per_virtual_pipeline_stage", 0, 1) : 0;
      each > 0)
    l.virtual_stages = std::max<std::int64_t>(1, layers / l.pipeline / each);
  read_uneven_ends(reading, keys);
}

/// What TransformerConfig.__post_init__ asks for.
bool overlaps_exchanges(const RunSpec& run) {
  const Layout& l = run.layout;
  const bool chunks = l.pipeline == 1 || l.virtual_stages > 1,
             modules = run.model.mtp_layers == 0 || (run.model.mtp_layers == 1 && l.pipeline > 1);
  return l.exchange_overlap && l.expert > 1 && l.dispatcher != Dispatcher::allgather && chunks && modules &&
         run.precision == Precision::bf16 && !l.recompute.has(Module::block) && l.cuda_graphs != CudaGraphs::full;
}

const RecipeWords<Dispatcher> kFlexBackends{{"deepep", Dispatcher::deepep}, {"hybridep", Dispatcher::hybridep}};

void write_experts(RecipeDraft& draft, MegatronKeys& keys) {
  const Layout& l = draft.run.layout;
  if (draft.run.model.experts == 0) return;
  keys.put("expert_tensor_parallel_size", l.whole_experts ? 1 : l.tensor);
  const bool flex = sends_once(l.dispatcher);
  keys.put("moe_token_dispatcher_type", flex ? "flex" : to_string(l.dispatcher));
  keys.put_if(flex, "moe_flex_dispatcher_backend", word_of(kFlexBackends, l.dispatcher, "deepep"));
  keys.put_flag("overlap_moe_expert_parallel_comm", overlaps_exchanges(draft.run));
  draft.why["fsdp_config.token_dispatcher"] =
      "its flex dispatcher has deepep and hybridep; UCCL-EP takes DeepEP's place";
  draft.why["fsdp_config.overlap_expert_exchange"] =
      "Megatron-Core overlaps exchanges by alltoall or flex in 16 bits, without recompute of whole layers or graphs of "
      "the whole step, in a pipeline with several chunks a stage, with at most one module of multi-token prediction";
}

void read_experts(RecipeReading& reading, MegatronKeys& keys) {
  Layout& l = reading.run.layout;
  if (reading.run.model.experts == 0) return;
  const std::int64_t cut = keys.integer("expert_tensor_parallel_size", l.tensor, 1);
  if (cut != 1 && cut != l.tensor)
    keys.fail("expert_tensor_parallel_size", "found {}, needs 1 or tensor_model_parallel_size = {}", cut, l.tensor);
  l.whole_experts = cut < l.tensor;
  const std::string type = keys.text("moe_token_dispatcher_type", keys.flags() ? "allgather" : "alltoall"),
                    backend = keys.text("moe_flex_dispatcher_backend", "deepep");
  keys.flag("moe_enable_deepep", false);
  const auto flex = meaning_of(kFlexBackends, backend);
  if (type == "flex" && !flex) keys.fail("moe_flex_dispatcher_backend", "found {}, needs deepep or hybridep", backend);
  const auto plain = type == "flex" ? flex : dispatcher_from_string(type);
  if (!plain || (type != "flex" && sends_once(*plain)))
    keys.fail("moe_token_dispatcher_type", "found {}, needs allgather, alltoall or flex", type);
  l.dispatcher = l.expert > 1 ? *plain : Dispatcher::alltoall;
  l.exchange_overlap = keys.flag("overlap_moe_expert_parallel_comm", false) && l.expert > 1;
}

/// Graphs of parts may not lie inside of what is recomputed (TransformerConfig.__post_init__).
CudaGraphs megatron_graphs(const Layout& l) {
  const bool inside =
      l.recompute.has(Module::block) || l.recompute.has(Module::moe) || l.recompute.has(Module::experts);
  return l.cuda_graphs == CudaGraphs::partial && inside ? CudaGraphs::none : l.cuda_graphs;
}

void write_graphs(RecipeDraft& draft, MegatronKeys& keys) {
  const CudaGraphs graphs = megatron_graphs(draft.run.layout);
  keys.put("cuda_graph_impl", graphs == CudaGraphs::none      ? "none"
                              : graphs == CudaGraphs::partial ? "transformer_engine"
                                                              : "local");
  draft.why["fsdp_config.cuda_graphs"] = "graphs of parts do not go with recompute of whole layers or of moe";
  std::vector<std::string> parts{"attn"};
  if (draft.run.model.experts > 0) parts.insert(parts.end(), {"moe_router", "moe_preprocess"});
  if (graphs == CudaGraphs::partial) keys.put("cuda_graph_scope", parts);
  if (graphs != CudaGraphs::full) return;
  keys.put("cuda_graph_scope", std::vector<std::string>{"full_iteration"});
  keys.put_flag("check_for_nan_in_loss", false);  // not possible with a graph of the whole step
  if (!keys.flags()) keys.put_flag("check_for_nan_in_grad", false);
}

void read_graphs(RecipeReading& reading, MegatronKeys& keys) {
  const std::string made_by = keys.text("cuda_graph_impl", "none");
  const std::vector<std::string> scope = keys.texts("cuda_graph_scope");
  if (made_by == "none") return;
  keys.value("check_for_nan_in_loss"), keys.value("check_for_nan_in_grad");
  const bool all = std::ranges::find(scope, "full_iteration") != scope.end();
  reading.run.layout.cuda_graphs = all ? CudaGraphs::full : CudaGraphs::partial;
  if (!all && std::ranges::find(scope, "attn") == scope.end())
    reading.assume("{}: found {}, taken as graphs of attention and router", keys.key("cuda_graph_scope"),
                   scope.empty() ? "none" : scope.front());
}

}  // namespace

void write_megatron_layout(RecipeDraft& draft, MegatronKeys keys) {
  const Layout& l = draft.run.layout;
  write_megatron_rows(kDegreeRows, draft, keys);
  write_stages(draft, keys);
  keys.put_flag("sequence_parallel", l.sequence_parallel);
  keys.put_if(l.context > 1, "cp_comm_type", l.context_ring ? "p2p" : "all_gather");
  write_experts(draft, keys);
  write_data_parallelism(draft, keys);
  write_megatron_recompute(draft, keys);
  write_graphs(draft, keys);
}

void read_megatron_layout(RecipeReading& reading, MegatronKeys keys, std::int64_t world) {
  Layout& l = reading.run.layout;
  read_megatron_rows(kDegreeRows, reading, keys);
  l.sequence_parallel = keys.flag("sequence_parallel", false) && l.tensor > 1;
  if (reading.run.model.experts > 0 && l.tensor > 1 && !l.sequence_parallel) {
    l.sequence_parallel = true;
    reading.assume("{}: found none, taken as set: Megatron-Core needs it with experts", keys.key("sequence_parallel"));
  }
  const std::vector<std::string> ways = keys.texts("cp_comm_type");
  const std::string way = ways.empty() ? "p2p" : ways.front();
  l.context_ring = l.context > 1 && way == "p2p";
  if (l.context > 1 && (ways.size() > 1 || (way != "p2p" && way != "all_gather")))
    reading.assume("{}: found {}, taken as {} in every layer", keys.key("cp_comm_type"), way,
                   l.context_ring ? "p2p" : "all_gather");
  read_stages(reading, keys);
  read_experts(reading, keys);
  read_data_parallelism(reading, keys, world);
  read_megatron_recompute(reading, keys);
  read_graphs(reading, keys);
}

}  // namespace wt
