#include <algorithm>
#include <map>
#include <set>

#include "planner/recipes/known_words.hpp"
#include "planner/recipes/megatron.hpp"

namespace wt {
namespace {

/// The fields of Megatron-Bridge's ConfigContainer outside of its section `model`.
const std::map<std::string, std::set<std::string>> kSections{
    {"train", {"micro_batch_size", "global_batch_size", "train_iters", "eval_iters"}},
    {"dataset", {"seq_length"}},
    {"optimizer",
     {"lr", "min_lr", "weight_decay", "adam_beta1", "adam_beta2", "adam_eps", "clip_grad", "optimizer",
      "optimizer_cpu_offload", "optimizer_offload_fraction", "use_precision_aware_optimizer"}},
    {"scheduler", {"lr_decay_style", "lr_decay_iters", "lr_warmup_iters"}},
    {"ddp",
     {"use_distributed_optimizer", "num_distributed_optimizer_instances", "use_megatron_fsdp",
      "data_parallel_sharding_strategy", "outer_dp_sharding_strategy", "grad_reduce_in_fp32", "check_for_nan_in_grad",
      "overlap_grad_reduce", "overlap_param_gather"}},
    {"rerun_state_machine", {"check_for_nan_in_loss"}},
    {"checkpoint", {"save", "load", "save_interval", "ckpt_format", "async_save", "use_persistent_ckpt_worker"}},
    {"rng", {"seed"}},
    {"dist", {"distributed_timeout_minutes"}}};

struct MegatronFlag {
  std::string name;
  bool inverse = false;
};
/// Flags of Megatron-LM that are not their field's name with dashes (argparse_meta of the dataclasses;
/// megatron/training/arguments.py).
const std::map<std::string, MegatronFlag> kIrregularFlags{
    {"num_moe_experts", {"num-experts"}},
    {"layernorm_epsilon", {"norm-epsilon"}},
    {"virtual_pipeline_model_parallel_size", {"num-virtual-stages-per-pipeline-rank"}},
    {"num_layers_in_first_pipeline_stage", {"decoder-first-pipeline-num-layers"}},
    {"num_layers_in_last_pipeline_stage", {"decoder-last-pipeline-num-layers"}},
    {"share_embeddings_and_output_weights", {"untie-embeddings-and-output-weights", true}},
    {"add_bias_linear", {"disable-bias-linear", true}},
    {"gradient_accumulation_fusion", {"no-gradient-accumulation-fusion", true}},
    {"rope_scaling", {"use-rope-scaling"}},
    {"fp8", {"fp8-format"}},
    {"fp4", {"fp4-format"}},
    {"grad_reduce_in_fp32", {"grad-reduce-in-bf16", true}},
    {"check_for_nan_in_loss", {"no-check-for-nan-in-loss-and-grad", true}}};

MegatronFlag flag_of(std::string field) {
  if (const auto irregular = kIrregularFlags.find(field); irregular != kIrregularFlags.end()) return irregular->second;
  std::ranges::replace(field, '_', '-');
  return {field};
}

std::vector<RecipeRow> with_keys(std::vector<RecipeRow> rows, const MegatronKeys& keys) {
  for (RecipeRow& row : rows) row.key = keys.key(row.key);
  return rows;
}

}  // namespace

std::string MegatronKeys::key(const std::string& field) const {
  if (flags_) return flag_of(field).name;
  const auto found =
      std::ranges::find_if(kSections, [&](const auto& section) { return section.second.contains(field); });
  const std::string section = found == kSections.end() ? "model" : found->first;
  return section + "." + (field == "seq_length" ? "sequence_length" : field);
}

void MegatronKeys::put_flag(const std::string& field, bool value) {
  if (!flags_)
    put(field, value);
  else if (value != flag_of(field).inverse)
    put(field, true);
}

bool MegatronKeys::flag(const std::string& field, bool fallback) {
  if (!has(field)) return fallback;
  const bool said = settings_.boolean(key(field), true);
  return flags_ && flag_of(field).inverse ? !said : said;
}

void put_megatron_field(const std::string& field, const Settings::Value& value, Settings& out) {
  const KnownWords &flags = KnownWords::of("megatron-core"), &fields = KnownWords::of("megatron-bridge");
  const MegatronFlag flag = flag_of(field);
  if (value.is_null()) return;
  if (field == "activation_func" && value.is_string()) return out.put(value.get<std::string>(), true);
  if (flags.find(flag.name) != nullptr) {
    if (!value.is_boolean())
      out.put(flag.name, value);
    else if (value != flag.inverse)
      out.put(flag.name, true);
    return;
  }
  if (flags.find("no-" + flag.name) != nullptr) {  // on by default
    if (value == false) out.put("no-" + flag.name, true);
    return;
  }
  if (fields.find("model." + field) == nullptr) out.put(flag.name, value);  // and refused as unknown
}

void write_megatron_rows(const std::vector<RecipeRow>& rows, RecipeDraft& draft, const MegatronKeys& keys) {
  write_rows(with_keys(rows, keys), draft);
}

void read_megatron_rows(const std::vector<RecipeRow>& rows, RecipeReading& reading, const MegatronKeys& keys) {
  read_rows(with_keys(rows, keys), reading);
}

std::int64_t launched_world(RecipeReading& reading) {
  const std::int64_t said = reading.in.integer("launch.gpus", 0, 1);
  const std::string fallback = reading.in.text("launch.fallback", ""), asks = reading.in.text("launch.asks", "");
  if (reading.gpus > 0 && (said == 0 || !fallback.empty())) return reading.gpus;
  if (said == 0 && !asks.empty())
    throw_usage(
        "{}: found {} nodes or GPUs, which the script leaves to its environment; needs the number of GPUs; "
        "give --gpus N",
        reading.in.origin(), asks);
  if (!fallback.empty())
    reading.assume("{}: set by nobody; the launcher's {} GPUs are the script's fallback; --gpus N changes it", fallback,
                   said);
  return reading.world(said, "launch.gpus");
}

}  // namespace wt
