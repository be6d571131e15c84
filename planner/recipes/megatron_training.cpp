// Batches, steps, optimizer and saves as fields of Megatron's trainers.

#include <algorithm>
#include <cmath>

#include "planner/recipes/megatron.hpp"

namespace wt {
namespace {

const std::vector<RecipeRow> kTrainingRows{
    {"seq_length", +[](RunSpec& r) { return &r.seq; }, 1},
    {"train_iters", +[](RunSpec& r) { return &r.steps; }},
    {"lr", +[](RunSpec& r) { return &r.optimizer.lr; }},
    {"lr_warmup_iters", RecipeRow::Steps{+[](RunSpec& r) { return &r.optimizer.warmup_steps; }}},
    {"adam_beta1", +[](RunSpec& r) { return &r.optimizer.beta1; }},
    {"adam_beta2", +[](RunSpec& r) { return &r.optimizer.beta2; }},
    {"adam_eps", +[](RunSpec& r) { return &r.optimizer.eps; }},
    {"weight_decay", +[](RunSpec& r) { return &r.optimizer.weight_decay; }},
    {"clip_grad", +[](RunSpec& r) { return &r.optimizer.clip_norm; }},
    {"seed", +[](RunSpec& r) { return &r.seed; }}};

void read_batch(RecipeReading& reading, MegatronKeys& keys) {
  RunSpec& run = reading.run;
  if (!keys.has("micro_batch_size"))
    keys.fail("micro_batch_size", "found none, needs sequences a microbatch, as Megatron does itself; add it");
  run.layout.microbatch = keys.integer("micro_batch_size", 1, 1);
  run.global_batch = keys.integer("global_batch_size", run.layout.microbatch * run.layout.data_ranks(), 1);
  if (reading.seq_len > 0 && keys.has("seq_length") && run.seq != reading.seq_len)
    keys.fail("seq_length", "found {}, and {} by --seq-len; needs one number", run.seq, reading.seq_len);
  if (reading.seq_len > 0) run.seq = reading.seq_len;
  if (run.seq < 1) keys.fail("seq_length", "found none, needs tokens a sequence; give --seq-len N");
}

/// Reads lengths in samples, an alternative to steps, and a warm-up as a share of the run.
void read_samples(RecipeReading& reading, MegatronKeys& keys) {
  if (!keys.flags()) return;
  RunSpec& run = reading.run;
  const auto steps = [&](const char* flag, std::int64_t fallback) {
    return reading.in.has(flag) ? reading.in.integer(flag, 0) / run.global_batch : fallback;
  };
  run.steps = steps("train-samples", run.steps);
  run.optimizer.warmup_steps =
      static_cast<double>(steps("lr-warmup-samples", static_cast<std::int64_t>(run.optimizer.warmup_steps)));
  if (reading.in.has("lr-warmup-fraction"))
    run.optimizer.warmup_steps =
        std::floor(reading.in.number("lr-warmup-fraction", 0) * static_cast<double>(run.steps));
}

const RecipeWords<ScheduleKind> kDecays{
    {"cosine", ScheduleKind::cosine}, {"linear", ScheduleKind::linear}, {"constant", ScheduleKind::constant}};

void read_decay(RecipeReading& reading, MegatronKeys& keys) {
  RunSpec& run = reading.run;
  const std::string word = keys.text("lr_decay_style", keys.flags() ? "linear" : "cosine");
  const auto kind = meaning_of(kDecays, word);
  run.optimizer.schedule = kind.value_or(ScheduleKind::cosine);
  if (!kind) reading.learning.push_back(fmt::format("{}: found {}, taken as cosine", keys.key("lr_decay_style"), word));
  std::int64_t steps = keys.integer("lr_decay_iters", run.steps);
  if (keys.flags() && reading.in.has("lr-decay-samples"))
    steps = reading.in.integer("lr-decay-samples", 0) / run.global_batch;
  if (steps != run.steps && run.optimizer.schedule != ScheduleKind::constant)
    run.optimizer.schedule_steps = static_cast<double>(steps);
}

void read_optimizer_kind(RecipeReading& reading, MegatronKeys& keys) {
  OptimizerSpec& o = reading.run.optimizer;
  const std::string kind = keys.text("optimizer", "adam");
  if (kind == "muon" || kind == "dist_muon")
    o.kind = OptimizerKind::muon;
  else if (kind != "adam")
    reading.assume("{}: found {}, taken as adam", keys.key("optimizer"), kind);
  if (keys.flag("optimizer_cpu_offload", false)) o.offload_fraction = keys.number("optimizer_offload_fraction", 1);
}

/// A job goes on from its own checkpoints if it loads from where it saves, as recipes of Megatron-Bridge do.
void read_resume(RecipeReading& reading, MegatronKeys& keys) {
  RunSpec& run = reading.run;
  const std::string saved = keys.text("save", ""), loaded = keys.text("load", "");
  const bool recipes = !keys.flags() && !keys.mentions("load"), other = !loaded.empty() && loaded != saved;
  if (other)
    reading.ignored.push_back(
        fmt::format("{}: found {}; convert its weights, and name them in load_path", keys.key("load"), loaded));
  run.autoresume = !run.save || recipes || (!loaded.empty() && !other);
}

}  // namespace

void write_megatron_training(RecipeDraft& draft, MegatronKeys keys) {
  const RunSpec& run = draft.run;
  const OptimizerSpec& o = run.optimizer;
  keys.put("micro_batch_size", even_microbatch(run));
  keys.put("global_batch_size", run.global_batch);
  write_megatron_rows(kTrainingRows, draft, keys);
  keys.put("min_lr", twelve_digits(o.lr * o.final_lr_fraction));
  keys.put("lr_decay_style", word_of(kDecays, o.schedule, "cosine"));
  keys.put("lr_decay_iters", o.schedule_steps > 0 ? static_cast<std::int64_t>(o.schedule_steps) : run.steps);
  keys.put("eval_iters", 0);
  keys.put("optimizer", o.kind == OptimizerKind::muon ? "muon" : "adam");
  const bool offload = o.offload_fraction > 0;
  keys.put_flag("optimizer_cpu_offload", offload);
  keys.put_flag("use_precision_aware_optimizer", offload);
  if (offload) keys.put("optimizer_offload_fraction", o.offload_fraction);
  keys.put_flag("grad_reduce_in_fp32", !run.pure_reduction);
  const char* const folder = "checkpoints";
  keys.put_if(run.save && run.autoresume, "load", folder);
  if (run.save && !run.autoresume && !keys.flags()) keys.put("load", nullptr);  // recipes name a folder
  if (run.save) {
    keys.put("save", folder);
    keys.put("save_interval", run.save_interval > 0 ? run.save_interval : std::max<std::int64_t>(1, run.steps));
  } else if (!keys.flags()) {
    keys.put("save", nullptr);
  }
  constexpr double kMinute = 60;
  keys.put("distributed_timeout_minutes", static_cast<std::int64_t>(std::ceil(run.dist_timeout_s / kMinute)));
  draft.why["dist_timeout"] = "it is a number of minutes";
  draft.why["save_num_checkpoints_to_keep"] = "old checkpoints are not deleted by number";
}

void read_megatron_training(RecipeReading& reading, MegatronKeys keys) {
  RunSpec& run = reading.run;
  if (keys.flags()) run.optimizer.beta2 = 0.999, run.optimizer.weight_decay = 0.01, run.seed = 1234;  // arguments.py
  read_megatron_rows(kTrainingRows, reading, keys);
  read_batch(reading, keys);
  read_samples(reading, keys);
  run.optimizer.final_lr_fraction = recipe_ratio(keys.number("min_lr", 0), run.optimizer.lr);
  read_decay(reading, keys);
  read_optimizer_kind(reading, keys);
  run.pure_reduction = !keys.flag("grad_reduce_in_fp32", true);
  run.save = keys.has("save") || (!keys.flags() && !keys.mentions("save"));
  const std::int64_t interval = keys.integer("save_interval", 0, 1);
  run.save_interval = run.save && interval < run.steps ? interval : 0;
  read_resume(reading, keys);
  constexpr double kMinute = 60;
  run.dist_timeout_s = kMinute * static_cast<double>(keys.integer("distributed_timeout_minutes", 10, 1));
}

}  // namespace wt
