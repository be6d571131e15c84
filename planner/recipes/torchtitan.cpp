// torchtitan 0.2.2, the last release with TOML: torchtitan/config/job_config.py, distributed/parallel_dims.py and
// distributed/pipeline_parallel.py. Its shard degree excludes context parallelism. Its expert degree divides shard x
// context x tensor, as ours does.

#include <algorithm>
#include <cmath>

#include "configs/base/text.hpp"
#include "planner/recipes/launch.hpp"
#include "planner/recipes/model_names.hpp"
#include "planner/recipes/torchtitan.hpp"

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

const RecipeWords<Dispatcher> kTitanDispatchers{{"standard", Dispatcher::alltoall}, {"deepep", Dispatcher::deepep}};

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

/// Recompute of layers n, 2n, ... of a rank, counted through all its chunks (activation_checkpoint.py,
/// _apply_layer_sac).
Recompute titan_layers(std::int64_t n, const Layout& l, std::int64_t layers) {
  using Which = Recompute::Blocks::Which;
  if (n <= 1) return Recompute::block;
  Recompute::Rule rule{Module::block, {{Which::every, n, 0}}};
  const std::vector<std::int64_t> chunks = l.layers_of_chunks(layers);
  if (std::ranges::any_of(chunks, [&](std::int64_t chunk) { return chunk > 0 && chunk < n; })) {
    rule.blocks.clear();
    std::vector<std::int64_t> passed(static_cast<std::size_t>(l.pipeline));
    std::int64_t layer = 0;
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk)
      for (std::int64_t i = 0; i < chunks[chunk]; ++i, ++layer)
        if (++passed[static_cast<std::size_t>(l.stage_of(static_cast<std::int64_t>(chunk)))] % n == 0)
          rule.blocks.push_back({Which::range, layer, layer + 1});
    if (rule.blocks.empty()) return Recompute::none;
  }
  Recompute out;
  out.add(std::move(rule));
  return out;
}

/// The n of such a policy, else 0.
std::int64_t titan_step(const RunSpec& run) {
  for (std::int64_t n = 2; n <= run.model.layers; ++n)
    if (run.layout.recompute == titan_layers(n, run.layout, run.model.layers))
      return run.layout.recompute.any() ? n : 0;
  return 0;
}

void write_titan_recompute(RecipeDraft& draft) {
  const Recompute& recompute = draft.run.layout.recompute;
  const std::int64_t n = titan_step(draft.run);
  const std::string mode = recompute == Recompute::block ? "full" : recompute.any() ? "selective" : "none";
  draft.out.put("activation_checkpoint.mode", mode);
  draft.out.put("activation_checkpoint.selective_ac_option", n > 0 ? std::to_string(n) : "op");
  draft.why["fsdp_config.activation_checkpointing_target"] =
      "its modes are none, full, every n-th layer, and every second product (op)";
}

void read_titan_recompute(RecipeReading& reading) {
  const std::string mode = reading.in.text("activation_checkpoint.mode", "selective"),
                    option = reading.in.text("activation_checkpoint.selective_ac_option", "2");
  Recompute& out = reading.run.layout.recompute;
  if (mode == "none") return;
  if (mode == "full") {
    out = Recompute::block;
  } else if (mode != "selective") {
    reading.in.fail("activation_checkpoint.mode", "found {}, needs none, full or selective", mode);
  } else if (option == "op") {
    out = recompute_of({Module::products});
  } else {
    const Settings::Value n = scalar_of_word(option);
    if (!n.is_number_integer() || n < 1)
      reading.in.fail("activation_checkpoint.selective_ac_option", "found {}, needs op or a number from 1", option);
    out = titan_layers(n.get<std::int64_t>(), reading.run.layout, reading.run.model.layers);
  }
}

Settings::Value titan_parts(const std::vector<std::int64_t>& chunks) {
  Settings::Value parts = Settings::Value::array();
  std::int64_t layer = 0;
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    Settings::Value part = Settings::Value::array();
    if (chunk == 0) part.push_back("tok_embeddings");
    for (std::int64_t i = 0; i < chunks[chunk]; ++i) part.push_back(fmt::format("layers.{}", layer++));
    if (chunk + 1 == chunks.size()) part.push_back("norm"), part.push_back("output");
    parts.push_back(std::move(part));
  }
  return parts;
}

void write_titan_pipeline(RecipeDraft& draft) {
  const Layout& l = draft.run.layout;
  if (l.pipeline == 1) return;
  const bool v = l.schedule == Schedule::dualpipe_v;
  draft.out.put("parallelism.pipeline_parallel_schedule", v                      ? "DualPipeV"
                                                          : l.virtual_stages > 1 ? "Interleaved1F1B"
                                                                                 : "1F1B");
  draft.out.put("parallelism.pipeline_parallel_microbatch_size", even_microbatch(draft.run));
  // dual_pipe_v.py refuses recompute with it.
  if (v)
    draft.out.put("parallelism.pipeline_parallel_expert_parallel_overlap", l.exchange_overlap && !l.recompute.any());
  const std::vector<std::int64_t> chunks = l.layers_of_chunks(draft.run.model.layers);
  if (std::equal(chunks.begin() + 1, chunks.end(), chunks.begin())) {
    draft.out.put("parallelism.pipeline_parallel_layers_per_stage", chunks.front());
    draft.out.put("parallelism.pipeline_parallel_first_stage_less_layers", 0);
    draft.out.put("parallelism.pipeline_parallel_last_stage_less_layers", 0);
  } else {
    draft.out.put("parallelism.module_fqns_per_model_part", titan_parts(chunks));
  }
  draft.why["fsdp_config.pipeline_schedule"] = "it has no ZB-H1";
  draft.why["fsdp_config.pipeline_layout"] = "its parts have no modules of multi-token prediction";
}

/// Distributes layers over stages as generate_llm_fqn_per_model_part does. Embedding and head count as layers.
std::vector<std::int64_t> titan_chunks(std::int64_t layers, std::int64_t stages, std::int64_t first_less,
                                       std::int64_t last_less) {
  const std::int64_t all = layers + first_less + last_less;
  std::vector<std::int64_t> out;
  for (std::int64_t stage = 0; stage < stages; ++stage) out.push_back(all / stages + (stage < all % stages ? 1 : 0));
  out.front() -= first_less;
  out.back() -= last_less;
  return out;
}

std::vector<std::int64_t> read_titan_parts(RecipeReading& reading) {
  const Settings::Value parts = reading.in.value("parallelism.module_fqns_per_model_part");
  std::vector<std::int64_t> out;
  for (const Settings::Value& part : parts) {
    if (!part.is_array())
      reading.in.fail("parallelism.module_fqns_per_model_part", "needs a list of lists of module names");
    out.push_back(std::ranges::count_if(part, [](const Settings::Value& module) {
      return module.is_string() && module.get<std::string>().starts_with("layers.");
    }));
  }
  return out;
}

void read_titan_chunks(RecipeReading& reading) {
  Layout& l = reading.run.layout;
  const std::int64_t layers = reading.run.model.layers;
  const auto count = [&](const char* key, std::int64_t fallback, std::int64_t least) {
    return reading.in.integer(std::string("parallelism.pipeline_parallel_") + key, fallback, least);
  };
  const std::int64_t first = count("first_stage_less_layers", 1, 0), last = count("last_stage_less_layers", 1, 0),
                     each = count("layers_per_stage", 0, 1);
  std::vector<std::int64_t> chunks = read_titan_parts(reading);
  if (each > 0) l.virtual_stages = (layers + first + last + each - 1) / each / l.pipeline;
  if (!chunks.empty()) l.virtual_stages = static_cast<std::int64_t>(chunks.size()) / l.pipeline;
  if (l.virtual_stages < 1)
    reading.in.fail("parallelism.pipeline_parallel_degree", "found {}, needs a layer in each stage", l.pipeline);
  if (chunks.empty()) chunks = titan_chunks(layers, l.pipeline * l.virtual_stages, first, last);
  set_chunks(l, std::move(chunks), layers);
}

void read_titan_pipeline(RecipeReading& reading) {
  Layout& l = reading.run.layout;
  if (l.pipeline == 1) return;
  l.reshard_after_forward = l.reduce_every_microbatch = false;
  const std::string word = reading.in.text("parallelism.pipeline_parallel_schedule", "1F1B"), schedule = lower(word);
  const bool single = schedule == "1f1b" || schedule == "gpipe";
  l.virtual_stages = single ? 1 : 2;
  if (schedule == "dualpipev") {
    l.schedule = Schedule::dualpipe_v;
    l.exchange_overlap =
        reading.in.boolean("parallelism.pipeline_parallel_expert_parallel_overlap", true) && l.expert > 1;
  } else if (schedule != "1f1b" && schedule != "interleaved1f1b") {
    reading.assume("parallelism.pipeline_parallel_schedule: found {}, taken as {}", word,
                   single ? "1F1B" : "interleaved 1F1B");
  }
  read_titan_chunks(reading);
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
  run.save = reading.in.boolean("checkpoint.enable", false);
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
  draft.out.put("lr_scheduler.decay_type", "cosine");
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
  const std::int64_t world = reading.world(shard > 0 ? shard * others : 0, key);
  l.shard = reading.data_ranks(world, others, key) * l.context;
  l.sequence_parallel = l.tensor > 1;
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
    reading.in.fail("parallelism.expert_parallel_comm_backend", "found {}, needs standard or deepep", backend);
  l.dispatcher = l.expert > 1 ? *dispatcher : Dispatcher::alltoall;
  if (l.pipeline > 1 && reshard == "always")
    reading.assume("parallelism.fsdp_reshard_after_forward: found always with a pipeline, taken as never");
}

void read_titan(RecipeReading& reading) {
  set_titan_defaults(reading.run);
  reading.run.name = reading.in.text("job.description", reading.run.name);
  const std::string name = reading.in.text("model.name", ""), flavor = reading.in.text("model.flavor", "");
  reading.set_model(preset_named(&ModelNames::torchtitan, name + "/" + flavor), "model.flavor",
                    name.empty() ? "" : name + " " + flavor);
  if (!reading.model) reading.run.model.mtp_layers = 0;  // flavors have none
  if (reading.run.model.experts > 0 && reading.in.boolean("debug.moe_force_load_balance", false))
    reading.run.model.router.forced = RouterSpec::Forced::balanced;
  read_rows(kTitanRows, reading);
  read_titan_formats(reading);
  read_titan_parallelism(reading);
  read_titan_pipeline(reading);
  read_titan_batch(reading);
  read_titan_recompute(reading);
  read_titan_saves(reading);
  reading.run.dist_timeout_s = static_cast<double>(reading.in.integer("comm.train_timeout_seconds", 100, 1));
  const std::string decay = reading.in.text("lr_scheduler.decay_type", "linear");
  if (decay != "cosine") reading.assume("lr_scheduler.decay_type: found {}, taken as cosine", decay);
  const std::string optimizer = reading.in.text("optimizer.name", "AdamW");
  if (optimizer != "AdamW") reading.assume("optimizer.name: found {}, taken as AdamW", optimizer);
  read_switches(kTitanSwitches, reading);
}

}  // namespace

const RecipeTranslator kTorchtitan{"torchtitan 0.2.2",
                                   "job.toml",
                                   false,
                                   write_titan,
                                   read_titan,
                                   settings_to_toml,
                                   +[](const std::string& text, const std::string& origin, const RecipeSource&) {
  return settings_from_toml(text, origin);
},
                                   "optimizer.lr",
                                   "lr_scheduler.warmup_steps",
                                   "training.dataset and model.hf_assets_path"};

}  // namespace wt
