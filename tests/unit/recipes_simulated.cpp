// An export runs what was simulated: read back, it is simulated alike, but for what its list says.
#include <yaml-cpp/yaml.h>
#include <catch2/catch.hpp>
#include <functional>

#include "configs/base/error.hpp"
#include "configs/files/cluster.hpp"
#include "configs/files/stack.hpp"
#include "planner/recipes/recipe.hpp"
#include "planner/simulate/simulated_run.hpp"
#include "tests/fixtures/recipe_runs.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// Dotted keys; a list names them before ": found".
using Keys = std::vector<std::string>;

Keys listed_keys(const std::vector<std::string>& list) {
  Keys out;
  for (const std::string& what : list)
    if (const std::size_t end = what.find(": found"); end != std::string::npos) out.push_back(what.substr(0, end));
  return out;
}

/// Puts the value of `from` at a dotted key into `to`, or removes the key from it.
void take(YAML::Node to, const YAML::Node& from, const std::string& key) {
  const std::size_t dot = key.find('.');
  const std::string step = key.substr(0, dot);
  const bool there = from.IsMap() && from[step].IsDefined();
  if (!there)
    to.remove(step);
  else if (dot == std::string::npos || !to[step].IsMap())
    to[step] = YAML::Clone(from[step]);
  else
    take(to[step], from[step], key.substr(dot + 1));
}

/// `back` with the values of `run` at these keys. Some are several keys of a run file.
RunSpec with_keys_of(const RunSpec& back, const RunSpec& run, const Keys& keys) {
  YAML::Node to = YAML::Load(run_to_yaml(back));
  const YAML::Node from = YAML::Load(run_to_yaml(run));
  for (const std::string& key : keys) {
    take(to, from, key);
    if (key == "fsdp_config.activation_checkpointing_target") take(to, from, "fsdp_config.activation_checkpointing");
    if (key == "model.ffn_config.moe_layer_freq") take(to, from, "model.ffn_config.first_k_dense");
  }
  return run_from_text(YAML::Dump(to), "the run that came back");
}

struct Simulated {
  double step_s = 0, peak_bytes = 0, process_bytes = 0;
};

/// The target's own, if it runs the layout.
std::string stack_for(const RunSpec& run, RecipeFormat format) {
  try {
    read_stack(to_string(format)).check_layout(run.layout);
    return to_string(format);
  } catch (const Error&) {
    return kTypicalStack;
  }
}

/// On the first GPUs that compute in the run's formats.
Simulated simulated(const RunSpec& run, const std::string& stack) {
  const bool blackwell = run.precisions.forward == NumberFormat::mxfp8;
  SimulateQuestion question{.run = run,
                            .run_file = run.name,
                            .cluster = read_cluster(blackwell ? "hgx-b200" : "hgx-h100"),
                            .sources = {},
                            .routing = {},
                            .measured = {}};
  question.sources.stack = stack;
  if (run.model.experts > 0 && run.model.router.forced == RouterSpec::Forced::none) question.routing = {"balanced"};
  const SimulatedRun step = simulated_run(question);
  return {step.replay.step_s, peak_bytes(step), fullest_memory(step).process.high};
}

bool same(const Simulated& a, const Simulated& b) {
  const auto near = [](double x, double y) { return std::abs(x - y) <= 1e-9 * std::abs(x); };
  return near(a.step_s, b.step_s) && near(a.peak_bytes, b.peak_bytes) && near(a.process_bytes, b.process_bytes);
}

ImportedRun imported_again(const Recipe& recipe, const RunSpec& run, RecipeFormat format, const TempDirectory& folder) {
  YAML::Emitter model;
  model_to_yaml(run.model, model);
  write_bytes(folder / "model.yaml", model.c_str());
  RecipeSource source{.format = format, .model = "", .gpus = run.layout.world()};
  if (says(recipe.not_expressed, "model: found")) source.model = (folder / "model.yaml").string();
  return import_run(recipe.text, recipe.file_name, source);
}

using enum RecipeFormat;
const std::vector<RecipeFormat> kAll{torchtitan, megatron_core, megatron_bridge, automodel, llm_foundry};
const std::vector<RecipeFormat> kStaged{torchtitan, megatron_core, megatron_bridge, automodel};
const std::vector<RecipeFormat> kMegatrons{megatron_core, megatron_bridge};

/// A run and what is changed in it.
struct Kind {
  const char* what;
  std::vector<RecipeFormat> formats;
  std::function<RunSpec()> base;
  std::function<void(RunSpec&)> change;
};

RunSpec sharded(const std::string& model) {
  RunSpec run = with_context();
  run.model = read_model(model);
  run.layout = {};
  run.layout.shard = 16;
  run.seq = 2048, run.global_batch = 32;
  return run;
}
RunSpec dense() { return sharded("llama3-8b"); }
RunSpec experts() {
  RunSpec run = sharded("qwen3-30b-a3b");
  run.layout.expert = 8;
  return run;
}
/// Weights stay, with an optimizer that is sharded, as Megatron-Core has it.
RunSpec resident(RunSpec run) {
  run.layout.reshard_after_forward = run.layout.reduce_every_microbatch = false;
  return run;
}
RunSpec staged() {
  RunSpec run = with_stages();
  run.model = read_model("qwen3-30b-a3b");
  run.layout.shard = 4, run.layout.expert = 8, run.layout.whole_experts = true;
  run.layout.pipeline = 2;
  run.global_batch = 32, run.seq = 2048;
  return run;
}

void set_recompute(RunSpec& run, const std::string& text) { run.layout.recompute = recompute_from_string(text); }

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"dense, sharded", kAll, dense, [](RunSpec&) {}},
      {"weights stay", kStaged, dense, [](RunSpec& r) { r = resident(r); }},
      {"replicas", kAll, dense, [](RunSpec& r) { r.layout.replicate = 2, r.layout.shard = 8; }},
      {"replicas alone", kStaged, dense, [](RunSpec& r) { r.layout.replicate = 16, r.layout.shard = 1; }},
      {"several microbatches", kAll, dense, [](RunSpec& r) { r.global_batch = 64, r.layout.microbatch = 2; }},
      {"a smaller last microbatch", kAll, dense, [](RunSpec& r) { r.global_batch = 48, r.layout.microbatch = 2; }},
      {"context", kStaged, dense, [](RunSpec& r) { r.layout.context = 4, r.layout.context_ring = true; }},
      {"context, gathered", kStaged, dense, [](RunSpec& r) { r.layout.context = 4; }},
      {"tensor", kStaged, dense,
       [](RunSpec& r) { r = resident(r), r.layout.tensor = 2, r.layout.sequence_parallel = true; }},
      {"experts", kAll, experts, [](RunSpec&) {}},
      {"experts, weights stay", kStaged, experts, [](RunSpec& r) { r = resident(r); }},
      {"experts, DeepEP", kStaged, experts,
       [](RunSpec& r) { r = resident(r), r.layout.dispatcher = Dispatcher::deepep; }},
      {"experts, HybridEP", kStaged, experts,
       [](RunSpec& r) { r = resident(r), r.layout.dispatcher = Dispatcher::hybridep; }},
      {"experts, allgather", kMegatrons, experts,
       [](RunSpec& r) { r = resident(r), r.layout.dispatcher = Dispatcher::allgather; }},
      {"experts, balanced by force", kStaged, experts,
       [](RunSpec& r) { r.model.router.forced = RouterSpec::Forced::balanced; }},
      {"experts over tensor ranks", kStaged, experts,
       [](RunSpec& r) {
         r = resident(r), r.layout.expert = 1, r.layout.shard = 8;
         r.layout.tensor = 2, r.layout.sequence_parallel = true;
       }},
      {"experts whole on tensor ranks", kStaged, experts,
       [](RunSpec& r) {
         r = resident(r), r.layout.shard = 8, r.layout.whole_experts = true;
         r.layout.tensor = 2, r.layout.sequence_parallel = true;
       }},
      {"shared experts", kStaged, [] { return sharded("deepseek-v2-lite"); },
       [](RunSpec& r) { r = resident(r), r.layout.expert = 8; }},
      {"recompute of shared experts", kMegatrons, [] { return sharded("deepseek-v2-lite"); },
       [](RunSpec& r) { r = resident(r), r.layout.expert = 8, set_recompute(r, "shared_experts+mla_up_proj"); }},
      {"experts with a capacity", kMegatrons, experts,
       [](RunSpec& r) { r = resident(r), r.model.router.capacity_factor = 1.25, r.model.router.padded = true; }},
      {"a model that no framework ships", kAll, experts, [](RunSpec& r) { r.model.layers = 8, r.model.name = "own"; }},
      {"an optimizer over all replicas", kStaged, dense,
       [](RunSpec& r) { r.layout.replicate = 2, r.layout.shard = 8, r.layout.optimizer_shard = 2; }},
      {"multi-token prediction", kStaged, [] { return sharded("glm-4.5-air"); },
       [](RunSpec& r) { r = resident(r), r.layout.expert = 16; }},
      {"uneven stages", kStaged, staged,
       [](RunSpec& r) {
         r.layout.virtual_stages = 1, r.layout.chunk_layers = {25, 23};
       }},
      {"stages", kStaged, staged, [](RunSpec&) {}},
      {"stages of one chunk", kStaged, staged, [](RunSpec& r) { r.layout.virtual_stages = 1; }},
      {"exchanges beside other passes", kMegatrons, staged, [](RunSpec& r) { r.layout.exchange_overlap = true; }},
      {"exchanges beside other passes, one chunk", kMegatrons, staged,
       [](RunSpec& r) { r.layout.exchange_overlap = true, r.layout.virtual_stages = 1; }},
      {"DualPipe",
       {torchtitan, automodel},
       staged,
       [](RunSpec& r) { r.layout.schedule = Schedule::dualpipe_v, r.layout.exchange_overlap = true; }},
      {"DualPipe with recompute",
       {torchtitan, automodel},
       staged,
       [](RunSpec& r) {
         r.layout.schedule = Schedule::dualpipe_v, r.layout.exchange_overlap = true;
         set_recompute(r, "block");
       }},
      {"zero bubble", kStaged, staged,
       [](RunSpec& r) { r.layout.schedule = Schedule::zero_bubble, r.layout.virtual_stages = 1; }},
      {"recompute of blocks", kAll, dense, [](RunSpec& r) { set_recompute(r, "block"); }},
      {"recompute of every second block", kAll, dense, [](RunSpec& r) { set_recompute(r, "block:every-2"); }},
      {"recompute of products", kAll, dense, [](RunSpec& r) { set_recompute(r, "products"); }},
      {"recompute of attention", kAll, dense, [](RunSpec& r) { set_recompute(r, "attention"); }},
      {"recompute of norm and core", kStaged, staged, [](RunSpec& r) { set_recompute(r, "norm+core"); }},
      {"recompute of experts' activation", kStaged, staged, [](RunSpec& r) { set_recompute(r, "moe_act"); }},
      {"graphs of parts", kStaged, staged, [](RunSpec& r) { r.layout.cuda_graphs = CudaGraphs::partial; }},
      {"graphs of parts, recompute of blocks", kStaged, staged,
       [](RunSpec& r) { r.layout.cuda_graphs = CudaGraphs::partial, set_recompute(r, "block"); }},
      {"graphs of the step", kStaged, dense,
       [](RunSpec& r) { r = resident(r), r.layout.cuda_graphs = CudaGraphs::full; }},
      {"gradients in 16 bits", kAll, dense, [](RunSpec& r) { r.pure_reduction = true; }},
      {"loss in pieces", kAll, dense, [](RunSpec& r) { r.loss_chunks = 8; }},
      {"activations on the host", kAll, dense, [](RunSpec& r) { r.layout.offload_activations = true; }},
      {"Muon", kMegatrons, dense, [](RunSpec& r) { r = resident(r), r.optimizer.kind = OptimizerKind::muon; }},
      {"optimizer on the host", kMegatrons, dense,
       [](RunSpec& r) { r = resident(r), r.optimizer.offload_fraction = 0.5; }},
      {"moments in bf16", kMegatrons, dense,
       [](RunSpec& r) { r = resident(r), r.precisions.moments = NumberFormat::bf16; }}};
  return all;
}

/// Checks a run for each format, and counts the formats whose list is empty.
void goes_and_comes_back_alike(const RunSpec& run, const std::vector<RecipeFormat>& formats,
                               const TempDirectory& folder) {
  check_run(run, run.name);
  for (const RecipeFormat format : formats) {
    const Recipe recipe = export_run(run, format);
    INFO(to_string(format) << "\n" << recipe.text);
    const ImportedRun back = imported_again(recipe, run, format, folder);
    Keys keys = listed_keys(recipe.not_expressed);
    // Recipes of LLM Foundry are read for our trainer, which reduces in fp32.
    if (says(back.assumed, "fsdp_config.mixed_precision: found PURE")) keys.emplace_back("fsdp_config.mixed_precision");
    const RunSpec compared = with_keys_of(back.run, run, keys);
    const std::string stack = stack_for(run, format);
    const Simulated wanted = simulated(run, stack), found = simulated(compared, stack);
    INFO(wanted.step_s << " s and " << wanted.peak_bytes << " B came back as " << found.step_s << " s and "
                       << found.peak_bytes << " B");
    CHECK(same(wanted, found));
  }
}

}  // namespace

TEST_CASE("an export that is read back is simulated as the run, but for what it lists") {
  const TempDirectory folder;
  for (const Kind& kind : kinds()) {
    INFO(kind.what);
    RunSpec run = kind.base();
    kind.change(run);
    goes_and_comes_back_alike(run, kind.formats, folder);
  }
}

TEST_CASE("formats of numbers go to the targets that have them") {
  const TempDirectory folder;
  for (const char* precision : {"fp32", "amp_fp16", "amp_fp8", "amp_fp8_blockwise", "amp_mxfp8"}) {
    INFO(precision);
    RunSpec run = dense();
    run = resident(run);
    const PrecisionRecipe& recipe = precision_recipe(precision, "test");
    run.precision = recipe.compute, run.precisions = recipe.precisions;
    goes_and_comes_back_alike(run, kStaged, folder);
  }
}

TEST_CASE("a difference that the list leaves out is found") {
  const TempDirectory folder;
  RunSpec run = resident(dense());
  run.layout.cuda_graphs = CudaGraphs::full;
  const Recipe recipe = export_run(run, torchtitan);
  Keys keys = listed_keys(recipe.not_expressed);
  REQUIRE(std::erase(keys, "fsdp_config.cuda_graphs") == 1);
  const RunSpec back = with_keys_of(imported_again(recipe, run, torchtitan, folder).run, run, keys);
  CHECK_FALSE(same(simulated(run, "torchtitan"), simulated(back, "torchtitan")));
}
