#include "planner/recipes/llm_foundry.hpp"
#include "planner/recipes/launch.hpp"

#include <algorithm>
#include <utility>

#include "configs/base/error.hpp"

namespace wt {
namespace {

const std::vector<RecipeRow> kFoundryRows{
    {"max_seq_len", +[](RunSpec& r) { return &r.seq; }, 1},
    {"global_train_batch_size", +[](RunSpec& r) { return &r.global_batch; }, 1},
    {"seed", +[](RunSpec& r) { return &r.seed; }},
    {"dist_timeout", +[](RunSpec& r) { return &r.dist_timeout_s; }},
    {"autoresume", +[](RunSpec& r) { return &r.autoresume; }},
    {"optimizer.lr", +[](RunSpec& r) { return &r.optimizer.lr; }},
    {"algorithms.gradient_clipping.clipping_threshold", +[](RunSpec& r) { return &r.optimizer.clip_norm; }},
    {"save_num_checkpoints_to_keep", +[](RunSpec& r) { return &r.keep_checkpoints; }, -1}};

const std::string kFsdp = "fsdp_config.";

/// Defaults of composer/utils/parallelism.py.
const std::vector<RecipeSwitch> kFoundrySwitches{
    {"fsdp_config.backward_prefetch", "BACKWARD_PRE", "BACKWARD_POST",
     "a layer's weights are gathered during the one before", +[](const RunSpec& r) { return r.layout.shard > 1; }},
    {"fsdp_config.forward_prefetch", true, false, "a layer's weights are gathered during the one before",
     +[](const RunSpec& r) { return r.layout.shard > 1; }}};

void refuse_what_foundry_has_not(const RunSpec& run) {
  const Layout& l = run.layout;
  for (const auto& [what, degree] : {std::pair{"tensor_parallel_degree", l.tensor},
                                     {"pipeline_parallel_degree", l.pipeline},
                                     {"context_parallel_degree", l.context}})
    if (degree > 1)
      throw_usage("{}: fsdp_config.{}: found {}, needs 1: LLM Foundry shards data and experts alone", run.name, what,
                  degree);
  if (l.expert > 1 && l.replicate > 1)
    throw_usage(
        "{}: fsdp_config.data_parallel_replicate_degree: found {} with expert_parallel_degree {}, needs 1: LLM Foundry "
        "refuses replicas of sharded experts (models/layers/ffn.py)",
        run.name, l.replicate, l.expert);
}

void write_foundry_layout(RecipeDraft& draft) {
  const Layout& l = draft.run.layout;
  draft.out.put(kFsdp + "data_parallel_replicate_degree", l.replicate);
  draft.out.put(kFsdp + "data_parallel_shard_degree", l.shard);
  draft.out.put(kFsdp + "sharding_strategy", l.reshard_after_forward ? "FULL_SHARD" : "SHARD_GRAD_OP");
  draft.out.put(kFsdp + "mixed_precision", draft.run.pure_reduction ? "PURE" : "DEFAULT");
  draft.out.put(kFsdp + "activation_checkpointing_reentrant", false);
  draft.out.put(kFsdp + "activation_cpu_offload", l.offload_activations);
  // Simulated are gathers of a layer's weights during the layer before it.
  draft.out.put(kFsdp + "backward_prefetch", "BACKWARD_PRE");
  draft.out.put(kFsdp + "forward_prefetch", true);
  draft.out.put(kFsdp + "limit_all_gathers", true);
  draft.out.put(kFsdp + "state_dict_type", "sharded");
  write_foundry_recompute(draft);
}

void read_foundry_layout(RecipeReading& reading) {
  Layout& l = reading.run.layout;
  if (!reading.in.has_under("fsdp_config")) {
    l.replicate = reading.world(0, "fsdp_config");
    l.reduce_every_microbatch = false;
    return;
  }
  l.replicate = reading.in.integer(kFsdp + "data_parallel_replicate_degree", 1, 1);
  const std::string key = kFsdp + "data_parallel_shard_degree";
  const std::int64_t shard = reading.in.integer(key, -1, -1);
  l.shard = reading.data_ranks(reading.world(shard > 0 ? shard * l.replicate : 0, key), l.replicate, key);
  const std::string strategy = reading.in.text(kFsdp + "sharding_strategy", "FULL_SHARD");
  // With two degrees, Composer uses the hybrid version (dist_strategy.py).
  const bool whole = strategy == "FULL_SHARD" || strategy == "HYBRID_SHARD",
             kept = strategy == "SHARD_GRAD_OP" || strategy == "_HYBRID_SHARD_ZERO2";
  if (!whole && !kept && strategy != "NO_SHARD")
    reading.in.fail(kFsdp + "sharding_strategy", "found {}, needs FULL_SHARD, SHARD_GRAD_OP, NO_SHARD or HYBRID_SHARD",
                    strategy);
  l.reshard_after_forward = !kept;
  if (strategy == "NO_SHARD") l.replicate *= std::exchange(l.shard, 1);
  reading.run.pure_reduction = reading.in.text(kFsdp + "mixed_precision", "DEFAULT") == "PURE";
  if (reading.run.lora && reading.run.pure_reduction) {
    reading.assume("{}mixed_precision: found PURE, taken as DEFAULT: gradients of adapters are summed in fp32", kFsdp);
    reading.run.pure_reduction = false;
  }
  l.offload_activations = reading.in.boolean(kFsdp + "activation_cpu_offload", false);
}

void write_foundry_loader(RecipeDraft& draft) {
  const RunSpec& run = draft.run;
  Settings& out = draft.out;
  out.put("tokenizer.name", "./tokenizer");
  out.put("tokenizer.kwargs.model_max_length", run.seq);
  out.put("train_loader.name", run.dataset.finetuning ? "finetuning" : "text");
  write_foundry_data(draft);
  if (const char* key = "model.attn_config.attn_uses_sequence_id"; run.dataset.packs() && out.has(key))
    out.put(key, true);
  out.put("train_loader.drop_last", true);
  out.put("train_loader.num_workers", 8);
}

void write_foundry(RecipeDraft& draft) {
  const RunSpec& run = draft.run;
  refuse_what_foundry_has_not(run);
  Settings& out = draft.out;
  out.put("run_name", run.name);
  if (run.microbatch_auto)
    out.put("device_train_microbatch_size", "auto");
  else
    out.put("device_train_microbatch_size", even_microbatch(run));
  write_foundry_evaluation(draft);
  out.put("accumulate_train_batch_on_tokens", true);
  out.put("precision", precision_word(run));
  write_rows(kFoundryRows, draft);
  write_foundry_model(draft);
  write_foundry_layout(draft);
  write_foundry_optimizer(draft);
  out.put("algorithms.gradient_clipping.clipping_type", "norm");
  write_foundry_loader(draft);
  write_foundry_loggers(draft);
  if (run.save) out.put("save_folder", run.save_folder.empty() ? "./checkpoints" : run.save_folder);
  out.put("save_interval",
          fmt::format("{}ba", run.save_interval > 0 ? run.save_interval : std::max<std::int64_t>(1, run.steps)));
  if (!run.export_path.empty()) {
    out.put("callbacks.hf_checkpointer.save_folder", run.export_path);
    out.put("callbacks.hf_checkpointer.precision", run.export_precision == Precision::fp32 ? "float32" : "bfloat16");
    out.put("callbacks.hf_checkpointer.save_interval", "1dur");
  }
  if (!run.load_path.empty()) out.put("load_path", run.load_path);
  draft.why["scheduler.first_step"] = "Composer counts batches from 0: the first step of a warm-up has rate 0";
  draft.why["fsdp_config.gradient_reduction"] = "Composer's FSDP reduces in every microbatch";
  draft.why["precision"] = "it has fp32, amp_fp16, amp_bf16 and amp_fp8";
  draft.why["train_loader"] = "a path stands for it";
  draft.why["loggers.prometheus"] = "it has no such logger";
  draft.why["fsdp_config.token_dispatcher"] = "MegaBlocks exchanges rows through NCCL";
  draft.why["fsdp_config.cuda_graphs"] = "it records none";
  draft.why["loss_chunks"] = "it computes the loss of a microbatch at once";
  draft.names_data = !run.dataset.empty();
  if (run.save)
    draft.not_expressed.emplace_back(
        "checkpoints: simulated as written while training goes on; Composer writes them while it waits, and uploads "
        "them afterwards");
  const auto [nodes, gpus] = nodes_and_gpus(draft);
  draft.command = fmt::format("composer -n {} train.py recipe.yaml", gpus);
  if (nodes > 1)  // the number of a node is its own
    draft.command = fmt::format(
        "bash -c 'composer -n {} --world_size {} --base_rank $((SLURM_NODEID * {})) --node_rank $SLURM_NODEID "
        "--master_addr $head_node --master_port 29500 train.py recipe.yaml'",
        gpus, run.layout.world(), gpus);
  draft.next_step = fmt::format("{} in LLM Foundry's scripts/train", launch_of(draft).command);
}

void read_foundry_batch(RecipeReading& reading) {
  RunSpec& run = reading.run;
  const std::string key = "device_train_microbatch_size";
  if (reading.in.text(key, "auto") == "auto") {
    run.microbatch_auto = true;
    run.layout.microbatch = 1;
  } else {
    run.layout.microbatch = reading.in.integer(key, 1, 1);
  }
  if (run.global_batch == 0) reading.in.fail("global_train_batch_size", "found none, needs sequences a step");
  if (run.seq == 0) reading.in.fail("max_seq_len", "found none, needs tokens a sequence");
}

/// Limits the microbatch to a rank's share of the batch, as LLM Foundry does (utils/config_utils.py).
void fit_foundry_microbatch(RecipeReading& reading) {
  RunSpec& run = reading.run;
  const std::int64_t sequences = run.global_batch / run.layout.data_ranks();
  if (sequences < 1 || run.layout.microbatch <= sequences) return;
  reading.assume("device_train_microbatch_size: found {}, taken as {}, the sequences that a rank has",
                 run.layout.microbatch, sequences);
  run.layout.microbatch = sequences;
}

/// Inserts the run's name where Composer does.
std::string named(std::string folder, const RunSpec& run) {
  const std::string name = "{run_name}";
  if (const std::size_t at = folder.find(name); at != std::string::npos) folder.replace(at, name.size(), run.name);
  return folder;
}

void read_foundry(RecipeReading& reading) {
  RunSpec& run = reading.run;
  reading.in.resolve_references();
  run.name = reading.in.text("run_name", run.name);
  run.optimizer.clip_norm = 0;
  run.autoresume = false, run.keep_checkpoints = -1;
  read_rows(kFoundryRows, reading);
  read_foundry_batch(reading);
  read_foundry_model(reading);
  read_foundry_layout(reading);
  fit_foundry_microbatch(reading);
  read_foundry_recompute(reading);
  set_precision(run, reading.in.text("precision", "amp_bf16"));
  read_foundry_data(reading);
  const FoundryClock clock(reading);
  run.steps = clock.steps();
  read_foundry_optimizer(reading, clock);
  read_foundry_evaluation(reading, clock);
  read_foundry_loggers(reading);
  run.save = reading.in.has("save_folder");
  const std::string place = run.save ? reading.in.text("save_folder", "") : "";
  if (place.starts_with("s3://"))
    run.save_folder = named(place, run);
  else if (!place.empty())
    reading.ignored.push_back(fmt::format("save_folder: found {}; checkpoints lie in the output folder", place));
  const std::int64_t interval = clock.whole_batches("save_interval", 1000);
  run.save_interval = run.save && interval < run.steps ? interval : 0;
  if (run.keep_checkpoints == 0) run.keep_checkpoints = -1;
  run.load_path = reading.in.text("load_path", run.load_path);
  if (run.load_path.empty()) reading.in.mark_read("load_weights_only");  // there is nothing to load
  run.export_path = named(reading.in.text("callbacks.hf_checkpointer.save_folder", ""), run);
  if (reading.in.text("callbacks.hf_checkpointer.precision", "float32") == "bfloat16")
    run.export_precision = Precision::bf16;
  read_switches(kFoundrySwitches, reading);
  account_for_foundry_keys(reading);
}

Settings parse_foundry(const std::string& text, const std::string& origin, const RecipeSource&) {
  return settings_from_yaml(text, origin, {"eval_loader", "eval_loaders"});
}

}  // namespace

const RecipeTranslator kLlmFoundry{
    "LLM Foundry 0.22.0", "recipe.yaml", false,          write_foundry,        read_foundry,
    settings_to_yaml,     parse_foundry, "optimizer.lr", "scheduler.t_warmup", "train_loader.dataset and tokenizer"};

}  // namespace wt
