// All other keys of an LLM Foundry recipe, one by one: keys of TrainConfig (llmfoundry/utils/config_utils.py) and of
// the recipes in scripts/train (0.22.0).

#include <regex>

#include "configs/base/nearest.hpp"
#include "planner/recipes/llm_foundry.hpp"

namespace wt {
namespace {

enum class FoundryAction { ignored, learning, changes, later, refused };

/// Keys with one reason. A key that ends with a dot or an underscore stands for all keys that begin so; the longest one
/// counts. A refused key may have the value `allowed`.
struct FoundryKeys {
  FoundryAction action;
  const char* reason;
  std::vector<std::string> keys;
  const char* allowed = nullptr;
};

using enum FoundryAction;
const std::vector<FoundryKeys> kFoundryKeys{
    {ignored, nullptr, {"variables."}},  // already substituted by resolve_references()
    {ignored, "data are tokenized already", {"tokenizer."}},
    // model
    {ignored, "weights are drawn rank by rank", {"model.init_device"}},
    {learning, "weights are drawn as GPT-2's", {"model.init_config."}},
    {ignored,
     "our trainer chooses its kernels",
     {"model.attn_config.attn_impl", "model.attn_config.fused_qkv", "model.attn_config.rope_impl",
      "model.attn_config.rope_dail_config.", "model.use_flash_attention_2", "model.attn_implementation",
      "model.loss_fn", "model.ffn_config.mlp_impl", "model.ffn_config.memory_optimized_mlp",
      "model.config_overrides.attn_config.attn_impl"}},
    {ignored, "our balancing loss is in fp32", {"model.ffn_config.moe_lbl_in_fp32"}},
    {refused, "our experts are sharded", {"model.ffn_config.moe_weight_parallelism"}, "false"},
    {ignored, "nothing is downloaded by name", {"model.use_auth_token"}},
    {ignored, "no code of a model is run", {"model.trust_remote_code"}},
    {ignored, "training keeps no keys", {"model.use_cache"}},
    {ignored, "metrics.jsonl has it in any case", {"model.use_train_metrics", "model.additional_train_metrics"}},
    {ignored, "sequences are full", {"model.use_pad_tok_in_ffn"}},
    {ignored, "it is empty", {"model.config_overrides"}},
    {ignored,
     "max_seq_len says it",
     {"model.config_overrides.max_seq_len", "model.config_overrides.max_position_embeddings",
      "model.config_overrides.n_positions"}},
    {refused,
     "attention separates packed finetuning examples alone",
     {"model.config_overrides.attn_config.attn_uses_sequence_id", "model.attn_config.attn_uses_sequence_id"},
     "false"},
    {refused, "give the changed config.json with --model", {"model.config_overrides."}},
    {refused, "an mpt_causal_lm takes no adapter; load its weights as hf_causal_lm", {"model.peft_config."}},
    {refused, "our models have none", {"model.attn_config.attn_pdrop", "model.resid_pdrop", "model.emb_pdrop"}, "0"},
    {refused, "ours is 1 / sqrt(head_dim)", {"model.attn_config.softmax_scale"}},
    {refused, "our attention has none", {"model.attn_config.attn_logit_softcapping"}},
    {refused, "our head has none", {"model.final_logit_softcapping", "model.logit_scale"}},
    {refused, "our embedding has none", {"model.embedding_fraction"}, "1"},
    {refused, "our products are LibTorch's", {"model.fc_type", "model.fc_type.name"}, "torch"},
    {refused, "our MPT layers are alike", {"model.block_overrides."}},
    {refused, "our router has none", {"model.ffn_config.moe_jitter_eps"}, "0"},
    // sharding
    {ignored, "recompute is the same either way", {"fsdp_config.activation_checkpointing_reentrant"}},
    {ignored,
     "our trainer shards, gathers and prefetches in its own way",
     {"fsdp_config.limit_all_gathers", "fsdp_config.use_orig_params"}},
    {ignored, "weights are drawn rank by rank", {"fsdp_config.sync_module_states"}},
    {ignored, "progress is shown on a terminal alone", {"fsdp_config.verbose"}},
    {ignored, "gradients are kept in fp32", {"fsdp_config.keep_low_precision_grads"}},
    {ignored, "checkpoints are read in parts", {"fsdp_config.load_monolith_rank0_only", "fsdp_config.load_planner"}},
    {refused, "our checkpoints are sharded", {"fsdp_config.state_dict_type"}, "sharded"},
    {ignored, "checkpoints lie in the output folder", {"fsdp_config.sharded_ckpt_prefix_dir"}},
    {refused, "fp8 is not trained", {"fsdp_config.te_"}},
    {refused, "our trainer has no tensor parallelism", {"tp_config."}},
    // data
    {later, "data are a packed MDS data set", {"train_loader.name"}},
    {ignored, "a step needs all of its samples", {"train_loader.drop_last"}},
    {ignored,
     "our loader reads shards without worker processes",
     {"train_loader.num_workers", "train_loader.pin_memory", "train_loader.prefetch_factor",
      "train_loader.persistent_workers", "train_loader.timeout"}},
    {ignored, "max_seq_len says it", {"train_loader.dataset.max_seq_len"}},
    {refused,
     "our models are decoders",
     {"train_loader.dataset.decoder_only_format", "eval_loader.dataset.decoder_only_format"},
     "true"},
    {ignored,
     "padding changes no loss",
     {"train_loader.dataset.allow_pad_trimming", "eval_loader.dataset.allow_pad_trimming"}},
    {later, "examples are read from MDS: windtunnel data pack --samples finetune", {"train_loader.dataset.hf_name"}},
    {later,
     "no key of the run file takes it",
     {"train_loader.dataset.", "eval_loader.", "eval_loader", "eval_interval", "eval_first", "eval_subset_num_batches",
      "device_eval_batch_size"}},
    {refused, "our run ends by max_duration", {"train_subset_num_batches"}, "-1"},
    {ignored, "a run goes on at its sample without drawing those before", {"spin_dataloaders"}},
    {ignored, "every sample counts once", {"eval_loader.drop_last"}},
    {ignored, "every example is evaluated alone", {"eval_loader.dataset.packing_ratio"}},
    {later,
     "tasks are scored on the exported weights (lm-eval)",
     {"icl_tasks", "icl_tasks.", "icl_tasks_str", "icl_seq_len", "icl_subset_num_batches", "eval_gauntlet",
      "eval_gauntlet.", "eval_gauntlet_str"}},
    // training
    {refused, "our loss is the mean over tokens", {"accumulate_train_batch_on_tokens"}, "true"},
    {ignored, "Lion has none", {"optimizer.eps"}},
    {refused, "our trainer has gradient_clipping alone", {"algorithms."}},
    {changes, "kernels are launched one by one", {"compile_config."}},
    {refused, "no code of a recipe is run", {"code_paths"}},
    {ignored, "windtunnel train --profile records a profile", {"profiler."}},
    // checkpoints
    {ignored, "checkpoints lie in the output folder", {"save_folder"}},
    {ignored, "an earlier run is moved aside, never replaced", {"save_overwrite"}},
    {refused, "our checkpoints have the whole state", {"save_weights_only"}, "false"},
    {ignored, "checkpoints have names of their own", {"save_filename", "save_latest_filename"}},
    {refused, "our checkpoints have the whole state", {"save_ignore_keys"}},
    {refused, "load_path gives weights alone", {"load_weights_only"}, "true"},
    {refused, "all weights must be there", {"load_strict_model_weights"}, "true"},
    {refused, "load_path gives weights alone", {"load_ignore_keys"}},
    {refused, "a run saves its state", {"only_hf_checkpoint"}, "false"},
    {ignored, "an export is written where hf_checkpointer says", {"only_composer_checkpoint"}},
    {ignored, "weights are exported once, at the end", {"callbacks.hf_checkpointer."}},
    // output during a run
    {ignored,
     "progress is shown on a terminal alone",
     {"progress_bar", "log_to_console", "console_log_interval", "python_log_level"}},
    {ignored, "the output folder has run.yaml", {"log_config"}},
    {ignored,
     "metrics.jsonl has it in any case",
     {"callbacks.speed_monitor", "callbacks.speed_monitor.", "callbacks.lr_monitor", "callbacks.memory_monitor",
      "callbacks.runtime_estimator"}},
    {ignored, "nothing here collects garbage", {"callbacks.scheduled_gc", "callbacks.scheduled_gc."}},
    {later, "no callback of ours does it", {"callbacks."}},
    {later, "MLflow and TensorBoard are taken, with their own keys", {"loggers."}},
    {ignored, "our trainer sets no allocator options", {"max_split_size_mb", "expandable_segments", "cuda_load_lazy"}},
    {ignored, "nothing reads it", {"metadata.", "flatten_metadata"}}};

/// Removes positions in lists: "eval_loader.label" for "eval_loader[1].label" and "eval_loaders[1].label".
std::string without_places(const std::string& key) {
  static const std::regex place("(eval_loader)s?\\[[0-9]+\\](?=\\.)");
  return std::regex_replace(key, place, "$1");
}

bool is_prefix(const std::string& key) { return key.ends_with('.') || key.ends_with('_'); }

/// nullptr if no key stands for it.
const FoundryKeys* reason_for(const std::string& name) {
  const FoundryKeys* found = nullptr;
  std::size_t longest = 0;
  for (const FoundryKeys& row : kFoundryKeys)
    for (const std::string& key : row.keys)
      if (key.size() > longest && (is_prefix(key) ? name.starts_with(key) : name == key))
        found = &row, longest = key.size();
  return found;
}

std::string value_in_words(const Settings::Value& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "nothing" : value.dump();
}

/// 1.0 equals an allowed 1. null means the key is left out.
bool is_allowed(const Settings::Value& value, const char* allowed) {
  if (value.is_null() || value == Settings::Value::object() || value == Settings::Value::array()) return true;
  if (allowed == nullptr) return false;
  const Settings::Value wanted = value_from_yaml(allowed);
  return value == wanted || (value.is_number() && wanted.is_number() && value.get<double>() == wanted.get<double>());
}

[[noreturn]] void fail_unknown_key(const RecipeReading& reading, const std::string& key) {
  std::vector<std::string> known;
  for (const FoundryKeys& row : kFoundryKeys)
    for (const std::string& each : row.keys) known.push_back(each.substr(0, each.size() - (is_prefix(each) ? 1 : 0)));
  known.insert(known.end(), reading.in.asked().begin(), reading.in.asked().end());
  reading.in.fail(key, "found a key that LLM Foundry 0.22.0 has not{}; fix it, or put it under variables",
                  did_you_mean(key, known));
}

}  // namespace

void account_for_foundry_keys(RecipeReading& reading) {
  for (const Settings::Entry& entry : reading.in.entries()) {
    if (reading.in.was_read(entry.key)) continue;
    const FoundryKeys* row = reason_for(without_places(entry.key));
    if (row == nullptr) {
      if (entry.value.is_null() || entry.value == Settings::Value::object()) continue;  // has no value
      fail_unknown_key(reading, entry.key);
    }
    const bool nothing = is_allowed(entry.value, row->allowed);
    const std::string found = fmt::format("{}: found {}", entry.key, value_in_words(entry.value));
    if (row->action == FoundryAction::refused && !nothing)
      reading.in.fail(entry.key, "found {}, needs {}: {}", value_in_words(entry.value),
                      row->allowed ? row->allowed : "none", row->reason);
    reading.in.mark_read(entry.key);
    if (row->action == FoundryAction::refused || row->reason == nullptr || entry.value.is_null()) continue;
    // A missing key of the model changes the model.
    const bool changes = row->action == FoundryAction::changes ||
                         (row->action == FoundryAction::later && entry.key.starts_with("model."));
    const bool learning = row->action == FoundryAction::learning;
    (changes ? reading.assumed : learning ? reading.learning : reading.ignored).push_back(found + "; " + row->reason);
  }
}

}  // namespace wt
