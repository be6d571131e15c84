// Shared by Megatron-LM's command line and Megatron-Bridge's overrides. Both set the fields of Megatron-Core 0.16.1's
// dataclasses (TransformerConfig, ModelParallelConfig, DistributedDataParallelConfig, OptimizerConfig): as --flags, or
// as section.field=value.
#pragma once
#include <string>
#include <vector>

#include "planner/recipes/translator.hpp"

namespace wt {

/// Accesses settings by a dataclass's field name.
class MegatronKeys {
 public:
  MegatronKeys(Settings& settings, bool flags) : settings_(settings), flags_(flags) {}

  bool flags() const { return flags_; }
  /// "num-experts" or "model.num_moe_experts".
  std::string key(const std::string& field) const;
  void put(const std::string& field, Settings::Value value) { settings_.put(key(field), std::move(value)); }
  /// A boolean field. A flag is present or absent, and some are negative: --disable-bias-linear.
  void put_flag(const std::string& field, bool value);
  bool has(const std::string& field) const { return settings_.has(key(field)); }
  bool mentions(const std::string& field) const { return settings_.mentions(key(field)); }
  bool flag(const std::string& field, bool fallback);
  std::int64_t integer(const std::string& field, std::int64_t fallback, std::int64_t minimum = 0) {
    return settings_.integer(key(field), fallback, minimum);
  }
  /// A field that may be present without a value: Megatron-Core's None, which is our 0.
  std::int64_t integer_or_none(const std::string& field, std::int64_t fallback) {
    return mentions(field) ? integer(field, 0) : fallback;
  }
  double number_or_none(const std::string& field, double fallback) {
    return mentions(field) ? number(field, 0) : fallback;
  }
  /// The value if `there`, else None. Overrides state None, because the recipe may have a value; flags are omitted.
  void put_if(bool there, const std::string& field, Settings::Value value) {
    if (there || !flags_) put(field, there ? std::move(value) : Settings::Value());
  }
  double number(const std::string& field, double fallback) { return settings_.number(key(field), fallback); }
  std::string text(const std::string& field, const std::string& fallback) {
    return settings_.text(key(field), fallback);
  }
  std::vector<std::string> texts(const std::string& field) { return settings_.texts(key(field)); }
  Settings::Value value(const std::string& field) { return settings_.value(key(field)); }
  template <typename... Args>
  [[noreturn]] void fail(const std::string& field, fmt::format_string<Args...> format, Args&&... args) const {
    settings_.fail(key(field), format, std::forward<Args>(args)...);
  }

 private:
  Settings& settings_;
  bool flags_;
};

/// A field of a dataclass as the flag that sets it; a default leaves none.
void put_megatron_field(const std::string& field, const Settings::Value& value, Settings& out);

/// Rows whose keys are fields.
void write_megatron_rows(const std::vector<RecipeRow>& rows, RecipeDraft& draft, const MegatronKeys& keys);
void read_megatron_rows(const std::vector<RecipeRow>& rows, RecipeReading& reading, const MegatronKeys& keys);

/// "([0]*3+[1]*58)", which --moe-layer-freq and --window-attn-skip-freq evaluate; for overrides a list.
Settings::Value megatron_layer_list(std::int64_t layers, bool text, const std::function<bool(std::int64_t)>& has);
/// One bool per layer, from either form. `nth`: the layers that a number n selects. Throws Error{usage}.
std::vector<bool> read_megatron_layer_list(MegatronKeys& keys, const std::string& field, std::int64_t layers,
                                           const std::function<bool(std::int64_t layer, std::int64_t n)>& nth);

/// The model's shape. Throws Error{usage} for models with linear mixers or layers without an FFN.
void write_megatron_model(RecipeDraft& draft, MegatronKeys keys);
/// Whether any field of the shape is set.
bool says_megatron_model(const MegatronKeys& keys);
/// Sets run.model: `base` with the fields that are set.
void read_megatron_model(RecipeReading& reading, MegatronKeys keys, const ModelSpec& base);
/// The defaults of Megatron-Core's command line.
ModelSpec megatron_default_model();

/// Degrees, stages, data parallelism, dispatcher, recompute, CUDA graphs.
void write_megatron_layout(RecipeDraft& draft, MegatronKeys keys);
/// `world` ranks. Needs the model.
void read_megatron_layout(RecipeReading& reading, MegatronKeys keys, std::int64_t world);
void write_megatron_recompute(RecipeDraft& draft, MegatronKeys keys);
void read_megatron_recompute(RecipeReading& reading, MegatronKeys keys);

/// Whether Megatron-FSDP shards weights and gradients during a microbatch.
bool megatron_fsdp(const RunSpec& run);
/// What simulations assume of overlaps, fusions and saves (RecipeSwitch).
void write_megatron_switches(RecipeDraft& draft, MegatronKeys keys);
/// Needs the whole run.
void read_megatron_switches(RecipeReading& reading, MegatronKeys keys);

/// Batch, steps, optimizer, schedule of the learning rate, saves, seed.
void write_megatron_training(RecipeDraft& draft, MegatronKeys keys);
void read_megatron_training(RecipeReading& reading, MegatronKeys keys);

/// The job's GPUs: those of its launcher (settings_from_shell) or of --gpus. Throws Error{usage} where neither says
/// them, and where both do and differ, but for a launcher's number that is a fallback of a variable.
std::int64_t launched_world(RecipeReading& reading);

/// Throws Error{usage} where the caller's model has another shape than the text says.
void need_same_shape(RecipeReading& reading, MegatronKeys keys);

/// The `precision` of a word of fp8_recipe or fp4_recipe. Throws Error{usage} naming `key`.
std::string narrow_precision(const Settings& settings, const std::string& key, const std::string& recipe);

/// The model's vocabulary as the embedding has it: what the text, --vocab or the tokenizer's name says, padded as
/// Megatron-LM pads it (megatron/training/tokenizer). Needs run.layout.tensor. Throws Error{usage} if nothing says it.
std::int64_t megatron_vocabulary(RecipeReading& reading, MegatronKeys keys);

}  // namespace wt
