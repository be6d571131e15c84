#include "configs/files/layout.hpp"

#include <algorithm>
#include <numeric>

#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"
#include "configs/files/layout_words.hpp"
#include "configs/files/limits.hpp"
#include "configs/files/model.hpp"

namespace wt {

std::string to_string(Precision precision) { return precision == Precision::fp32 ? "fp32" : "bf16"; }

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names = {"1f1b", "zero_bubble", "dualpipe_v"};
  return names;
}

std::string to_string(Schedule schedule) { return word_for(schedule, schedule_names()); }

std::optional<Schedule> schedule_from_string(const std::string& word) {
  return enumerator_of<Schedule>(word, schedule_names());
}

const std::vector<std::string>& dispatcher_names() {
  static const std::vector<std::string> names = {"alltoall", "allgather", "deepep", "hybridep", "uccl"};
  return names;
}

std::string to_string(Dispatcher dispatcher) { return word_for(dispatcher, dispatcher_names()); }

std::optional<Dispatcher> dispatcher_from_string(const std::string& word) {
  return enumerator_of<Dispatcher>(word, dispatcher_names());
}

bool sends_once(Dispatcher dispatcher) {
  return dispatcher != Dispatcher::alltoall && dispatcher != Dispatcher::allgather;
}

std::string to_string(CudaGraphs graphs) {
  return graphs == CudaGraphs::none ? "none" : graphs == CudaGraphs::partial ? "partial" : "full";
}

std::vector<std::string> Layout::untrainable() const {
  std::vector<std::string> out;
  const auto add = [&](bool there, std::string what) {
    if (there) out.push_back(std::move(what));
  };
  add(tensor > 1, fmt::format("tensor_parallel_degree {}", tensor));
  add(pipeline > 1, fmt::format("pipeline_parallel_degree {}", pipeline));
  add(context_ring, "context_parallel_ring");
  for (const Recompute::Rule& rule : recompute.rules())
    add(rule.module >= Module::core, "recompute of " + to_string(rule.module));
  add(dispatcher != Dispatcher::alltoall, "token_dispatcher " + to_string(dispatcher));
  add(cuda_graphs != CudaGraphs::none, "cuda_graphs " + to_string(cuda_graphs));
  add(exchange_overlap, "overlap_expert_exchange");
  return out;
}

std::vector<std::int64_t> Layout::layers_of_chunks(std::int64_t layers) const {
  if (!chunk_layers.empty()) return chunk_layers;
  const std::int64_t chunks = pipeline * virtual_stages;
  if (layers % chunks == 0) return std::vector<std::int64_t>(static_cast<std::size_t>(chunks), layers / chunks);
  const std::int64_t ends = 2, full = (layers + ends + chunks - 1) / chunks;
  std::vector<std::int64_t> out(static_cast<std::size_t>(chunks), full);
  // Remove one layer each, alternating from both ends inwards, the last chunk first.
  std::int64_t missing = full * chunks - layers;
  for (std::size_t depth = 0; missing > 0; depth = (depth + 1) % ((out.size() + 1) / 2))
    for (const std::size_t at : {out.size() - 1 - depth, depth})
      if (missing > 0 && out[at] > (depth > 0 ? 1 : 0)) --out[at], --missing;
  return out;
}

std::int64_t Layout::slots(const ModelSpec& model) const {
  return placement.empty() ? model.experts : static_cast<std::int64_t>(placement.front().size());
}

std::string Layout::name() const {
  std::string out = fmt::format("{}x{} expert {}", replicate, shard, expert);
  if (!placement.empty()) {
    const auto& slots = placement.front();
    const auto experts = static_cast<std::size_t>(*std::ranges::max_element(slots)) + 1;
    if (slots.size() > experts) out += fmt::format(" slots {}", slots.size());
  }
  if (context > 1) out += fmt::format(" context {}{}", context, context_ring ? " ring" : "");
  if (optimizer_shard > 1) out += fmt::format(" optimizer {}", shard * optimizer_shard);
  if (tensor > 1) out += fmt::format(" tensor {}{}", tensor, sequence_parallel ? "+sequence" : "");
  if (pipeline > 1) out += fmt::format(" pipeline {}", pipeline);
  if (virtual_stages > 1) out += fmt::format("x{}", virtual_stages);
  if (schedule != Schedule::one_f_one_b) out += " " + to_string(schedule);
  if (whole_experts) out += " whole experts";
  out += layout_extras(*this);
  if (pipeline > 1) return out;  // a pipeline gathers weights and reduces gradients once in any case
  if (!reshard_after_forward) out += " kept";
  if (!reduce_every_microbatch) out += " reduced once";
  return out;
}

namespace {

void check_tensor(const Layout& l, const ModelSpec& model, const std::string& where) {
  if (l.tensor < 1) throw_usage("{}: found tensor {}, needs to be >= 1", where, l.tensor);
  if (l.sequence_parallel && l.tensor == 1)
    throw_usage("{}: found sequence_parallel with tensor 1; it cuts norms over the tensor ranks: needs tensor > 1",
                where);
  if (l.tensor == 1) return;
  const auto divides = [&](const char* what, std::int64_t width) {
    if (width % l.tensor != 0)
      throw_usage("{}: tensor {} does not divide the model's {} = {}; choose a divisor", where, l.tensor, what, width);
  };
  if (model.linear.on())
    divides("linear key heads", model.linear.key_heads), divides("linear value heads", model.linear.value_heads);
  divides("heads", model.heads), divides("dense FFN width", model.dense_ffn);
  if (!l.whole_experts) divides("FFN width", model.ffn);
  divides("shared FFN width", model.shared_ffn);
  if (model.kv_heads % l.tensor != 0 && l.tensor % model.kv_heads != 0)
    throw_usage("{}: tensor {} and the model's {} key and value heads; needs one to divide the other", where, l.tensor,
                model.kv_heads);
  if (model.attention.parallel != AttentionSpec::Parallel::none && l.sequence_parallel)
    throw_usage("{}: sequence_parallel for model {}, whose attention and FFN are parallel; needs tensor alone", where,
                model.name);
  if (model.experts > 0 && !l.sequence_parallel)
    throw_usage("{}: tensor {} for model {} with experts; needs sequence_parallel, as Megatron-Core does", where,
                l.tensor, model.name);
}

void check_chunks(const Layout& l, const ModelSpec& model, const std::string& where) {
  const std::vector<std::int64_t>& chunks = l.chunk_layers;
  const std::int64_t sum = std::accumulate(chunks.begin(), chunks.end(), std::int64_t{0});
  if (static_cast<std::int64_t>(chunks.size()) != l.pipeline * l.virtual_stages || sum != model.layers)
    throw_usage(
        "{}: found {} chunks of {} layers in all; needs pipeline {} x virtual stages {} chunks, the model's {} layers "
        "in all",
        where, chunks.size(), sum, l.pipeline, l.virtual_stages, model.layers);
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const bool without = c == 0 || c + 1 == chunks.size() || (l.modules_before_head && c + 2 == chunks.size());
    if (chunks[c] < (without ? 0 : 1))
      throw_usage(
          "{}: found {} layers in chunk {} of {}; needs at least one, but in chunks with the embedding, the output "
          "projection or modules of multi-token prediction",
          where, chunks[c], c + 1, chunks.size());
  }
}

void check_pipeline(const Layout& l, const ModelSpec& model, const std::string& where) {
  if (l.pipeline < 1 || l.virtual_stages < 1)
    throw_usage("{}: found pipeline {}, virtual stages {}; each needs to be >= 1", where, l.pipeline, l.virtual_stages);
  if (l.modules_before_head &&
      (l.pipeline == 1 || model.mtp_layers == 0 || l.chunk_layers.empty() || l.chunk_layers.back() > 0))
    throw_usage(
        "{}: found modules of multi-token prediction in the chunk before the last one, with pipeline {}, {} modules "
        "and {} chunks said; needs pipeline > 1, a model with modules and a last chunk without layers",
        where, l.pipeline, model.mtp_layers, l.chunk_layers.size());
  if (l.pipeline == 1) {
    if (l.virtual_stages > 1 || l.schedule != Schedule::one_f_one_b || l.chunk_layers.size() > 1)
      throw_usage("{}: found virtual stages {}, schedule {}, {} chunks without a pipeline; needs pipeline > 1", where,
                  l.virtual_stages, to_string(l.schedule), std::max<std::size_t>(1, l.chunk_layers.size()));
    if (!l.chunk_layers.empty()) check_chunks(l, model, where);
    return;
  }
  if (!l.chunk_layers.empty())
    check_chunks(l, model, where);
  else if (l.pipeline * l.virtual_stages > model.layers + 2)
    throw_usage(
        "{}: found pipeline {} x virtual stages {} for the model's {} layers; needs at most these and a chunk each for "
        "embedding and output projection",
        where, l.pipeline, l.virtual_stages, model.layers);
  if (l.virtual_stages > 1 && l.schedule == Schedule::zero_bubble)
    throw_usage("{}: zero_bubble with {} virtual stages; needs 1 (ZB-H1)", where, l.virtual_stages);
  if (l.schedule == Schedule::dualpipe_v && (l.virtual_stages != 2 || l.modules_before_head))
    throw_usage(
        "{}: dualpipe_v with {} virtual stages, modules of multi-token prediction {}; needs 2, one each way, and "
        "modules in the last chunk",
        where, l.virtual_stages, l.modules_before_head ? "in the chunk before the last one" : "in the last chunk");
  if (l.reshard_after_forward || l.reduce_every_microbatch)
    throw_usage(
        "{}: a pipeline keeps its weights and sums gradients once a step: found reshard_after_forward {}, "
        "gradient_reduction {}; needs false and step",
        where, l.reshard_after_forward, l.reduce_every_microbatch ? "microbatch" : "step");
}

/// The model must have the recomputed modules; those of latent attention exclude context parallelism.
void check_recompute(const Layout& l, const ModelSpec& model, const std::string& where) {
  l.recompute.check(model.layers, where, l.layers_of_chunks(model.layers));
  const auto needs = [&](Module module, bool there, const char* what) {
    if (l.recompute.has(module) && !there)
      throw_usage("{}: recompute of {} for model {}; needs {}", where, to_string(module), model.name, what);
  };
  for (const Module module : {Module::moe, Module::moe_act}) needs(module, model.moe_layers() > 0, "experts");
  needs(Module::shared_experts, model.moe_layers() > 0 && model.shared_ffn > 0, "shared experts");
  bool dense = false;
  for (std::int64_t layer = 0; layer < model.blocks(); ++layer)
    dense = dense || (model.feeds_forward(layer) && !model.moe(layer));
  needs(Module::mlp, dense, "an FFN in layers without experts");
  needs(Module::mla_up_proj, model.attention.mla.on(), "latent attention");
  needs(Module::mla_up_proj, l.context == 1, "context 1: gathered keys and values are kept");
}

}  // namespace

void Layout::check(const ModelSpec& model, const std::string& where) const {
  if (replicate < 1 || shard < 1 || expert < 1 || microbatch < 1 || context < 1 || optimizer_shard < 1)
    throw_usage(
        "{}: found replicate {}, shard {}, expert {}, context {}, optimizer shard {}, microbatch {}; each needs to be "
        ">= 1",
        where, replicate, shard, expert, context, optimizer_shard, microbatch);
  double ranks = 1;  // not world(): the product of unchecked integers could overflow
  for (const std::int64_t degree : {pipeline, replicate, shard, tensor}) ranks *= static_cast<double>(degree);
  if (ranks > static_cast<double>(limits::kGpus) || expert > limits::kGpus || microbatch > limits::kBatch ||
      virtual_stages > limits::kLayers)
    throw_usage(
        "{}: found {:.3g} ranks, expert parallelism {}, {} virtual stages, microbatch {}; allowed are at most {} "
        "ranks, {} stages and {} sequences",
        where, ranks, expert, virtual_stages, microbatch, limits::kGpus, limits::kLayers, limits::kBatch);
  if (expert_ranks() % expert != 0)
    throw_usage("{}: expert parallelism {} does not divide shard{} = {}; choose a divisor", where, expert,
                whole_experts ? " x tensor" : "", expert_ranks());
  if (whole_experts && (tensor == 1 || model.experts == 0 || (!placement.empty() && slots(model) > model.experts)))
    throw_usage(
        "{}: found whole experts with tensor {}, {} experts in {} slots; needs tensor > 1 and experts without copies",
        where, tensor, model.experts, slots(model));
  if (dispatcher != Dispatcher::alltoall && expert == 1)
    throw_usage("{}: found dispatcher {} with expert parallelism 1, whose rows stay; needs alltoall", where,
                to_string(dispatcher));
  if (exchange_overlap &&
      (expert == 1 || schedule == Schedule::zero_bubble || reshard_after_forward || reduce_every_microbatch))
    throw_usage(
        "{}: found overlap_expert_exchange with expert parallelism {}, schedule {}, reshard_after_forward {}, "
        "gradient_reduction {}; needs experts on several ranks, 1f1b or dualpipe_v, weights that stay and gradients "
        "reduced once a step, as in Megatron-Core",
        where, expert, to_string(schedule), reshard_after_forward, reduce_every_microbatch ? "microbatch" : "step");
  if (offload_activations && (pipeline > 1 || model.mtp_layers > 0 || recompute.compression != Compression::none))
    throw_usage(
        "{}: found activation_cpu_offload with {} stages, {} modules of multi-token prediction, compressed inputs {}; "
        "needs one stage, no module, no compression",
        where, pipeline, model.mtp_layers, recompute.compression != Compression::none);
  if (exchange_overlap && dispatcher == Dispatcher::allgather)
    throw_usage("{}: found overlap_expert_exchange with token_dispatcher allgather, needs another dispatcher", where);
  if (shard % context != 0)
    throw_usage("{}: context parallelism {} does not divide shard = {}; choose a divisor", where, context, shard);
  if (replicate % optimizer_shard != 0)
    throw_usage("{}: optimizer_shard_degree {} needs to be shard = {} times a divisor of replicate = {}", where,
                shard * optimizer_shard, shard, replicate);
  if (slots(model) % expert != 0)
    throw_usage("{}: expert parallelism {} does not divide the model's {} {}; choose a divisor", where, expert,
                slots(model), placement.empty() ? "experts" : "expert slots");
  if (model.experts == 0 && expert > 1)
    throw_usage("{}: expert parallelism {} for model {}, which has no experts; needs 1", where, expert, model.name);
  if (context > 1 && model.linear.on())
    throw_usage(
        "{}: context parallelism {} for model {}, which has linear mixers (linear_config), whose state passes along "
        "the sequence; needs 1",
        where, context, model.name);
  if (context_ring && context == 1) throw_usage("{}: found context_ring with context 1; needs context > 1", where);
  if (context_ring && (model.attention.any_local() || model.attention.sinks || model.attention.indexer.on()))
    throw_usage(
        "{}: context_ring for model {}, which has attention windows, sinks or an indexer; needs keys and values "
        "gathered "
        "(context_parallel_ring: false), as Transformer Engine does",
        where, model.name);
  if (pipeline > 1 && model.mtp_layers > 0 && model.tied)
    throw_usage(
        "{}: pipeline {} for model {}, which has multi-token prediction and tied embeddings; needs one of them left "
        "out",
        where, pipeline, model.name);
  check_tensor(*this, model, where);
  check_pipeline(*this, model, where);
  check_recompute(*this, model, where);
  if (placement.empty()) return;
  if (static_cast<std::int64_t>(placement.size()) != model.blocks())
    throw_usage("{}: placement: found {} layers, needs {}", where, placement.size(), model.blocks());
  for (std::size_t layer = 0; layer < placement.size(); ++layer) {
    if (placement[layer].size() != placement.front().size())
      throw_usage("{}: placement of layer {}: found {} slots, layer 0 has {}; every layer needs equally many", where,
                  layer, placement[layer].size(), placement.front().size());
    std::vector<bool> seen(static_cast<std::size_t>(model.experts), false);
    for (std::int64_t e : placement[layer]) {
      if (e < 0 || e >= model.experts)
        throw_usage("{}: placement of layer {}: found expert {}, allowed 0..{}", where, layer, e, model.experts - 1);
      seen[static_cast<std::size_t>(e)] = true;
    }
    for (std::int64_t e = 0; e < model.experts; ++e)
      if (!seen[static_cast<std::size_t>(e)])
        throw_usage("{}: placement of layer {}: expert {} has no slot; needs each of 0..{} at least once", where, layer,
                    e, model.experts - 1);
  }
}

}  // namespace wt
