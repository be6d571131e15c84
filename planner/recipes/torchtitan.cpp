// torchtitan 0.2.2, the last release with TOML: torchtitan/config/job_config.py, distributed/parallel_dims.py and
// distributed/pipeline_parallel.py. Its shard degree excludes context parallelism. Its expert degree divides shard x
// context x tensor, as ours does.

#include <algorithm>
#include <cmath>

#include "configs/base/text.hpp"
#include "planner/recipes/job_command.hpp"
#include "planner/recipes/launch.hpp"
#include "planner/recipes/model_names.hpp"
#include "planner/recipes/torchtitan.hpp"
#include "planner/recipes/torchtitan_jobs.hpp"

namespace wt {
namespace {

const std::vector<RecipeRow> kTitanRows{
    {"training.seq_len", +[](RunSpec& r) { return &r.seq; }, 1},
    {"training.steps", +[](RunSpec& r) { return &r.steps; }},
    {"training.max_norm", +[](RunSpec& r) { return &r.optimizer.clip_norm; }},
    {"parallelism.data_parallel_replicate_degree", +[](RunSpec& r) { return &r.layout.replicate; }, 1},
    {"parallelism.context_parallel_degree", +[](RunSpec& r) { return &r.layout.context; }, 1},
    {"parallelism.tensor_parallel_degree", +[](RunSpec& r) { return &r.layout.tensor; }, 1},
    {"parallelism.pipeline_parallel_degree", +[](RunSpec& r) { return &r.layout.pipeline; }, 1},
    {"parallelism.expert_parallel_degree", +[](RunSpec& r) { return &r.layout.expert; }, 1},
    {"optimizer.lr", +[](RunSpec& r) { return &r.optimizer.lr; }},
    {"optimizer.beta1", +[](RunSpec& r) { return &r.optimizer.beta1; }},
    {"optimizer.beta2", +[](RunSpec& r) { return &r.optimizer.beta2; }},
    {"optimizer.eps", +[](RunSpec& r) { return &r.optimizer.eps; }},
    {"optimizer.weight_decay", +[](RunSpec& r) { return &r.optimizer.weight_decay; }},
    {"lr_scheduler.warmup_steps", RecipeRow::Steps{+[](RunSpec& r) { return &r.optimizer.warmup_steps; }}},
    {"lr_scheduler.min_lr_factor", +[](RunSpec& r) { return &r.optimizer.final_lr_fraction; }},
    {"debug.seed", +[](RunSpec& r) { return &r.seed; }}};

const RecipeWords<Dispatcher> kTitanDispatchers{{"standard", Dispatcher::alltoall},
                                                {"deepep", Dispatcher::deepep},
                                                {"hybridep", Dispatcher::hybridep},
                                                {"minimal_async_ep", Dispatcher::alltoall}};

/// Defaults of job_config.py.
const std::vector<RecipeSwitch> kTitanSwitches{
    {"compile.enable", true, false, "blocks are compiled, one by one"},
    {"compile.components", {"model", "loss"}, {"model", "loss"}, "blocks and loss are compiled"},
    {"optimizer.implementation", "fused", "fused", "the optimizer is one kernel"},
    {"training.enable_cpu_offload", false, false, "state stays on the GPU"},
    {"parallelism.enable_async_tensor_parallel", false, false, "products wait for what tensor ranks send",
     +[](const RunSpec& r) { return r.layout.tensor > 1; }},
    {"parallelism.disable_loss_parallel", false, false, "logits are cut over tensor ranks",
     +[](const RunSpec& r) { return r.layout.tensor > 1; }},
    {"parallelism.context_parallel_load_balancer", "headtail", "headtail", "a rank has two pieces of each sequence",
     +[](const RunSpec& r) { return r.layout.context > 1; }},
    {"checkpoint.async_mode", "async", "disabled", "training goes on while a checkpoint is written",
     +[](const RunSpec& r) { return r.save; }}};

/// The defaults of job_config.py.
void set_titan_defaults(RunSpec& run) {
  run.seq = 2048, run.steps = 10000;
  run.optimizer = {.lr = 8e-4, .warmup_steps = 200, .final_lr_fraction = 0};
}

/// Sequences per step and per microbatch. With pipeline parallelism, a local batch contains all microbatches of a rank.
void write_titan_batch(RecipeDraft& draft) {
  const Layout& l = draft.run.layout;
  const std::int64_t all = draft.run.global_batch / l.data_ranks();
  draft.out.put("training.local_batch_size", l.pipeline > 1 ? all : even_microbatch(draft.run));
  draft.out.put("training.global_batch_size", draft.run.global_batch);
}

void read_titan_batch(RecipeReading& reading) {
  RunSpec& run = reading.run;
  const std::int64_t local = reading.in.integer("training.local_batch_size", 8, 1);
  run.layout.microbatch =
      run.layout.pipeline > 1 ? reading.in.integer("parallelism.pipeline_parallel_microbatch_size", 1, 1) : local;
  const std::int64_t said = reading.in.integer("training.global_batch_size", -1, -1),
                     once = local * run.layout.data_ranks();
  if (said > 0 && said % once != 0)
    reading.in.fail("training.global_batch_size",
                    "found {}, needs a multiple of local_batch_size x data-parallel degree = {}", said, once);
  run.global_batch = said > 0 ? said : once;
  if (run.layout.pipeline > 1 && run.global_batch > once)
    reading.assume("training.global_batch_size: found {} passes of the pipeline a step, taken as one",
                   run.global_batch / once);
}

void write_titan_saves(RecipeDraft& draft) {
  const RunSpec& run = draft.run;
  draft.out.put("checkpoint.enable", run.save);
  draft.out.put("checkpoint.interval",
                run.save_interval > 0 ? run.save_interval : std::max<std::int64_t>(1, run.steps));
  // 0 keeps all. torchtitan refuses 1, because it would delete the only checkpoint while it writes the next.
  draft.out.put("checkpoint.keep_latest_k",
                run.keep_checkpoints < 0 ? 0 : std::max<std::int64_t>(2, run.keep_checkpoints));
  draft.out.put("checkpoint.folder", "checkpoint");
  draft.why["save_num_checkpoints_to_keep"] = "it keeps two at least, or all";
  draft.why["autoresume"] = "it goes on from the newest checkpoint in its folder";
}

void read_titan_saves(RecipeReading& reading) {
  RunSpec& run = reading.run;
  run.save = reading.in.boolean("checkpoint.enable", false) && !reading.in.boolean("checkpoint.load_only", false);
  const std::int64_t interval = reading.in.integer("checkpoint.interval", 500, 1),
                     kept = reading.in.integer("checkpoint.keep_latest_k", 10, 0);
  run.save_interval = interval >= run.steps ? 0 : interval;
  run.keep_checkpoints = kept == 0 ? -1 : kept;
  if (!run.save) run.save_interval = 0, run.keep_checkpoints = 2;
}

void write_titan(RecipeDraft& draft) {
  const RunSpec& run = draft.run;
  const Layout& l = run.layout;
  draft.out.put("job.description", run.name);
  const ModelNames* names = names_of(run.model);
  const std::string name = names == nullptr ? "" : names->torchtitan;
  if (name.empty()) {
    draft.names_no_model = true;
    draft.not_expressed.push_back(
        fmt::format("model: found {}, which torchtitan 0.2.2 does not ship; register its shape as a flavor of its own",
                    run.model.name));
  } else {
    draft.out.put("model.name", name.substr(0, name.find('/')));
    draft.out.put("model.flavor", name.substr(name.find('/') + 1));
  }
  write_titan_batch(draft);
  write_rows(kTitanRows, draft);
  write_titan_formats(draft);
  draft.out.put("parallelism.data_parallel_shard_degree", l.shard / l.context);
  draft.out.put("parallelism.expert_tensor_parallel_degree", l.whole_experts ? 1 : l.tensor);
  draft.out.put("parallelism.fsdp_reshard_after_forward", l.reshard_after_forward ? "always" : "never");
  draft.out.put("parallelism.context_parallel_rotate_method", l.context_ring ? "alltoall" : "allgather");
  draft.out.put("parallelism.expert_parallel_comm_backend", sends_once(l.dispatcher) ? "deepep" : "standard");
  write_titan_pipeline(draft);
  draft.out.put("training.dataset", "c4_test");
  if (run.model.experts > 0)
    draft.out.put("debug.moe_force_load_balance", run.model.router.forced == RouterSpec::Forced::balanced);
  write_switches(kTitanSwitches, draft);
  draft.out.put("optimizer.name", "AdamW");
  draft.out.put("lr_scheduler.decay_type", run.optimizer.schedule == ScheduleKind::linear ? "linear" : "cosine");
  write_titan_recompute(draft);
  write_titan_saves(draft);
  draft.out.put("comm.train_timeout_seconds", static_cast<std::int64_t>(std::ceil(run.dist_timeout_s)));
  draft.why["fsdp_config.gradient_reduction"] = "it sums gradients in every microbatch, without a pipeline";
  draft.why["fsdp_config.token_dispatcher"] = "it has standard and deepep";
  draft.why["fsdp_config.sequence_parallel"] = "tensor ranks always cut norms, too";
  draft.why["fsdp_config.expert_tensor_parallel_degree"] =
      "experts that are not dealt over ranks are cut over tensor ranks";
  draft.why["fsdp_config.overlap_expert_exchange"] = "it overlaps exchanges with DualPipeV alone, without recompute";
  draft.why["fsdp_config.cuda_graphs"] = "it records none";
  draft.why["loss_chunks"] = "it computes the loss of a microbatch at once";
  draft.why["model.mtp_num_layers"] = "its flavors have no multi-token prediction";
  draft.why["optimizer.name"] = "it has Adam and AdamW";
  draft.command = torchrun_command(draft, "-m torchtitan.train --job.config_file job.toml");
  draft.next_step =
      fmt::format("NGPU={} COMM_MODE=fake_backend CONFIG_FILE=./job.toml ./run_train.sh (a dry run)", l.world());
}

void read_titan_parallelism(RecipeReading& reading) {
  Layout& l = reading.run.layout;
  const std::int64_t shard = reading.in.integer("parallelism.data_parallel_shard_degree", -1, -1);
  const std::int64_t others = l.replicate * l.context * l.tensor * l.pipeline;
  const std::string key = "parallelism.data_parallel_shard_degree";
  if (shard == 0) reading.in.fail(key, "found 0, needs -1 or a number from 1");
  const std::int64_t launched = reading.in.integer("launch.gpus", 0), said = shard > 0 ? shard * others : launched;
  if (launched > 0 && said != launched)
    reading.in.fail(key, "found degrees of {} GPUs, and a command that starts {}; needs one number", said, launched);
  const std::int64_t world = reading.world(said, key);
  l.shard = reading.data_ranks(world, others, key) * l.context;
  l.sequence_parallel = l.tensor > 1 && reading.in.boolean("parallelism.enable_sequence_parallel", true);
  const std::int64_t cut = reading.in.integer("parallelism.expert_tensor_parallel_degree", 1, 1);
  if (l.tensor > 1 && cut != 1 && cut != l.tensor)
    reading.in.fail("parallelism.expert_tensor_parallel_degree", "found {}, needs 1 or tensor_parallel_degree = {}",
                    cut, l.tensor);
  // Without expert parallelism the key has no effect, and tensor ranks cut experts (moe/moe.py, parallelize.py).
  l.whole_experts = l.tensor > 1 && l.expert > 1 && cut == 1 && reading.run.model.experts > 0;
  l.context_ring =
      reading.in.text("parallelism.context_parallel_rotate_method", "allgather") == "alltoall" && l.context > 1;
  const std::string reshard = reading.in.text("parallelism.fsdp_reshard_after_forward", "default");
  l.reshard_after_forward = reshard != "never";
  const std::string backend = reading.in.text("parallelism.expert_parallel_comm_backend", "standard");
  const auto dispatcher = meaning_of(kTitanDispatchers, backend);
  if (!dispatcher)
    reading.in.fail("parallelism.expert_parallel_comm_backend",
                    "found {}, needs standard, deepep or, from 0.3 on, hybridep", backend);
  if (backend == "minimal_async_ep")
    reading.assume("parallelism.expert_parallel_comm_backend: found minimal_async_ep, taken as an exchange by NCCL");
  l.dispatcher = l.expert > 1 ? *dispatcher : Dispatcher::alltoall;
  if (l.pipeline > 1 && reshard == "always")
    reading.assume(
        "parallelism.fsdp_reshard_after_forward: found always with a pipeline, taken as never: weights are gathered "
        "once a step, not in both passes of every microbatch, and stay");
}

/// The rate falls after the warm-up, or only in the run's last part. Time and memory do not depend on it.
void read_titan_decay(RecipeReading& reading) {
  const std::string decay = reading.in.text("lr_scheduler.decay_type", "linear");
  if (decay == "linear")
    reading.run.optimizer.schedule = ScheduleKind::linear;
  else if (decay != "cosine")
    reading.learning.push_back(fmt::format("lr_scheduler.decay_type: found {}, taken as cosine", decay));
}

/// Words that 0.3.0 added.
void read_later_titan(RecipeReading& reading) {
  if (const std::int64_t chunks = reading.in.integer("loss.chunks", 0); chunks > 0) reading.run.loss_chunks = chunks;
  if (!reading.model) reading.run.model.mtp_layers = reading.in.integer("model.mtp_layers", 0);
  if (!reading.in.has("loss.chunks")) return;  // a job of 0.2
  if (!reading.in.boolean("training.disable_cuda_graphs", false) && reading.run.layout.pipeline == 1)
    reading.assume(
        "training.disable_cuda_graphs: found false, taken as true: kernels are launched one by one, not by a graph");
}

void read_titan(RecipeReading& reading) {
  set_titan_defaults(reading.run);
  reading.run.name = reading.in.text("job.description", reading.run.name);
  read_titan_model(reading);
  if (reading.run.model.experts > 0 && reading.in.boolean("debug.moe_force_load_balance", false))
    reading.run.model.router.forced = RouterSpec::Forced::balanced;
  read_rows(kTitanRows, reading);
  read_titan_formats(reading);
  read_later_titan(reading);
  read_titan_parallelism(reading);
  read_titan_pipeline(reading);
  read_titan_batch(reading);
  read_titan_recompute(reading);
  read_titan_saves(reading);
  reading.run.dist_timeout_s = static_cast<double>(reading.in.integer("comm.train_timeout_seconds", 100, 1));
  read_titan_decay(reading);
  const std::string optimizer = reading.in.text("optimizer.name", "AdamW");
  if (optimizer != "AdamW") reading.assume("optimizer.name: found {}, taken as AdamW", optimizer);
  read_switches(kTitanSwitches, reading);
}

Settings parse_titan(const std::string& text, const std::string& origin, const RecipeSource& source) {
  const bool command = !origin.ends_with(".toml") && is_titan_command(text);
  Settings out = command ? settings_of_titan_command(text, origin, source) : settings_from_toml(text, origin);
  rename_titan_words(out);
  return out;
}

}  // namespace

const RecipeTranslator kTorchtitan{"torchtitan 0.2.2",
                                   "job.toml",
                                   false,
                                   write_titan,
                                   read_titan,
                                   settings_to_toml,
                                   parse_titan,
                                   "optimizer.lr",
                                   "lr_scheduler.warmup_steps",
                                   "training.dataset and model.hf_assets_path",
                                   "torchtitan"};

}  // namespace wt
