// NeMo Automodel 0.7.0: the YAML of nemo_automodel.recipes.llm.train_ft; recipes/_dist_utils.py reads its section
// `distributed`. Its experts are spread over all ranks of a stage, replicas included.

#include <algorithm>
#include <cmath>
#include <utility>

#include "configs/base/text.hpp"
#include "configs/files/hub_models.hpp"
#include "planner/recipes/launch.hpp"
#include "planner/recipes/model_names.hpp"
#include "planner/recipes/translator.hpp"

namespace wt {
namespace {

const std::vector<RecipeRow> kAutomodelRows{
    {"step_scheduler.max_steps", +[](RunSpec& r) { return &r.steps; }},
    {"seed", +[](RunSpec& r) { return &r.seed; }},
    {"distributed.tp_size", +[](RunSpec& r) { return &r.layout.tensor; }, 1},
    {"distributed.pp_size", +[](RunSpec& r) { return &r.layout.pipeline; }, 1},
    {"distributed.cp_size", +[](RunSpec& r) { return &r.layout.context; }, 1},
    {"distributed.ep_size", +[](RunSpec& r) { return &r.layout.expert; }, 1},
    {"optimizer.lr", +[](RunSpec& r) { return &r.optimizer.lr; }},
    {"optimizer.eps", +[](RunSpec& r) { return &r.optimizer.eps; }},
    {"optimizer.weight_decay", +[](RunSpec& r) { return &r.optimizer.weight_decay; }},
    {"lr_scheduler.lr_warmup_steps", RecipeRow::Steps{+[](RunSpec& r) { return &r.optimizer.warmup_steps; }}},
    {"clip_grad_norm.max_norm", +[](RunSpec& r) { return &r.optimizer.clip_norm; }}};

const char* const kHere = "distributed.";
const char* const kModelName = "model.config.pretrained_model_name_or_path";
/// torch gathers all rows and reduces what experts return (models/common/utils.py).
const RecipeWords<Dispatcher> kBackends{{"torch", Dispatcher::allgather},
                                        {"deepep", Dispatcher::deepep},
                                        {"hybridep", Dispatcher::hybridep},
                                        {"uccl_ep", Dispatcher::uccl}};

bool is_ddp(const Layout& l) {
  return l.shard == 1 && l.replicate > 1 && l.tensor * l.pipeline * l.context * l.expert == 1;
}

bool on_fsdp2(const RunSpec& run) { return !is_ddp(run.layout); }
bool on_backend(const RunSpec& run) { return run.model.experts > 0; }

/// Defaults of components/distributed/config.py, models/common/utils.py (where Transformer Engine is installed) and
/// checkpoint/config.py.
const std::vector<RecipeSwitch> kAutomodelSwitches{
    {"distributed.enable_fsdp2_prefetch", true, false, "a layer's weights are gathered during the one before",
     on_fsdp2},
    {"distributed.fsdp2_forward_prefetch_depth", 1, 1, "weights of one layer are gathered ahead", on_fsdp2},
    {"distributed.fsdp2_backward_prefetch_depth", 1, 2, "weights of one layer are gathered ahead", on_fsdp2},
    {"distributed.enable_async_tensor_parallel", false, false, "products wait for what tensor ranks send", on_fsdp2},
    {"distributed.enable_compile", false, false, "kernels are launched one by one", on_fsdp2},
    {"compile.enabled", false, false, "kernels are launched one by one"},
    {"model.backend.attn", "te", "te", "attention is cuDNN's", on_backend},
    {"model.backend.linear", "te", "te", "products are Transformer Engine's", on_backend},
    {"model.backend.experts", "torch_mm", "torch_mm", "experts are one grouped product", on_backend},
    {"checkpoint.is_async", true, false, "training goes on while a checkpoint is written",
     +[](const RunSpec& r) { return r.save; }}};

void write_automodel_model(RecipeDraft& draft) {
  const std::string repository = repository_named(draft.run.model);
  draft.out.put("model._target_", "nemo_automodel.NeMoAutoModelForCausalLM.from_config");
  draft.out.put("model.config._target_", "transformers.AutoConfig.from_pretrained");
  draft.out.put(kModelName, repository.empty() ? "./hugging_face" : repository);
  draft.out.put("model.torch_dtype", "float32");
  if (draft.run.model.experts > 0) {
    draft.out.put("model.backend._target_", "nemo_automodel.components.models.common.BackendConfig");
    draft.out.put("model.backend.dispatcher", word_of(kBackends, draft.run.layout.dispatcher, "torch"));
    draft.out.put("model.backend.fake_balanced_gate", draft.run.model.router.forced == RouterSpec::Forced::balanced);
  }
  if (!repository.empty()) return;
  draft.names_no_model = true;
  draft.not_expressed.push_back(fmt::format(
      "model: found {}, which is no known repository; put its config.json into ./hugging_face", draft.run.model.name));
}

void write_automodel_pipeline(RecipeDraft& draft) {
  const Layout& l = draft.run.layout;
  if (l.pipeline == 1) return;
  const std::string pipeline = std::string(kHere) + "pipeline.";
  draft.out.put(pipeline + "pp_schedule", l.schedule == Schedule::dualpipe_v ? "DualPipeV"
                                          : l.virtual_stages > 1             ? "interleaved1f1b"
                                                                             : "1f1b");
  draft.out.put(pipeline + "pp_microbatch_size", even_microbatch(draft.run));
  const std::int64_t chunks = l.pipeline * l.virtual_stages;
  draft.out.put(pipeline + "layers_per_stage", (draft.run.model.layers + chunks - 1) / chunks);
  draft.out.put(pipeline + "scale_grads_in_schedule", false);
  draft.why["fsdp_config.pipeline_schedule"] = "PyTorch has no ZB-H1";
  draft.why["fsdp_config.pipeline_layout"] = "it deals layers to chunks itself";
}

void write_automodel_layout(RecipeDraft& draft) {
  const Layout& l = draft.run.layout;
  const std::string here = kHere;
  draft.out.put(here + "strategy", is_ddp(l) ? "ddp" : "fsdp2");
  draft.out.put(here + "dp_size", l.data_ranks());
  if (!is_ddp(l)) draft.out.put(here + "dp_replicate_size", l.shard == l.context ? 1 : l.replicate);
  const bool full = l.recompute == Recompute::block;
  draft.out.put(here + "activation_checkpointing", full                ? Settings::Value(true)
                                                   : l.recompute.any() ? Settings::Value("selective")
                                                                       : Settings::Value(false));
  if (!is_ddp(l)) {
    draft.out.put(here + "sequence_parallel", l.sequence_parallel);
    draft.out.put(here + "reshard_after_forward", l.reshard_after_forward);
    draft.out.put(here + "defer_fsdp_grad_sync", !l.reduce_every_microbatch);
    const bool half = draft.run.precision == Precision::bf16;
    draft.out.put(here + "mp_policy.param_dtype", half ? "bfloat16" : "float32");
    draft.out.put(here + "mp_policy.reduce_dtype", draft.run.pure_reduction ? "bfloat16" : "float32");
    if (half) draft.out.put(here + "mp_policy.output_dtype", "bfloat16");
    if (l.expert > 1) draft.out.put(here + "moe.reshard_after_forward", l.reshard_after_forward);
  }
  write_automodel_pipeline(draft);
}

void write_automodel(RecipeDraft& draft) {
  const RunSpec& run = draft.run;
  const Layout& l = run.layout;
  draft.out.put("recipe._target_", "nemo_automodel.recipes.llm.train_ft.TrainFinetuneRecipeForNextTokenPrediction");
  draft.out.put("step_scheduler.global_batch_size", run.global_batch);
  draft.out.put("step_scheduler.local_batch_size",
                l.pipeline > 1 ? run.global_batch / l.data_ranks() : even_microbatch(run));
  draft.out.put("step_scheduler.ckpt_every_steps",
                run.save_interval > 0 ? run.save_interval : std::max<std::int64_t>(1, run.steps));
  draft.out.put("step_scheduler.num_epochs", 1);
  constexpr double kMinute = 60;
  draft.out.put("dist_env.backend", "nccl");
  draft.out.put("dist_env.timeout_minutes", static_cast<std::int64_t>(std::ceil(run.dist_timeout_s / kMinute)));
  write_rows(kAutomodelRows, draft);
  write_automodel_model(draft);
  write_automodel_layout(draft);
  draft.out.put("checkpoint.enabled", run.save);
  draft.out.put("checkpoint.checkpoint_dir", "checkpoints/");
  draft.out.put("checkpoint.model_save_format", "safetensors");
  write_switches(kAutomodelSwitches, draft);
  if (run.keep_checkpoints > 0) draft.out.put("checkpoint.max_recent_checkpoints", run.keep_checkpoints);
  draft.out.put("optimizer._target_", "torch.optim.AdamW");
  draft.out.put("optimizer.betas", Settings::Value::array({run.optimizer.beta1, run.optimizer.beta2}));
  draft.out.put("lr_scheduler.lr_decay_style", "cosine");
  draft.out.put("lr_scheduler.min_lr", twelve_digits(run.optimizer.lr * run.optimizer.final_lr_fraction));
  draft.out.put("dataset._target_", "nemo_automodel.components.datasets.llm.mock_iterable_dataset.MockIterableDataset");
  draft.out.put("dataset.vocab_size", run.model.vocab);
  draft.out.put("dataset.seq_len", run.seq);
  draft.out.put("loss_fn._target_", "nemo_automodel.components.loss.masked_ce.MaskedCrossEntropy");
  draft.why["fsdp_config.activation_checkpointing_target"] = "it recomputes whole layers, or selected products of all";
  draft.why["fsdp_config.context_parallel_ring"] = "context ranks always pass keys and values round";
  draft.why["fsdp_config.expert_tensor_parallel_degree"] = "experts are never cut over tensor ranks there";
  draft.why["fsdp_config.sequence_parallel"] = "it has no sequence parallelism without FSDP2";
  draft.why["fsdp_config.token_dispatcher"] =
      "its dispatcher torch gathers rows; others are deepep, hybridep and uccl_ep";
  draft.why["fsdp_config.overlap_expert_exchange"] = "it has no overlap of exchanges";
  draft.why["fsdp_config.cuda_graphs"] = "its graphs need kernels other than those that are simulated";
  draft.why["fsdp_config.data_parallel_shard_degree"] = draft.why["fsdp_config.data_parallel_replicate_degree"] =
      "replicas are whole shard groups there";
  draft.why["loss_chunks"] = "the file says a loss of all tokens at once";
  draft.why["autoresume"] = "it goes on from the newest checkpoint in its folder";
  if (run.model.shared_ffn > 0)
    draft.not_expressed.emplace_back(
        "shared experts: simulated during the exchange of rows; Automodel computes them before or after it");
  if (run.model.experts == 0)
    draft.not_expressed.emplace_back(
        "attention: simulated with cuDNN's kernels; Automodel takes those that transformers finds");
  if (l.expert > 1 && l.replicate > 1)
    draft.not_expressed.push_back(
        fmt::format("fsdp_config.data_parallel_replicate_degree: found {} with experts over {} ranks; its experts are "
                    "dealt over replicas, too, so that memory and traffic differ",
                    l.replicate, l.expert));
  draft.command = torchrun_command(draft, "-m nemo_automodel.cli.app recipe.yaml");
  draft.next_step = fmt::format("automodel recipe.yaml --nproc-per-node {} (one node)", nodes_and_gpus(draft).second);
}

void read_automodel_pipeline(RecipeReading& reading) {
  Layout& l = reading.run.layout;
  if (l.pipeline == 1) return;
  const std::string pipeline = std::string(kHere) + "pipeline.";
  const std::string word = reading.in.text(pipeline + "pp_schedule", "1f1b"), schedule = lower(word);
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

void read_automodel_layout(RecipeReading& reading) {
  Layout& l = reading.run.layout;
  const std::string here = kHere;
  const std::int64_t others = l.context * l.tensor * l.pipeline;
  const std::int64_t said = reading.in.integer(here + "dp_size", 0, 1);
  const std::int64_t world = reading.world(said * others, here + "dp_size");
  const std::int64_t data = reading.data_ranks(world, others, here + "dp_size") * l.context;
  const std::string strategy = lower(reading.in.text(here + "strategy", "fsdp2"));
  const bool ddp = strategy == "ddp";
  if (!ddp && strategy != "fsdp2" && strategy != "megatron_fsdp")
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
  if (l.pipeline > 1) l.reshard_after_forward = l.reduce_every_microbatch = false;
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
  } else if (l.expert > 1 && l.replicate > 1) {
    reading.assume("{}ep_size: found experts that are dealt over replicas, taken as experts of each replica", here);
  }
}

void read_automodel_recompute(RecipeReading& reading) {
  const std::string key = std::string(kHere) + "activation_checkpointing";
  const std::string word = lower(reading.in.text(key, "false"));
  if (word == "true" || word == "full")
    reading.run.layout.recompute = Recompute::block;
  else if (word == "selective")
    reading.run.layout.recompute = recompute_of({Module::products});
  else if (word != "false" && word != "none")
    reading.in.fail(key, "found {}, needs true, false, full or selective", word);
}

void read_automodel_training(RecipeReading& reading) {
  RunSpec& run = reading.run;
  const std::int64_t local = reading.in.integer("step_scheduler.local_batch_size", 1, 1);
  run.layout.microbatch =
      run.layout.pipeline > 1 ? reading.in.integer(std::string(kHere) + "pipeline.pp_microbatch_size", 1, 1) : local;
  run.global_batch = reading.in.integer("step_scheduler.global_batch_size", 32, 1);
  run.seq = reading.in.integer("dataset.seq_len", 0, 1);
  for (const char* other : {"dataset.seq_length", "packed_sequence.packed_sequence_size"})
    if (const std::int64_t seq = reading.in.integer(other, 0, 0); run.seq == 0) run.seq = seq;
  if (run.seq == 0) reading.in.fail("dataset.seq_length", "found none, needs tokens a sequence");
  const Settings::Value betas = reading.in.value("optimizer.betas");
  if (betas.is_array() && betas.size() == 2 && betas[0].is_number() && betas[1].is_number())
    run.optimizer.beta1 = betas[0], run.optimizer.beta2 = betas[1];
  run.optimizer.final_lr_fraction = recipe_ratio(reading.in.number("lr_scheduler.min_lr", 0), run.optimizer.lr);
  const std::string decay = reading.in.text("lr_scheduler.lr_decay_style", "cosine");
  if (decay != "cosine") reading.assume("lr_scheduler.lr_decay_style: found {}, taken as cosine", decay);
  const std::string optimizer = reading.in.text("optimizer._target_", "torch.optim.AdamW");
  if (!optimizer.ends_with("AdamW")) reading.assume("optimizer._target_: found {}, taken as AdamW", optimizer);
  run.save = reading.in.boolean("checkpoint.enabled", true);
  const std::int64_t interval = reading.in.integer("step_scheduler.ckpt_every_steps", 100, 1);
  run.save_interval = run.save && interval < run.steps ? interval : 0;
  run.keep_checkpoints = reading.in.integer("checkpoint.max_recent_checkpoints", -1, 1);
  constexpr double kMinute = 60;
  run.dist_timeout_s = kMinute * static_cast<double>(reading.in.integer("dist_env.timeout_minutes", 1, 1));
}

void read_automodel(RecipeReading& reading) {
  RunSpec& run = reading.run;
  const std::string short_key = "model.pretrained_model_name_or_path";
  std::string name = reading.in.text(kModelName, "");
  if (name.empty()) name = reading.in.text(short_key, "");
  reading.set_model(hub_repository(name), kModelName, name);
  run.seed = 42;  // recipes/llm/train_ft.py
  run.seed = static_cast<std::uint64_t>(reading.in.integer("rng.seed", 42));
  run.optimizer.beta2 = 0.999;  // torch.optim.AdamW
  read_rows(kAutomodelRows, reading);
  read_automodel_layout(reading);
  read_automodel_pipeline(reading);
  read_automodel_recompute(reading);
  if (reading.in.text(std::string(kHere) + "mp_policy.param_dtype", "bfloat16").ends_with("float32"))
    set_precision(run, "fp32");
  run.pure_reduction = reading.in.text(std::string(kHere) + "mp_policy.reduce_dtype", "float32").ends_with("bfloat16");
  const std::string backend = reading.in.text(
      "model.backend.dispatcher", reading.in.boolean("model.backend.enable_deepep", false) ? "deepep" : "torch");
  const auto dispatcher = meaning_of(kBackends, backend);
  if (!dispatcher) reading.assume("model.backend.dispatcher: found {}, taken as torch", backend);
  run.layout.dispatcher = run.layout.expert > 1 ? dispatcher.value_or(Dispatcher::allgather) : Dispatcher::alltoall;
  if (run.model.experts > 0 && reading.in.boolean("model.backend.fake_balanced_gate", false))
    run.model.router.forced = RouterSpec::Forced::balanced;
  read_automodel_training(reading);
  read_switches(kAutomodelSwitches, reading);
}

}  // namespace

const RecipeTranslator kAutomodel{"NeMo Automodel 0.7.0",
                                  "recipe.yaml",
                                  false,
                                  write_automodel,
                                  read_automodel,
                                  settings_to_yaml,
                                  +[](const std::string& text, const std::string& origin, const RecipeSource&) {
  return settings_from_yaml(text, origin);
},
                                  "optimizer.lr",
                                  "lr_scheduler.lr_warmup_steps",
                                  "dataset"};

}  // namespace wt
