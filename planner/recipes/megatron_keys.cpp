
#include <algorithm>
#include <array>

#include "planner/recipes/megatron.hpp"

namespace wt {
namespace {

struct MegatronField {
  const char* field;
  const char* section;  ///< of Megatron-Bridge's ConfigContainer
  const char* flag;     ///< of Megatron-LM; nullptr: the field's name with dashes
  bool inverse = false;
};
/// Fields outside of `model`, and flags with irregular names (argparse_meta of the dataclasses;
/// megatron/training/arguments.py).
constexpr std::array kFields{
    MegatronField{"num_moe_experts", "model", "num-experts"},
    MegatronField{"layernorm_epsilon", "model", "norm-epsilon"},
    MegatronField{"virtual_pipeline_model_parallel_size", "model", "num-virtual-stages-per-pipeline-rank"},
    MegatronField{"num_layers_in_first_pipeline_stage", "model", "decoder-first-pipeline-num-layers"},
    MegatronField{"num_layers_in_last_pipeline_stage", "model", "decoder-last-pipeline-num-layers"},
    MegatronField{"share_embeddings_and_output_weights", "model", "untie-embeddings-and-output-weights", true},
    MegatronField{"add_bias_linear", "model", "disable-bias-linear", true},
    MegatronField{"gradient_accumulation_fusion", "model", "no-gradient-accumulation-fusion", true},
    MegatronField{"rope_scaling", "model", "use-rope-scaling"},
    MegatronField{"fp8", "model", "fp8-format"},
    MegatronField{"fp4", "model", "fp4-format"},
    MegatronField{"micro_batch_size", "train", ""},
    MegatronField{"global_batch_size", "train", ""},
    MegatronField{"train_iters", "train", ""},
    MegatronField{"eval_iters", "train", ""},
    MegatronField{"seq_length", "dataset", ""},
    MegatronField{"lr", "optimizer", ""},
    MegatronField{"min_lr", "optimizer", ""},
    MegatronField{"weight_decay", "optimizer", ""},
    MegatronField{"adam_beta1", "optimizer", ""},
    MegatronField{"adam_beta2", "optimizer", ""},
    MegatronField{"adam_eps", "optimizer", ""},
    MegatronField{"clip_grad", "optimizer", ""},
    MegatronField{"optimizer", "optimizer", ""},
    MegatronField{"optimizer_cpu_offload", "optimizer", ""},
    MegatronField{"optimizer_offload_fraction", "optimizer", ""},
    MegatronField{"use_precision_aware_optimizer", "optimizer", ""},
    MegatronField{"lr_decay_style", "scheduler", ""},
    MegatronField{"lr_decay_iters", "scheduler", ""},
    MegatronField{"lr_warmup_iters", "scheduler", ""},
    MegatronField{"use_distributed_optimizer", "ddp", ""},
    MegatronField{"num_distributed_optimizer_instances", "ddp", ""},
    MegatronField{"use_megatron_fsdp", "ddp", ""},
    MegatronField{"data_parallel_sharding_strategy", "ddp", ""},
    MegatronField{"outer_dp_sharding_strategy", "ddp", ""},
    MegatronField{"grad_reduce_in_fp32", "ddp", "grad-reduce-in-bf16", true},
    MegatronField{"check_for_nan_in_loss", "rerun_state_machine", "no-check-for-nan-in-loss-and-grad", true},
    MegatronField{"check_for_nan_in_grad", "ddp", ""},
    MegatronField{"save", "checkpoint", ""},
    MegatronField{"save_interval", "checkpoint", ""},
    MegatronField{"ckpt_format", "checkpoint", ""},
    MegatronField{"seed", "rng", ""},
    MegatronField{"distributed_timeout_minutes", "dist", ""},
};

MegatronField field_named(const std::string& name) {
  for (const MegatronField& field : kFields)
    if (name == field.field) return field;
  return {"", "model", ""};
}

std::vector<RecipeRow> with_keys(std::vector<RecipeRow> rows, const MegatronKeys& keys) {
  for (RecipeRow& row : rows) row.key = keys.key(row.key);
  return rows;
}

}  // namespace

std::string MegatronKeys::key(const std::string& field) const {
  const MegatronField known = field_named(field);
  if (!flags_) return known.section + ("." + (field == "seq_length" ? "sequence_length" : field));
  std::string out = known.flag;
  if (out.empty()) out = field;
  std::ranges::replace(out, '_', '-');
  return out;
}

void MegatronKeys::put_flag(const std::string& field, bool value) {
  if (!flags_)
    put(field, value);
  else if (value != field_named(field).inverse)
    put(field, true);
}

bool MegatronKeys::flag(const std::string& field, bool fallback) {
  if (!has(field)) return fallback;
  const bool said = settings_.boolean(key(field), true);
  return flags_ && field_named(field).inverse ? !said : said;
}

void write_megatron_rows(const std::vector<RecipeRow>& rows, RecipeDraft& draft, const MegatronKeys& keys) {
  write_rows(with_keys(rows, keys), draft);
}

void read_megatron_rows(const std::vector<RecipeRow>& rows, RecipeReading& reading, const MegatronKeys& keys) {
  read_rows(with_keys(rows, keys), reading);
}

std::string torchrun_command(std::int64_t world, const std::string& script) {
  const auto [nodes, gpus] = nodes_and_gpus(world);
  return fmt::format("torchrun --nnodes {} --nproc-per-node {} {}", nodes, gpus, script);
}

std::int64_t torchrun_world(Settings& settings) {
  if (!settings.has("nproc-per-node")) return 0;
  return settings.integer("nproc-per-node", 1, 1) * settings.integer("nnodes", 1, 1);
}

}  // namespace wt
