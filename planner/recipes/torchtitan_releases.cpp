// Words of torchtitan's earlier releases under the names that they have in 0.2.2: config_manager.py of 0.1.0 and the
// commits before it, job_config.py of 0.2.0.
#include "planner/recipes/torchtitan.hpp"

namespace wt {
namespace {

struct Renamed {
  const char* old;
  const char* now;  ///< both may end with a dot: all keys below
};
const std::vector<Renamed> kRenamed{
    {"training.batch_size", "training.local_batch_size"},
    {"training.compile", "compile.enable"},
    {"training.deterministic", "debug.deterministic"},
    {"training.seed", "debug.seed"},
    {"training.debug_moe_force_load_balance", "debug.moe_force_load_balance"},
    {"training.warmup_steps", "lr_scheduler.warmup_steps"},
    {"training.data_parallel_degree", "parallelism.data_parallel_shard_degree"},
    {"training.data_parallel_replicate_degree", "parallelism.data_parallel_replicate_degree"},
    {"training.data_parallel_shard_degree", "parallelism.data_parallel_shard_degree"},
    {"training.tensor_parallel_degree", "parallelism.tensor_parallel_degree"},
    {"experimental.context_parallel_degree", "parallelism.context_parallel_degree"},
    {"experimental.context_parallel_rotate_method", "parallelism.context_parallel_rotate_method"},
    {"experimental.enable_async_tensor_parallel", "parallelism.enable_async_tensor_parallel"},
    {"experimental.pipeline_parallel_degree", "parallelism.pipeline_parallel_degree"},
    {"experimental.pipeline_parallel_schedule", "parallelism.pipeline_parallel_schedule"},
    {"checkpoint.enable_checkpoint", "checkpoint.enable"},
    {"checkpoint.initial_load_model_weights_only", "checkpoint.initial_load_model_only"},
    {"checkpoint.last_save_model_weights_only", "checkpoint.last_save_model_only"},
    {"checkpoint.model_weights_only", "checkpoint.last_save_model_only"},
    {"lr_scheduler.lr_min", "lr_scheduler.min_lr_factor"},
    {"memory_estimation.enabled", "memory_estimation.enable"},
    {"job.print_args", "job.print_config"},
    {"model.tokenizer_path", "model.hf_assets_path"},
    {"float8.", "quantize.linear.float8."},
    {"mx.", "quantize.linear.mx."}};
const std::vector<Renamed> kRenamedConverters{{"float8", "quantize.linear.float8"}, {"mx", "quantize.linear.mx"}};

void rename_converters(Settings& settings) {
  const char* const key = "model.converters";
  if (!settings.has(key)) return;
  Settings::Value list = settings.peek(key);
  if (!list.is_array()) list = Settings::Value::array({list});
  for (Settings::Value& word : list)
    for (const Renamed& one : kRenamedConverters)
      if (word == one.old) word = one.now;
  settings.put(key, list);
}

}  // namespace

void rename_titan_words(Settings& settings) {
  for (const Renamed& one : kRenamed) settings.rename(one.old, one.now);
  rename_converters(settings);
  // Before 0.1.0 a flag chose between two implementations.
  if (const char* const fused = "optimizer.fused"; settings.has(fused)) {
    settings.put(fused, settings.peek(fused) == true ? "fused" : "foreach");
    settings.rename(fused, "optimizer.implementation");
  }
}

}  // namespace wt
