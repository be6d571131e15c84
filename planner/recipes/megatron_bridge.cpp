// Megatron-Bridge 0.3.1: scripts/training/run_recipe.py with a recipe of megatron.bridge.recipes and Hydra overrides of
// its ConfigContainer (training/config.py). The recipe has the model. A model without a recipe uses that of a similar
// model and overrides its shape. Overrides may also be in a YAML file.
#include <algorithm>

#include "configs/base/nearest.hpp"
#include "configs/files/hub_models.hpp"
#include "planner/recipes/bridge_recipes.hpp"
#include "planner/recipes/launch.hpp"
#include "planner/recipes/megatron.hpp"
#include "planner/recipes/model_names.hpp"

namespace wt {
namespace {

/// training/mixed_precision.py. These overwrite fields of model, optimizer and ddp.
struct BridgePrecision {
  std::string word, precision;
  NumberFormat gathered = NumberFormat::bf16;  ///< fp8_param_gather
  bool narrow_reduction = false;               ///< not grad_reduce_in_fp32
  bool wide_ends = false;                      ///< first_last_layers_bf16
};
const std::vector<BridgePrecision> kBridgePrecisions{
    {"bf16_mixed", "amp_bf16"},
    {"fp16_mixed", "amp_fp16", NumberFormat::bf16, true},
    {"bf16_with_fp8_current_scaling_mixed", "amp_fp8", NumberFormat::fp8, false, true},
    {"bf16_with_fp8_delayed_scaling_mixed", "amp_fp8", NumberFormat::fp8},
    {"bf16_with_fp8_subchannel_scaling_mixed", "amp_fp8_blockwise"},
    {"bf16_with_mxfp8_mixed", "amp_mxfp8", NumberFormat::mxfp8},
    {"bf16_with_nvfp4_mixed", "amp_nvfp4"}};
const char* const kWideEnds = "the first and the last layer compute in bf16 there, and are simulated as the others";

const BridgePrecision* bridge_precision(std::string BridgePrecision::*name, const std::string& word) {
  const auto found = std::ranges::find(kBridgePrecisions, word, name);
  return found == kBridgePrecisions.end() ? nullptr : &*found;
}

void write_bridge_precision(RecipeDraft& draft) {
  const char* const key = "mixed_precision";
  draft.why["fsdp_config.mixed_precision"] = "its mixed_precision says in what gradients are reduced";
  draft.why["precisions.gathered_weights"] = "its mixed_precision says in what weights are gathered";
  if (draft.run.precision != Precision::bf16) return draft.out.put(key, nullptr);
  const BridgePrecision* found = bridge_precision(&BridgePrecision::precision, precision_word(draft.run));
  if (found == nullptr) found = &kBridgePrecisions.front();
  draft.out.put(key, found->word);
  if (found->wide_ends) draft.not_expressed.push_back(fmt::format("precision: {}", kWideEnds));
}

/// A recipe's own MixedPrecisionConfig, with the fields of Megatron-LM's flags.
void read_bridge_formats(RecipeReading& reading) {
  const auto field = [](const char* name) { return fmt::format("mixed_precision.{}", name); };
  const bool half = reading.in.boolean(field("fp16"), false);
  set_precision(reading.run, half ? "amp_fp16" : reading.in.boolean(field("bf16"), false) ? "amp_bf16" : "fp32");
  const std::string fp8 = reading.in.text(field("fp8"), ""), fp4 = reading.in.text(field("fp4"), "");
  const std::string recipe = reading.in.text(field("fp8_recipe"), "tensorwise");
  if (!fp8.empty() || !fp4.empty())
    set_precision(reading.run, narrow_precision(reading.in, field(fp4.empty() ? "fp8_recipe" : "fp4_recipe"),
                                                fp4.empty() ? recipe : "nvfp4"));
  if (reading.in.boolean(field("fp8_param_gather"), false))
    reading.run.precisions.gathered_weights = reading.run.precisions.forward;
  reading.run.pure_reduction = !reading.in.boolean(field("grad_reduce_in_fp32"), true);
}

void read_bridge_precision(RecipeReading& reading) {
  const std::string key = "mixed_precision";
  if (reading.in.has_under(key) && !reading.in.has(key)) return read_bridge_formats(reading);
  const std::string word = reading.in.text(key, reading.in.mentions(key) ? "fp32" : "bf16_mixed");
  if (word == "fp32") return set_precision(reading.run, word);
  const BridgePrecision* found = bridge_precision(&BridgePrecision::word, word);
  if (found == nullptr) reading.in.fail(key, "found {}, needs bf16_mixed or another of Megatron-Bridge's", word);
  set_precision(reading.run, found->precision);
  reading.run.precisions.gathered_weights = found->gathered;
  reading.run.pure_reduction = found->narrow_reduction;
  if (found->wide_ends) reading.assume("{}: found {}; {}", key, word, kWideEnds);
}

/// Moments of AdamW as torch.dtype, as in overrides (training/utils/omegaconf_utils.py).
const RecipeWords<NumberFormat> kBridgeMoments{{"torch.float32", NumberFormat::fp32},
                                               {"torch.bfloat16", NumberFormat::bf16},
                                               {"torch.float16", NumberFormat::fp16},
                                               {"torch.uint8", NumberFormat::fp8}};
const char* const kMoment = "optimizer.exp_avg_dtype";

/// Writes all of the optimizer's formats. Recipes of DeepSeek's models have narrow ones, which Megatron-Core refuses
/// without the precision-aware optimizer (optimizer_config.py).
void write_bridge_optimizer(RecipeDraft& draft, MegatronKeys& keys) {
  const NumberFormat moments = draft.run.precisions.moments;
  if (moments != NumberFormat::fp32) keys.put_flag("use_precision_aware_optimizer", true);
  for (const char* key : {"optimizer.main_params_dtype", "optimizer.main_grads_dtype"})
    draft.out.put(key, "torch.float32");
  for (const char* key : {kMoment, "optimizer.exp_avg_sq_dtype"})
    draft.out.put(key, word_of(kBridgeMoments, moments, "torch.bfloat16"));
  draft.why["precisions"] = "a ConfigContainer has no field for this class of operations alone";
}

void read_bridge_optimizer(RecipeReading& reading) {
  const std::string word = reading.in.text(kMoment, "torch.float32");
  const auto moments = meaning_of(kBridgeMoments, word);
  if (!moments) reading.in.fail(kMoment, "found {}, needs torch.float32, bfloat16, float16 or uint8", word);
  reading.run.precisions.moments = *moments;
  for (const char* key : {"main_params_dtype", "main_grads_dtype", "exp_avg_sq_dtype"})
    reading.in.text(std::string("optimizer.") + key, "");
}

/// The recipe of a model with the same kinds of activation and attention.
const char* like_recipe(const ModelSpec& m) {
  if (m.attention.mla.on()) return "deepseek_v2_lite_pretrain_config";
  return m.experts > 0 ? "qwen3_30b_a3b_pretrain_config" : "llama31_8b_pretrain_config";
}

/// Of a model that the recipe has: modules of multi-token prediction, of which some recipes have none, and a
/// benchmark's routing.
void write_modules(const RunSpec& run, MegatronKeys& keys) {
  if (run.model.mtp_layers > 0) {
    keys.put("mtp_num_layers", run.model.mtp_layers);
    keys.put("mtp_loss_scaling_factor", run.model.mtp_loss_weight);
  }
  if (run.model.router.forced == RouterSpec::Forced::balanced) keys.put_flag("moe_router_force_load_balancing", true);
}

void write_bridge(RecipeDraft& draft) {
  MegatronKeys keys(draft.out, false);
  const RunSpec& run = draft.run;
  const ModelNames* names = names_of(run.model);
  const bool shipped = names != nullptr && *names->bridge != '\0';
  draft.out.put("recipe", shipped ? names->bridge : like_recipe(run.model));
  draft.out.put("dataset", "llm-pretrain-mock");
  if (shipped) {
    write_modules(run, keys);
  } else {
    write_megatron_model(draft, keys);
    draft.out.put("model.should_pad_vocab", false);
    draft.not_expressed.push_back(
        fmt::format("model.name: found {}, which has no recipe there; the file overrides the shape of {}, whose "
                    "activation function and initial weights stay",
                    run.model.name, like_recipe(run.model)));
  }
  write_megatron_layout(draft, keys);
  write_megatron_training(draft, keys);
  draft.out.put("model.seq_length", run.seq);
  write_bridge_precision(draft);
  write_bridge_optimizer(draft, keys);
  write_megatron_switches(draft, keys);
  draft.command = torchrun_command(draft, "scripts/training/run_recipe.py");
  draft.next_step = fmt::format("{} pretrain.sh in a checkout of Megatron-Bridge 0.3.1",
                                nodes_and_gpus(draft).first > 1 ? "sbatch" : "bash");
}

/// The model of a recipe; its overrides change it.
ModelSpec base_of(RecipeReading& reading, const std::string& recipe) {
  if (reading.model) return *reading.model;
  const auto known = bridge_recipes().find(recipe);
  std::string preset = preset_named(&ModelNames::bridge, recipe);
  if (preset.empty() && known != bridge_recipes().end() && known->second.model.find('/') != std::string::npos)
    preset = hub_repository(known->second.model);
  if (!preset.empty()) return read_model(preset);
  if (!reading.in.has("model.num_layers"))
    reading.in.fail("recipe", "found {}{}, which is no model of configs/models; give --model NAME or its config.json",
                    recipe.empty() ? "none" : recipe,
                    known == bridge_recipes().end() || known->second.model.empty() ? "" : " of " + known->second.model);
  return {};
}

/// Names of earlier releases, and of forks, are not those of 0.3.1.
const BridgeRecipe* recipe_of(RecipeReading& reading, const std::string& name) {
  if (name.empty()) return nullptr;
  const auto found = bridge_recipes().find(name);
  if (found == bridge_recipes().end()) {
    std::vector<std::string> names;
    for (const auto& [known, recipe] : bridge_recipes()) names.push_back(known);
    reading.in.fail("recipe", "found {}{}, needs a recipe of Megatron-Bridge 0.3.1", name, did_you_mean(name, names));
  }
  if (found->second.adapters)
    reading.in.fail("recipe",
                    "found {}, which trains adapters; needs a run of all weights; write model.peft_config in a run "
                    "file (docs/lora.md)",
                    name);
  return &found->second;
}

/// The recipe's values below the overrides. One of `mixed_precision` or `comm_overlap` replaces the recipe's whole.
void add_recipe(RecipeReading& reading, const BridgeRecipe& recipe) {
  const auto replaced = [&](const std::string& key) {
    const std::string section = key.substr(0, key.find('.'));
    return (section == "mixed_precision" || section == "comm_overlap") && reading.in.mentions(section);
  };
  Settings said = reading.in;
  for (const auto& [key, value] : recipe.values) {
    const bool empty_of_fields = value.is_null() && said.has_under(key);
    if (said.mentions(key) || empty_of_fields) continue;
    if (said.mentions(key.substr(0, key.find('.'))) && replaced(key)) continue;
    reading.in.put(key, value);
    reading.in.mark_read(key);
  }
  for (const std::string& key : recipe.computed)
    if (!reading.in.mentions(key))
      reading.assume("{}: found none, and the recipe computes it; taken as in every recipe", key);
}

/// CommOverlapConfig overwrites these fields of ddp and model (training/comm_overlap.py).
void read_bridge_overlap(RecipeReading& reading, MegatronKeys& keys) {
  const std::string key = "comm_overlap";
  if (!reading.in.has(key) && !reading.in.has_under(key)) return;
  reading.in.mark_read(key);
  for (const char* field : {"overlap_grad_reduce", "overlap_param_gather"})
    keys.put(field, reading.in.boolean(fmt::format("{}.{}", key, field), true));
  for (const char* field : {"tp_comm_overlap", "overlap_moe_expert_parallel_comm"}) {
    const std::string said = fmt::format("{}.{}", key, field);
    if (reading.in.has(said)) keys.put(field, reading.in.boolean(said, false));
  }
}

void read_bridge_model(RecipeReading& reading, MegatronKeys& keys) {
  const ModelSpec base = base_of(reading, reading.in.text("recipe", ""));
  if (!reading.model && says_megatron_model(keys))
    read_megatron_model(reading, keys, base);
  else
    reading.run.model = base;
  need_same_shape(reading, keys);
}

/// Uses the values that every recipe starts from (recipes/common.py, _pretrain_common) in place of this recipe's own.
void fill_in_usual(RecipeReading& reading, MegatronKeys& keys) {
  for (const auto& [field, usual] : {std::pair{"tensor_model_parallel_size", Settings::Value(1)},
                                     {"pipeline_model_parallel_size", 1},
                                     {"context_parallel_size", 1},
                                     {"expert_model_parallel_size", 1},
                                     {"micro_batch_size", 2},
                                     {"global_batch_size", 32},
                                     {"seq_length", 4096},
                                     {"train_iters", 300000},
                                     {"lr", 3e-4},
                                     {"min_lr", 3e-5}}) {
    const bool dense = reading.run.model.experts == 0 && std::string(field).starts_with("expert");
    if (keys.has(field) || dense) continue;
    reading.assume("{}: found none, which means the recipe's; taken as {}", keys.key(field), usual.dump());
    keys.put(field, usual);
  }
}

void read_bridge(RecipeReading& reading) {
  MegatronKeys keys(reading.in, false);
  for (const char* other : {"dataset.seq_length", "model.seq_length", "seq-length"})
    if (const std::int64_t seq = reading.in.integer(other, 0, 1); seq > 0 && !keys.has("seq_length"))
      keys.put("seq_length", seq);
  const BridgeRecipe* recipe = recipe_of(reading, reading.in.text("recipe", ""));
  if (recipe != nullptr) add_recipe(reading, *recipe);
  read_bridge_overlap(reading, keys);
  read_bridge_model(reading, keys);
  const std::int64_t world = launched_world(reading);
  for (const char* other : {"dataset.seq_length", "model.seq_length"})
    if (const std::int64_t seq = reading.in.integer(other, 0, 1); seq > 0 && !keys.has("seq_length"))
      keys.put("seq_length", seq);
  fill_in_usual(reading, keys);
  read_megatron_layout(reading, keys, world);
  read_megatron_training(reading, keys);
  reading.in.boolean("dist.use_megatron_fsdp", false);
  read_bridge_precision(reading);
  read_bridge_optimizer(reading);
  read_megatron_switches(reading, keys);
}

Settings parse_bridge(const std::string& text, const std::string& origin, const RecipeSource& source) {
  const bool yaml = text.find("--") == std::string::npos && text.find("model:") != std::string::npos;
  return yaml ? settings_from_yaml(text, origin) : settings_from_shell(text, origin, source);
}

}  // namespace

const RecipeTranslator kMegatronBridge{"Megatron-Bridge 0.3.1",
                                       "pretrain.sh",
                                       true,
                                       write_bridge,
                                       read_bridge,
                                       nullptr,
                                       parse_bridge,
                                       "optimizer.lr",
                                       "scheduler.lr_warmup_iters",
                                       "dataset.blend and tokenizer in place of llm-pretrain-mock",
                                       "megatron-bridge"};

}  // namespace wt
