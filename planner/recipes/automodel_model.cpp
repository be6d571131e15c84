// The model of a job of NeMo Automodel 0.7.0: models/*, and the parts of a model that a recipe sets itself.
#include <algorithm>
#include <array>
#include <filesystem>

#include "configs/base/text.hpp"
#include "configs/files/hub_models.hpp"
#include "planner/recipes/automodel.hpp"
#include "planner/recipes/model_names.hpp"

namespace wt {
namespace {

/// Keys of config.json that change a model's shape. Those that only count layers are read.
constexpr std::array kShapeWords{"hidden_size",
                                 "intermediate_size",
                                 "moe_intermediate_size",
                                 "num_attention_heads",
                                 "num_key_value_heads",
                                 "head_dim",
                                 "vocab_size",
                                 "num_experts",
                                 "n_routed_experts",
                                 "num_local_experts",
                                 "num_experts_per_tok",
                                 "n_shared_experts",
                                 "first_k_dense_replace",
                                 "decoder_sparse_step",
                                 "mlp_only_layers",
                                 "q_lora_rank",
                                 "kv_lora_rank",
                                 "tie_word_embeddings",
                                 "n_embd",
                                 "n_layer",
                                 "n_head"};
/// Families whose code there has multi-token prediction; others drop these modules (components/models).
constexpr std::array kPredictsMore{"deepseek-v4", "kimi-linear", "ling", "nemotron", "qwen3.5", "step"};

/// The key that names the model, as users write it.
std::string name_key(const Settings& in) {
  for (const char* key : {"model.pretrained_model_name_or_path", "model.config.name_or_path", "model.config"})
    if (in.has(key) && !in.has(kAutomodelModel)) return key;
  return kAutomodelModel;
}

void refuse_changed_shapes(RecipeReading& reading) {
  if (reading.model) return;
  for (const char* word : kShapeWords)
    for (const char* section : {"model.", "model.config."})
      if (const std::string key = std::string(section) + word; reading.in.has(key))
        reading.in.fail(key, "found {}, which changes the model's shape; give the changed config.json with --model",
                        reading.in.text(key, ""));
}

void read_layer_counts(RecipeReading& reading, const std::string& name) {
  ModelSpec& model = reading.run.model;
  if (reading.model) return;
  for (const char* key : {"model.num_hidden_layers", "model.config.num_hidden_layers"})
    model.layers = reading.in.integer(key, model.layers, 1);
  const std::string bare = lower(name.substr(name.rfind('/') + 1));
  if (std::ranges::none_of(kPredictsMore, [&](const char* part) { return bare.find(part) != std::string::npos; }))
    model.mtp_layers = 0;
  for (const char* key : {"model.num_nextn_predict_layers", "model.config.num_nextn_predict_layers"})
    model.mtp_layers = reading.in.integer(key, model.mtp_layers);
}

/// Transformer Engine's recipes (models/common/utils.py, TEFp8Config).
const RecipeWords<std::string> kTeRecipes{
    {"current", "amp_fp8"}, {"block", "amp_fp8_blockwise"}, {"mxfp8", "amp_mxfp8"}};

void read_te_formats(RecipeReading& reading) {
  const char* const key = "model.backend.te_fp8.recipe";
  if (!reading.in.has_under("model.backend.te_fp8")) return;
  const std::string word = reading.in.text(key, "current");
  const auto precision = meaning_of(kTeRecipes, word);
  if (!precision) reading.in.fail(key, "found {}, needs current, block or mxfp8", word);
  set_precision(reading.run, *precision);
}

/// torchao's float8 (quantization/fp8.py).
void read_torchao_formats(RecipeReading& reading) {
  if (!reading.in.boolean("fp8.enabled", false)) return;
  set_precision(reading.run, "amp_fp8");
  const std::string recipe = reading.in.text("fp8.recipe_name", "tensorwise");
  if (recipe != "tensorwise") reading.assume("fp8.recipe_name: found {}, taken as one scale a tensor", recipe);
  if (reading.in.boolean("fp8.enable_fsdp_float8_all_gather", false))
    reading.run.precisions.gathered_weights = NumberFormat::fp8;
  if (reading.run.model.experts > 0)
    reading.assume("fp8.enabled: found true; torchao leaves experts in 16 bits, taken as products of 8 bits");
  reading.in.texts("fp8.filter_fqns");
}

bool is_half(const std::string& dtype) { return dtype.ends_with("bfloat16") || dtype == "bf16"; }

}  // namespace

void refuse_other_recipes(Settings& settings) {
  for (const char* section : {"flow_matching", "dllm", "recipe_args", "dflash", "vae", "fsdp"})
    if (settings.has_under(section))
      settings.fail(section, "found this section, which recipes of language models do not have; needs one of those");
  const std::string key = settings.has("recipe._target_") ? "recipe._target_" : "recipe";
  const std::string found = settings.text(key, "TrainFinetuneRecipeForNextTokenPrediction");
  const std::string name = found.substr(found.rfind('.') + 1);
  if (name != "TrainFinetuneRecipeForNextTokenPrediction" && name != "BenchmarkingRecipeForNextTokenPrediction")
    settings.fail(key,
                  "found {}, needs TrainFinetuneRecipeForNextTokenPrediction or "
                  "BenchmarkingRecipeForNextTokenPrediction: language models that learn from text alone",
                  name);
}

void read_automodel_model(RecipeReading& reading) {
  for (const char* key : {"recipe", "recipe._target_"}) reading.in.text(key, "");
  const std::string key = name_key(reading.in), name = reading.in.text(key, "");
  std::error_code ignored;
  const bool folder = std::filesystem::is_regular_file(std::filesystem::path(name) / "config.json", ignored);
  refuse_changed_shapes(reading);
  reading.set_model(folder ? name : hub_repository(name), key, name);
  read_layer_counts(reading, name);
}

void read_automodel_formats(RecipeReading& reading) {
  RunSpec& run = reading.run;
  const std::string policy = std::string(kAutomodelLayout) + "mp_policy.";
  if (reading.in.text(policy + "param_dtype", "bfloat16").ends_with("float32")) set_precision(run, "fp32");
  read_te_formats(reading);
  read_torchao_formats(reading);
  // Weights have the checkpoint's type, which is bf16 (_transformers/auto_model.py), and PyTorch's AdamW state has that
  // of its weights.
  const std::string dtype = reading.in.text("model.dtype", reading.in.text("model.torch_dtype", "auto"));
  if (dtype == "auto" || is_half(dtype)) run.precisions.master_weights = run.precisions.moments = NumberFormat::bf16;
  if (reading.in.boolean("optimizer.master_weights", false)) run.precisions.master_weights = NumberFormat::fp32;
  const std::string moments = reading.in.text("optimizer.exp_avg_dtype", "");
  if (!moments.empty()) run.precisions.moments = is_half(moments) ? NumberFormat::bf16 : NumberFormat::fp32;
  reading.in.text("optimizer.exp_avg_sq_dtype", "");
  const bool megatron = lower(reading.in.text(std::string(kAutomodelLayout) + "strategy", "fsdp2")).starts_with("m");
  run.pure_reduction = megatron ? !reading.in.boolean(std::string(kAutomodelLayout) + "grad_reduce_in_fp32", false)
                                : is_half(reading.in.text(policy + "reduce_dtype", "float32"));
}

}  // namespace wt
