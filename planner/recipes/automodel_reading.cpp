// Reads a job of NeMo Automodel 0.7.0: recipes/_dist_utils.py, components/distributed, recipes/llm/train_ft.py.
#include <algorithm>
#include <utility>

#include "configs/base/text.hpp"
#include "planner/recipes/automodel.hpp"
#include "planner/recipes/job_command.hpp"

namespace wt {
namespace {

/// Words of earlier releases: sections of their own for the pipeline and for the parallelizer of experts.
void rename_automodel_words(Settings& settings) {
  settings.rename("autopipeline.", "distributed.pipeline.");
  settings.rename("parallelizer.activation_checkpointing", "distributed.activation_checkpointing");
  settings.rename("parallelizer._target_", "distributed.moe._target_");
  settings.rename("parallelizer.", "distributed.moe.");
  settings.rename("distributed_config.", "distributed.");
  settings.rename("model.config.torch_dtype", "model.torch_dtype");
}

/// A command line's job with its overrides.
Settings settings_of_command(const std::string& text, const std::string& origin, const RecipeSource& source) {
  const JobCommand command = job_command(text, origin, source);
  Settings out = settings_from_pyyaml(text_of_job(command, origin, source), command.file);
  put_overrides(command, out);
  if (command.gpus > 0) out.put("launch.gpus", command.gpus);
  return out;
}

/// Keys that only hold values for others: "_name" by the convention of its recipes.
bool is_aside(const std::string& key) { return key.starts_with('_') || key.starts_with("validation_dataset_"); }

/// "Interleaved_1F1B" as PyTorch's names are compared: letters and digits alone.
std::string schedule_word(const std::string& word) {
  std::string out = lower(word);
  std::erase_if(out, [](char c) { return c == '_' || c == '-'; });
  return out;
}

void read_automodel_pipeline(RecipeReading& reading) {
  Layout& l = reading.run.layout;
  if (l.pipeline == 1) return;
  const std::string pipeline = std::string(kAutomodelLayout) + "pipeline.";
  const std::string word = reading.in.text(pipeline + "pp_schedule", "1f1b"), schedule = schedule_word(word);
  const bool single = schedule == "1f1b" || schedule == "gpipe";
  if (schedule == "dualpipev")
    l.schedule = Schedule::dualpipe_v;
  else if (schedule != "1f1b" && schedule != "interleaved1f1b")
    reading.assume("{}pp_schedule: found {}, taken as {}", pipeline, word, single ? "1f1b" : "interleaved1f1b");
  const std::int64_t layers = reading.run.model.layers, each = reading.in.integer(pipeline + "layers_per_stage", 0, 1);
  l.virtual_stages = single ? 1 : 2;
  if (each > 0 && !single) l.virtual_stages = std::max<std::int64_t>(2, (layers + each - 1) / each / l.pipeline);
  if (l.schedule == Schedule::dualpipe_v) l.virtual_stages = 2;
}

/// Shards weights (3), gradients (2) or the optimizer's state (1), or nothing (0).
void read_megatron_fsdp(RecipeReading& reading) {
  Layout& l = reading.run.layout;
  const std::string key = std::string(kAutomodelLayout) + "zero_dp_strategy";
  const std::int64_t stage = reading.in.integer(key, 3, 0);
  if (stage > 3) reading.in.fail(key, "found {}, needs 0 to 3", stage);
  l.reshard_after_forward = stage == 3;
  l.reduce_every_microbatch = stage >= 2;
  if (stage == 0) l.replicate *= std::exchange(l.shard, 1);
  for (const char* overlap : {"overlap_grad_reduce", "overlap_param_gather"})
    if (const std::string word = std::string(kAutomodelLayout) + overlap; !reading.in.boolean(word, true))
      reading.assume("{}: found false, taken as true: transfers overlap with products", word);
}

void read_automodel_layout(RecipeReading& reading) {
  Layout& l = reading.run.layout;
  const std::string here = kAutomodelLayout;
  const std::int64_t others = l.context * l.tensor * l.pipeline;
  // null and numbers below 1 stand for all other GPUs (components/distributed/mesh_utils.py).
  const std::int64_t said = std::max<std::int64_t>(0, reading.in.integer(here + "dp_size", 0, -1));
  const std::int64_t launched = reading.in.integer("launch.gpus", 0);
  if (launched > 0 && said > 0 && launched != said * others)
    reading.in.fail(here + "dp_size", "found degrees of {} GPUs, and a command that starts {}; needs one number",
                    said * others, launched);
  const std::int64_t world = reading.world(said > 0 ? said * others : launched, here + "dp_size");
  const std::int64_t data = reading.data_ranks(world, others, here + "dp_size") * l.context;
  const std::string strategy = lower(reading.in.text(here + "strategy", "fsdp2"));
  const bool ddp = strategy == "ddp", megatron = strategy.starts_with("m");
  if (!ddp && strategy != "fsdp2" && strategy != "megatron_fsdp" && strategy != "megatron-fsdp" && strategy != "mfsdp")
    reading.in.fail(here + "strategy", "found {}, needs fsdp2, megatron_fsdp or ddp", strategy);
  l.replicate = ddp ? data / l.context : reading.in.integer(here + "dp_replicate_size", 1, 1);
  if (data / l.context % l.replicate != 0)
    reading.in.fail(here + "dp_replicate_size", "found {}, needs a divisor of dp_size = {}", l.replicate,
                    data / l.context);
  l.shard = data / l.replicate;
  // A word for all layers wins; experts' own default is to keep weights.
  const bool experts = reading.in.boolean(here + "moe.reshard_after_forward", false);
  l.reshard_after_forward =
      reading.in.boolean(here + "reshard_after_forward", l.pipeline == 1 && (l.expert == 1 || experts));
  l.reduce_every_microbatch = !reading.in.boolean(here + "defer_fsdp_grad_sync", true);
  if (megatron) read_megatron_fsdp(reading);
  if (l.pipeline > 1 && std::exchange(l.reshard_after_forward, false))
    reading.assume(
        "{}reshard_after_forward: found true with a pipeline, taken as false: weights are gathered once a step, not in "
        "both passes of every microbatch, and stay",
        here);
  if (l.pipeline > 1) l.reduce_every_microbatch = false;
  l.sequence_parallel = reading.in.boolean(here + "sequence_parallel", false) && l.tensor > 1;
  l.whole_experts = l.tensor > 1 && reading.run.model.experts > 0;
  if (l.whole_experts && !l.sequence_parallel) {
    l.sequence_parallel = true;
    reading.assume("{}sequence_parallel: found none, taken as set: our tensor ranks need it with experts", here);
  }
  const AttentionSpec& attention = reading.run.model.attention;
  l.context_ring = l.context > 1 && !attention.any_local() && !attention.sinks;
  if (l.context > 1 && !l.context_ring)
    reading.assume("{}cp_size: found a ring with attention windows or sinks, taken as gathered keys and values", here);
  const std::int64_t tensor = l.whole_experts ? l.tensor : 1;
  if (l.expert > 1 && l.shard * tensor % l.expert != 0) {
    reading.assume("{}ep_size: found {} over replicas of {} ranks, taken as one replica of all", here, l.expert,
                   l.shard * tensor);
    l.shard *= std::exchange(l.replicate, 1);
    if (l.shard * tensor % l.expert != 0)
      reading.in.fail(here + "ep_size", "found {}, needs a divisor of dp_size x cp_size x tp_size = {}", l.expert,
                      l.shard * l.tensor);
  } else if (l.expert > 1 && l.replicate > 1) {
    reading.assume("{}ep_size: found experts that are dealt over replicas, taken as experts of each replica", here);
  }
}

void read_automodel_recompute(RecipeReading& reading) {
  const std::string key = std::string(kAutomodelLayout) + "activation_checkpointing";
  const std::string word = lower(reading.in.text(key, "false"));
  const auto is = [&](const std::vector<std::string>& words) { return std::ranges::find(words, word) != words.end(); };
  if (is({"true", "full", "on", "enabled", "yes"})) {
    reading.run.layout.recompute = Recompute::block;
  } else if (word == "selective") {
    reading.run.layout.recompute = recompute_of({Module::products});
    if (reading.run.model.experts > 0)
      reading.assume("{}: found selective; there, every second product of experts is kept, too", key);
  } else if (!is({"false", "none", "off", "disabled", "no"})) {
    reading.in.fail(key, "found {}, needs true, false, full or selective", word);
  }
}

/// Sequences have the caller's length, if the file leaves it to the data.
void read_automodel_length(RecipeReading& reading) {
  RunSpec& run = reading.run;
  if (run.seq > 0 && reading.seq_len > 0 && run.seq != reading.seq_len)
    reading.in.fail("dataset.seq_length", "found {}, and {} by --seq-len; needs one number", run.seq, reading.seq_len);
  if (run.seq == 0) run.seq = reading.seq_len;
  if (run.seq == 0)
    reading.in.fail("dataset.seq_length",
                    "found none, needs tokens a sequence, which its examples decide; give --seq-len N");
}

void read_automodel_training(RecipeReading& reading) {
  RunSpec& run = reading.run;
  const std::int64_t local = reading.in.integer("step_scheduler.local_batch_size", 1, 1);
  run.layout.microbatch = run.layout.pipeline > 1
                              ? reading.in.integer(std::string(kAutomodelLayout) + "pipeline.pp_microbatch_size", 1, 1)
                              : local;
  run.global_batch = reading.in.integer("step_scheduler.global_batch_size", 32, 1);
  if (const std::int64_t once = local * run.layout.data_ranks(); run.global_batch % once != 0)
    reading.in.fail("step_scheduler.global_batch_size", "found {}, needs a multiple of local_batch_size x dp_size = {}",
                    run.global_batch, once);
  for (const char* key :
       {"packed_sequence.packed_sequence_size", "dataset.seq_len", "dataset.seq_length", "dataset.max_length"})
    if (const std::int64_t seq = reading.in.integer(key, 0, 0); run.seq == 0) run.seq = seq;
  read_automodel_length(reading);
  const Settings::Value betas = reading.in.value("optimizer.betas");
  if (betas.is_array() && betas.size() == 2 && betas[0].is_number() && betas[1].is_number())
    run.optimizer.beta1 = betas[0], run.optimizer.beta2 = betas[1];
  run.optimizer.final_lr_fraction = recipe_ratio(reading.in.number("lr_scheduler.min_lr", 0), run.optimizer.lr);
  const std::string decay = reading.in.text("lr_scheduler.lr_decay_style", "cosine");
  if (decay == "linear" || decay == "constant")
    run.optimizer.schedule = decay == "linear" ? ScheduleKind::linear : ScheduleKind::constant;
  else if (decay != "cosine")
    reading.learning.push_back(fmt::format("lr_scheduler.lr_decay_style: found {}, taken as cosine", decay));
  const std::string optimizer = reading.in.text("optimizer._target_", "torch.optim.AdamW");
  if (!optimizer.ends_with("AdamW") && !optimizer.ends_with("FusedAdam"))
    reading.assume("optimizer._target_: found {}, taken as AdamW", optimizer);
  run.save = reading.in.boolean("checkpoint.enabled", true);
  const std::int64_t interval = reading.in.integer("step_scheduler.ckpt_every_steps", 100, 1);
  const std::int64_t epochs = reading.in.integer("step_scheduler.num_epochs", 10, 0);
  if (!reading.in.has("step_scheduler.max_steps")) {
    run.steps = 1;
    reading.assume("step_scheduler.max_steps: found none, and {} epochs of data that are not here; taken as 1 step",
                   epochs);
  }
  run.save_interval = run.save && interval < run.steps ? interval : 0;
  run.keep_checkpoints = reading.in.integer("checkpoint.max_recent_checkpoints", -1, 1);
  constexpr double kMinute = 60;
  run.dist_timeout_s = kMinute * static_cast<double>(reading.in.integer("dist_env.timeout_minutes", 1, 1));
}

void read_automodel_dispatcher(RecipeReading& reading) {
  RunSpec& run = reading.run;
  const std::string key = "model.backend.dispatcher";
  const bool said = reading.in.has(key) || reading.in.has("model.backend.enable_deepep");
  const bool deepep = reading.in.boolean("model.backend.enable_deepep", true);
  const std::string word = reading.in.text(key, deepep ? "deepep" : "torch");
  const auto dispatcher = meaning_of(kAutomodelDispatchers, word);
  if (run.layout.expert == 1) return;
  run.layout.dispatcher = dispatcher.value_or(Dispatcher::deepep);
  if (!said) reading.assume("{}: found none, which is deepep where that is installed; taken as deepep", key);
  if (!dispatcher) reading.assume("{}: found {}, taken as deepep", key, word);
}

}  // namespace

Settings parse_automodel(const std::string& text, const std::string& origin, const RecipeSource& source) {
  const bool named = origin.ends_with(".yaml") || origin.ends_with(".yml");
  const bool command = !named && is_automodel_command(text);
  const Settings all = command ? settings_of_command(text, origin, source) : settings_from_pyyaml(text, origin);
  Settings out(origin);
  for (const std::string& note : all.notes()) out.note(note);
  for (const Settings::Entry& entry : all.entries()) {
    if (is_aside(entry.key)) continue;
    const bool none = entry.value == "none" || entry.value == "None";
    const bool word = entry.key.ends_with("activation_checkpointing");  // there "none" is a word of its own
    out.put(entry.key, none && !word ? Settings::Value() : entry.value);
  }
  rename_automodel_words(out);
  refuse_other_recipes(out);
  return out;
}

void read_automodel(RecipeReading& reading) {
  RunSpec& run = reading.run;
  read_automodel_model(reading);
  run.seed = 42;  // recipes/llm/train_ft.py
  run.seed = static_cast<std::uint64_t>(reading.in.integer("rng.seed", 42));
  run.optimizer.beta2 = 0.999;  // torch.optim.AdamW
  run.optimizer.weight_decay = 0.01;
  read_rows(kAutomodelRows, reading);
  read_automodel_layout(reading);
  read_automodel_pipeline(reading);
  read_automodel_recompute(reading);
  read_automodel_formats(reading);
  read_automodel_dispatcher(reading);
  if (run.model.experts > 0 && reading.in.boolean("model.backend.fake_balanced_gate", false))
    run.model.router.forced = RouterSpec::Forced::balanced;
  read_automodel_training(reading);
  read_automodel_peft(reading);
  read_switches(kAutomodelSwitches, reading);
}

}  // namespace wt
