// All other keys of an LLM Foundry recipe, one by one: keys of TrainConfig (llmfoundry/utils/config_utils.py) and of
// the recipes in scripts/train (0.22.0).

#include <algorithm>
#include <regex>

#include "configs/base/nearest.hpp"
#include "planner/recipes/llm_foundry.hpp"

namespace wt {
namespace {

enum class FoundryAction { ignored, later, refused };

/// A `key` that ends with a dot stands for all keys below it. A refused key may have the value `allowed`.
struct FoundryKey {
  const char* key;
  FoundryAction action;
  const char* reason;
  const char* allowed = nullptr;
};

const std::vector<FoundryKey>& foundry_keys() {
  using enum FoundryAction;
  const char *const
      kernels = "our trainer chooses its kernels",
      *const start = "weights are drawn rank by rank",
      *const fsdp = "our trainer shards, gathers and prefetches in its own way",
      *const loader = "our loader reads shards without worker processes",
      *const shown = "progress is shown on a terminal alone", *const measured = "metrics.jsonl has it in any case",
      *const allocator = "our trainer sets no allocator options", *const access = "nothing is downloaded by name",
      *const loader_keys = "no key of the run file takes it", *const tokens = "data are tokenized already",
      *const documents = "attention separates packed finetuning examples alone",
      *const decoder = "our models are decoders", *const padding = "padding changes no loss",
      *const packed = "examples are read from MDS: windtunnel data pack --samples finetune",
      *const dropout = "our models have none";
  static const std::vector<FoundryKey> keys{
      {"variables.", ignored, nullptr},  // already substituted by resolve_references()
      {"tokenizer.", ignored, tokens},
      // model
      {"model.init_device", ignored, start},
      {"model.init_config.", ignored, "weights are drawn as GPT-2's"},
      {"model.attn_config.attn_impl", ignored, kernels},
      {"model.attn_config.fused_qkv", ignored, kernels},
      {"model.attn_config.rope_impl", ignored, kernels},
      {"model.attn_config.rope_dail_config.", ignored, kernels},
      {"model.use_flash_attention_2", ignored, kernels},
      {"model.attn_implementation", ignored, kernels},
      {"model.loss_fn", ignored, kernels},
      {"model.ffn_config.mlp_impl", ignored, kernels},
      {"model.ffn_config.memory_optimized_mlp", ignored, kernels},
      {"model.ffn_config.moe_lbl_in_fp32", ignored, "our balancing loss is in fp32"},
      {"model.ffn_config.moe_weight_parallelism", refused, "our experts are sharded", "false"},
      {"model.use_auth_token", ignored, access},
      {"model.trust_remote_code", ignored, "no code of a model is run"},
      {"model.use_cache", ignored, "training keeps no keys"},
      {"model.use_train_metrics", ignored, measured},
      {"model.additional_train_metrics", ignored, measured},
      {"model.use_pad_tok_in_ffn", ignored, "sequences are full"},
      {"model.config_overrides", ignored, "it is empty"},
      {"model.config_overrides.attn_config.attn_impl", ignored, kernels},
      {"model.config_overrides.max_seq_len", ignored, "max_seq_len says it"},
      {"model.config_overrides.max_position_embeddings", ignored, "max_seq_len says it"},
      {"model.config_overrides.n_positions", ignored, "max_seq_len says it"},
      {"model.config_overrides.attn_config.attn_uses_sequence_id", refused, documents, "false"},
      {"model.config_overrides.", refused, "give the changed config.json with --model"},
      {"model.peft_config.", refused, "an mpt_causal_lm takes no adapter; load its weights as hf_causal_lm"},
      {"model.attn_config.attn_uses_sequence_id", refused, documents, "false"},
      {"model.attn_config.attn_pdrop", refused, dropout, "0"},
      {"model.resid_pdrop", refused, dropout, "0"},
      {"model.emb_pdrop", refused, dropout, "0"},
      {"model.attn_config.softmax_scale", refused, "ours is 1 / sqrt(head_dim)"},
      {"model.attn_config.attn_logit_softcapping", refused, "our attention has none"},
      {"model.final_logit_softcapping", refused, "our head has none"},
      {"model.logit_scale", refused, "our head has none"},
      {"model.embedding_fraction", refused, "our embedding has none", "1"},
      {"model.fc_type", refused, "our products are LibTorch's", "torch"},
      {"model.fc_type.name", refused, "our products are LibTorch's", "torch"},
      {"model.block_overrides.", refused, "our MPT layers are alike"},
      {"model.ffn_config.moe_jitter_eps", refused, "our router has none", "0"},
      // sharding
      {"fsdp_config.activation_checkpointing_reentrant", ignored, "recompute is the same either way"},
      {"fsdp_config.limit_all_gathers", ignored, fsdp},
      {"fsdp_config.backward_prefetch", ignored, fsdp},
      {"fsdp_config.forward_prefetch", ignored, fsdp},
      {"fsdp_config.sync_module_states", ignored, start},
      {"fsdp_config.use_orig_params", ignored, fsdp},
      {"fsdp_config.verbose", ignored, shown},
      {"fsdp_config.keep_low_precision_grads", ignored, "gradients are kept in fp32"},
      {"fsdp_config.load_monolith_rank0_only", ignored, "checkpoints are read in parts"},
      {"fsdp_config.load_planner", ignored, "checkpoints are read in parts"},
      {"fsdp_config.state_dict_type", refused, "our checkpoints are sharded", "sharded"},
      {"fsdp_config.sharded_ckpt_prefix_dir", ignored, "checkpoints lie in the output folder"},
      {"fsdp_config.te_", refused, "fp8 is not trained"},
      {"tp_config.", refused, "our trainer has no tensor parallelism"},
      // data
      {"train_loader.name", later, "data are a packed MDS data set"},
      {"train_loader.drop_last", ignored, "a step needs all of its samples"},
      {"train_loader.num_workers", ignored, loader},
      {"train_loader.pin_memory", ignored, loader},
      {"train_loader.prefetch_factor", ignored, loader},
      {"train_loader.persistent_workers", ignored, loader},
      {"train_loader.timeout", ignored, loader},
      {"train_loader.dataset.max_seq_len", ignored, "max_seq_len says it"},
      {"train_loader.dataset.decoder_only_format", refused, decoder, "true"},
      {"train_loader.dataset.allow_pad_trimming", ignored, padding},
      {"train_loader.dataset.hf_name", later, packed},
      {"train_loader.dataset.", later, loader_keys},
      {"train_subset_num_batches", refused, "our run ends by max_duration", "-1"},
      {"spin_dataloaders", ignored, "a run goes on at its sample without drawing those before"},
      {"eval_loader.drop_last", ignored, "every sample counts once"},
      {"eval_loader.dataset.decoder_only_format", refused, decoder, "true"},
      {"eval_loader.dataset.allow_pad_trimming", ignored, padding},
      {"eval_loader.dataset.packing_ratio", ignored, "every example is evaluated alone"},
      {"eval_loader.", later, loader_keys},
      {"eval_loader", later, loader_keys},
      {"eval_interval", later, loader_keys},
      {"eval_first", later, loader_keys},
      {"eval_subset_num_batches", later, loader_keys},
      {"device_eval_batch_size", later, loader_keys},
      {"icl_tasks", later, "tasks are scored on the exported weights (lm-eval)"},
      {"icl_tasks.", later, "tasks are scored on the exported weights (lm-eval)"},
      {"icl_tasks_str", later, "tasks are scored on the exported weights (lm-eval)"},
      {"icl_seq_len", later, "tasks are scored on the exported weights (lm-eval)"},
      {"icl_subset_num_batches", later, "tasks are scored on the exported weights (lm-eval)"},
      {"eval_gauntlet", later, "tasks are scored on the exported weights (lm-eval)"},
      {"eval_gauntlet.", later, "tasks are scored on the exported weights (lm-eval)"},
      {"eval_gauntlet_str", later, "tasks are scored on the exported weights (lm-eval)"},
      // training
      {"accumulate_train_batch_on_tokens", refused, "our loss is the mean over tokens", "true"},
      {"optimizer.eps", ignored, "Lion has none"},
      {"algorithms.", refused, "our trainer has gradient_clipping alone"},
      {"compile_config.", ignored, kernels},
      {"code_paths", refused, "no code of a recipe is run"},
      {"profiler.", ignored, "windtunnel train --profile records a profile"},
      // checkpoints
      {"save_folder", ignored, "checkpoints lie in the output folder"},
      {"save_overwrite", ignored, "an earlier run is moved aside, never replaced"},
      {"save_weights_only", refused, "our checkpoints have the whole state", "false"},
      {"save_filename", ignored, "checkpoints have names of their own"},
      {"save_latest_filename", ignored, "checkpoints have names of their own"},
      {"save_ignore_keys", refused, "our checkpoints have the whole state"},
      {"load_weights_only", refused, "load_path gives weights alone", "true"},
      {"load_strict_model_weights", refused, "all weights must be there", "true"},
      {"load_ignore_keys", refused, "load_path gives weights alone"},
      {"only_hf_checkpoint", refused, "a run saves its state", "false"},
      {"only_composer_checkpoint", ignored, "an export is written where hf_checkpointer says"},
      {"callbacks.hf_checkpointer.", ignored, "weights are exported once, at the end"},
      // output during a run
      {"progress_bar", ignored, shown},
      {"log_to_console", ignored, shown},
      {"console_log_interval", ignored, shown},
      {"log_config", ignored, "the output folder has run.yaml"},
      {"python_log_level", ignored, shown},
      {"callbacks.speed_monitor", ignored, measured},
      {"callbacks.speed_monitor.", ignored, measured},
      {"callbacks.lr_monitor", ignored, measured},
      {"callbacks.memory_monitor", ignored, measured},
      {"callbacks.runtime_estimator", ignored, measured},
      {"callbacks.scheduled_gc", ignored, "nothing here collects garbage"},
      {"callbacks.scheduled_gc.", ignored, "nothing here collects garbage"},
      {"callbacks.", later, "no callback of ours does it"},
      {"loggers.", later, "MLflow and TensorBoard are taken, with their own keys"},
      {"max_split_size_mb", ignored, allocator},
      {"expandable_segments", ignored, allocator},
      {"cuda_load_lazy", ignored, allocator},
      {"metadata.", ignored, "nothing reads it"},
      {"flatten_metadata", ignored, "nothing reads it"}};
  return keys;
}

/// Removes positions in lists: "eval_loader.label" for "eval_loader[1].label" and "eval_loaders[1].label".
std::string without_places(const std::string& key) {
  static const std::regex place("(eval_loader)s?\\[[0-9]+\\](?=\\.)");
  return std::regex_replace(key, place, "$1");
}

bool stands_for(const FoundryKey& row, const std::string& key) {
  const std::string pattern = row.key;
  return pattern.ends_with('.') || pattern.ends_with('_') ? key.starts_with(pattern) : key == pattern;
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
  for (const FoundryKey& row : foundry_keys()) {
    known.emplace_back(row.key);
    if (known.back().ends_with('.') || known.back().ends_with('_')) known.back().pop_back();
  }
  for (const Settings::Entry& entry : reading.in.entries())
    if (reading.in.was_read(entry.key)) known.push_back(entry.key);
  reading.in.fail(key, "found a key that LLM Foundry 0.22.0 has not{}; fix it, or put it under variables",
                  did_you_mean(key, known));
}

}  // namespace

void account_for_foundry_keys(RecipeReading& reading) {
  for (const Settings::Entry& entry : reading.in.entries()) {
    if (reading.in.was_read(entry.key)) continue;
    const std::string name = without_places(entry.key);
    const auto row = std::find_if(foundry_keys().begin(), foundry_keys().end(),
                                  [&](const FoundryKey& each) { return stands_for(each, name); });
    if (row == foundry_keys().end()) {
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
    const bool changes = row->action == FoundryAction::later && entry.key.starts_with("model.");
    (changes ? reading.assumed : reading.dropped).push_back(found + "; " + row->reason);
  }
}

}  // namespace wt
