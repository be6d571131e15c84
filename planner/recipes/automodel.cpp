// NeMo Automodel 0.7.0: the YAML of nemo_automodel.recipes.llm.train_ft; recipes/_dist_utils.py reads its section
// `distributed`. Its experts are spread over all ranks of a stage, replicas included.

#include <algorithm>
#include <cmath>
#include <utility>

#include "configs/base/text.hpp"
#include "planner/recipes/automodel.hpp"
#include "planner/recipes/launch.hpp"
#include "planner/recipes/model_names.hpp"

namespace wt {
namespace {

bool on_fsdp2(const RunSpec& run) { return !is_automodel_ddp(run.layout); }
bool on_backend(const RunSpec& run) { return run.model.experts > 0; }

}  // namespace

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

/// torch gathers all rows and reduces what experts return (models/common/utils.py).
const RecipeWords<Dispatcher> kAutomodelDispatchers{{"torch", Dispatcher::allgather},
                                                    {"deepep", Dispatcher::deepep},
                                                    {"hybridep", Dispatcher::hybridep},
                                                    {"uccl_ep", Dispatcher::uccl}};

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

bool is_automodel_ddp(const Layout& l) {
  return l.shard == 1 && l.replicate > 1 && l.tensor * l.pipeline * l.context * l.expert == 1;
}

namespace {

void write_automodel_model(RecipeDraft& draft) {
  const std::string repository = repository_named(draft.run.model);
  draft.out.put("model._target_", "nemo_automodel.NeMoAutoModelForCausalLM.from_config");
  draft.out.put("model.config._target_", "transformers.AutoConfig.from_pretrained");
  draft.out.put(kAutomodelModel, repository.empty() ? "./hugging_face" : repository);
  draft.out.put("model.torch_dtype", "float32");
  if (draft.run.model.experts > 0) {
    draft.out.put("model.backend._target_", "nemo_automodel.components.models.common.BackendConfig");
    draft.out.put("model.backend.dispatcher", word_of(kAutomodelDispatchers, draft.run.layout.dispatcher, "torch"));
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
  const std::string pipeline = std::string(kAutomodelLayout) + "pipeline.";
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
  const std::string here = kAutomodelLayout;
  draft.out.put(here + "strategy", is_automodel_ddp(l) ? "ddp" : "fsdp2");
  draft.out.put(here + "dp_size", l.data_ranks());
  if (!is_automodel_ddp(l)) draft.out.put(here + "dp_replicate_size", l.shard == l.context ? 1 : l.replicate);
  const bool full = l.recompute == Recompute::block;
  draft.out.put(here + "activation_checkpointing", full                ? Settings::Value(true)
                                                   : l.recompute.any() ? Settings::Value("selective")
                                                                       : Settings::Value(false));
  if (!is_automodel_ddp(l)) {
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

}  // namespace

const RecipeTranslator kAutomodel{"NeMo Automodel 0.7.0",
                                  "recipe.yaml",
                                  false,
                                  write_automodel,
                                  read_automodel,
                                  settings_to_yaml,
                                  parse_automodel,
                                  "optimizer.lr",
                                  "lr_scheduler.lr_warmup_steps",
                                  "dataset",
                                  "automodel"};

}  // namespace wt
