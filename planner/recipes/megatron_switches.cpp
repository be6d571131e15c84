// What simulations of Megatron-Core's stacks assume without a key of the run file: overlaps, fusions, saves.
#include <algorithm>

#include "planner/recipes/megatron.hpp"

namespace wt {
namespace {

/// A RecipeSwitch by field. Of a file without it: what the command line means (arguments.py), and what recipes of
/// Megatron-Bridge have (recipes/common.py and the recipes).
struct MegatronSwitch {
  const char* field;
  Settings::Value simulated, flag_otherwise, recipe_otherwise;
  const char* what;
  bool (*applies)(const RunSpec&) = nullptr;
  enum class In { both, flags, recipes } in = In::both;  ///< the command line, recipes, or both have it
};

const char* const kOptimizerGathers = "optimizer.overlap_param_gather";  ///< as in ddp

bool has_gathers(const RunSpec& run) {
  return run.layout.shard * run.layout.optimizer_shard > 1 && run.optimizer.kind != OptimizerKind::muon;
}

/// Async saves write torch_dist alone (checkpointing.py).
bool saves_async(const RunSpec& run) {
  return run.save && !megatron_fsdp(run) && run.optimizer.kind != OptimizerKind::muon;
}

/// What TransformerConfig.__post_init__ asks of moe_shared_expert_overlap.
bool overlaps_shared_experts(const RunSpec& run) {
  const Layout& l = run.layout;
  return run.model.experts > 0 && run.model.shared_ffn > 0 && l.dispatcher == Dispatcher::alltoall &&
         !l.exchange_overlap && !l.recompute.has(Module::shared_experts);
}

const std::vector<MegatronSwitch> kMegatronSwitches{
    {"overlap_grad_reduce", true, false, true, "gradients are reduced during backward",
     +[](const RunSpec& r) { return r.layout.replicate * r.layout.shard > 1; }},
    {"overlap_param_gather", true, false, true, "weights are gathered during forward", has_gathers},
    {"tp_comm_overlap", false, false, false, "products wait for what tensor ranks send",
     +[](const RunSpec& r) { return r.layout.tensor > 1; }},
    {"cross_entropy_loss_fusion", true, false, true, "the loss is one kernel, with logits in 16 bits"},
    {"cross_entropy_fusion_impl", "te", "native", "te", "the loss is Transformer Engine's"},
    {"moe_grouped_gemm", true, false, true, "experts are one grouped product",
     // validate_args refuses it with fp32
     +[](const RunSpec& r) { return r.model.experts > 0 && r.precision == Precision::bf16; }},
    {"moe_shared_expert_overlap", true, false, true, "shared experts compute while rows are exchanged",
     overlaps_shared_experts},
    {"moe_permute_fusion", true, false, true, "rows are sorted by one kernel",
     +[](const RunSpec& r) { return r.model.experts > 0; }},
    {"transformer_impl", "transformer_engine", "transformer_engine", "", "layers are Transformer Engine's", nullptr,
     MegatronSwitch::In::flags},
    {"attention_backend", "auto", "auto", "", "Transformer Engine chooses cuDNN's or FlashAttention-3's kernels",
     nullptr, MegatronSwitch::In::flags},
    {"async_save", true, false, false, "training goes on while a checkpoint is written", saves_async},
    {"use_persistent_ckpt_worker", true, false, true, "training goes on while a checkpoint is written", saves_async}};

std::vector<MegatronSwitch> switches_of(const MegatronKeys& keys) {
  std::vector<MegatronSwitch> out;
  std::ranges::copy_if(kMegatronSwitches, std::back_inserter(out), [&](const MegatronSwitch& one) {
    return one.in == MegatronSwitch::In::both || (one.in == MegatronSwitch::In::flags) == keys.flags();
  });
  return out;
}

bool applies(const MegatronSwitch& one, const RunSpec& run) { return one.applies == nullptr || one.applies(run); }

}  // namespace

bool megatron_fsdp(const RunSpec& run) {
  const Layout& l = run.layout;
  const bool step = !l.reshard_after_forward && !l.reduce_every_microbatch;
  return l.shard > 1 && !step && run.optimizer.kind != OptimizerKind::muon;
}

void write_megatron_switches(RecipeDraft& draft, MegatronKeys keys) {
  const RunSpec& run = draft.run;
  for (const MegatronSwitch& one : switches_of(keys))
    if (one.simulated.is_boolean())  // a recipe may have it where it does not apply
      keys.put_flag(one.field, one.simulated && applies(one, run));
    else if (applies(one, run))
      keys.put(one.field, one.simulated);
  if (run.model.shared_ffn > 0 && !overlaps_shared_experts(run))
    draft.not_expressed.emplace_back(
        "shared experts: simulated during the exchange of rows; Megatron-Core does so with the alltoall dispatcher "
        "alone, without overlap_expert_exchange and recompute of shared experts");
  if (run.save && !saves_async(run))
    draft.not_expressed.emplace_back(
        "checkpoints: simulated as written while training goes on; Megatron-Core does so in the format torch_dist "
        "alone, which neither Megatron-FSDP nor Muon has");
  const bool queued = run.layout.tensor > 1 || run.layout.context > 1, fsdp = megatron_fsdp(run);
  // GPUs before Blackwell need one queue for tensor and context ranks, and more where passes overlap.
  draft.gpu_queues = keys.flag("overlap_moe_expert_parallel_comm", false) ? 32 : queued && !fsdp ? 1 : 0;
  if (keys.flags()) return;
  draft.out.put("comm_overlap", nullptr);  // it overwrites these
  draft.out.put(kOptimizerGathers, has_gathers(run));
  if (run.layout.pipeline == 1) return;
  keys.put_flag("overlap_p2p_comm", run.layout.virtual_stages > 1);
  keys.put_flag("batch_p2p_comm", run.layout.virtual_stages == 1);
}

void read_megatron_switches(RecipeReading& reading, MegatronKeys keys) {
  for (const MegatronSwitch& one : switches_of(keys)) {
    if (!applies(one, reading.run)) {
      keys.value(one.field);
      continue;
    }
    const bool said = keys.has(one.field);
    const Settings::Value otherwise = keys.flags() ? one.flag_otherwise : one.recipe_otherwise;
    const Settings::Value found = one.simulated.is_boolean() ? Settings::Value(keys.flag(one.field, otherwise))
                                  : said                     ? keys.value(one.field)
                                                             : otherwise;
    if (found != one.simulated)
      reading.assume("{}: found {}{}, taken as {}: {}", keys.key(one.field), said ? "" : "none, which means ",
                     found.dump(), one.simulated.dump(), one.what);
  }
  if (keys.flags()) return;
  for (const char* pipelined : {"overlap_p2p_comm", "batch_p2p_comm"}) keys.value(pipelined);
  for (const char* same : {"comm_overlap", kOptimizerGathers}) reading.in.value(same);
}

}  // namespace wt
