// What simulations assume without a key of the run file: written into exports, and said of imports that differ. The
// lines that start a job, and what is left to do.
#include <catch2/catch.hpp>
#include <sstream>

#include "planner/recipes/recipe.hpp"
#include "tests/fixtures/recipe_runs.hpp"
#include "tests/fixtures/usage_error.hpp"

using Catch::Matchers::Contains;
using namespace wt;
using namespace wt::test;

namespace {

/// The settings alone: no comments.
std::string settings_of(const RunSpec& run, RecipeFormat format) {
  std::string out;
  std::istringstream lines(export_run(run, format).text);
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("#")) out += line + "\n";
  return out;
}

void set_formats(RunSpec& run, const std::string& precision) {
  const PrecisionRecipe& recipe = precision_recipe(precision, "test");
  run.precision = recipe.compute, run.precisions = recipe.precisions;
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  REQUIRE(text.find(from) != std::string::npos);
  text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("Megatron's overlaps, fused loss and asynchronous saves are said, because its flags are off by default") {
  const std::string flags = settings_of(with_stages(), RecipeFormat::megatron_core);
  for (const char* flag : {"--overlap-grad-reduce ", "--overlap-param-gather ", "--cross-entropy-loss-fusion ",
                           "--cross-entropy-fusion-impl te ", "--async-save ", "--use-persistent-ckpt-worker",
                           "--save checkpoints ", "--load checkpoints "})
    CHECK_THAT(flags, Contains(flag));
  const std::string overrides = settings_of(with_stages(), RecipeFormat::megatron_bridge);
  for (const char* said : {"ddp.overlap_grad_reduce=true ", "ddp.overlap_param_gather=true ", "comm_overlap=null",
                           "model.overlap_p2p_comm=true ", "model.batch_p2p_comm=false", "model.tp_comm_overlap=false ",
                           "checkpoint.async_save=true ", "checkpoint.load=checkpoints "})
    CHECK_THAT(overrides, Contains(said));
}

TEST_CASE("weights that are not sharded are not gathered, and Megatron-FSDP saves while training waits") {
  RunSpec run = with_context();
  run.layout = {};
  run.layout.replicate = 16;
  CHECK_THAT(settings_of(run, RecipeFormat::megatron_core),
             Contains("--overlap-grad-reduce ") && !Contains("--overlap-param-gather"));
  run.layout.replicate = 1, run.layout.shard = 16;
  const Recipe sharded = export_run(run, RecipeFormat::megatron_core);
  CHECK_THAT(sharded.text, Contains("--use-megatron-fsdp ") && !Contains("--async-save"));
  CHECK(says(sharded.not_expressed, "checkpoints: simulated as written while training goes on"));
  run.save = false;
  CHECK_FALSE(says(export_run(run, RecipeFormat::megatron_core).not_expressed, "checkpoints"));
}

TEST_CASE("shared experts compute during the alltoall, or the list says that they do not") {
  RunSpec run = with_stages();
  run.model = read_model("deepseek-v2-lite");
  run.layout.pipeline = run.layout.virtual_stages = 1;
  const Recipe exchanged = export_run(run, RecipeFormat::megatron_core);
  CHECK_THAT(exchanged.text, Contains("--moe-shared-expert-overlap "));
  CHECK_FALSE(says(exchanged.not_expressed, "shared experts"));
  run.layout.dispatcher = Dispatcher::deepep;
  const Recipe once = export_run(run, RecipeFormat::megatron_core);
  CHECK_THAT(once.text, !Contains("--moe-shared-expert-overlap"));
  CHECK(says(once.not_expressed, "shared experts: simulated during the exchange of rows"));
  CHECK_THAT(settings_of(run, RecipeFormat::megatron_bridge), Contains("model.moe_shared_expert_overlap=false "));
}

TEST_CASE("what a trainer refuses together is not written together") {
  RunSpec run = with_stages();
  run.layout.exchange_overlap = true;
  CHECK_THAT(settings_of(run, RecipeFormat::megatron_core),
             Contains("--overlap-moe-expert-parallel-comm ") && Contains("export CUDA_DEVICE_MAX_CONNECTIONS=32\n"));
  run.layout.virtual_stages = 1;
  const Recipe alone = export_run(run, RecipeFormat::megatron_core);
  CHECK_THAT(alone.text, !Contains("--overlap-moe-expert-parallel-comm"));
  CHECK(says(alone.not_expressed, "fsdp_config.overlap_expert_exchange: found true, the file says false"));
  run.layout.schedule = Schedule::dualpipe_v, run.layout.virtual_stages = 2;
  CHECK_THAT(settings_of(run, RecipeFormat::torchtitan),
             Contains("pipeline_parallel_expert_parallel_overlap = true\n"));
  run.layout.recompute = Recompute::block;
  CHECK_THAT(settings_of(run, RecipeFormat::torchtitan),
             Contains("pipeline_parallel_expert_parallel_overlap = false\n"));
  run = with_stages();
  run.layout.cuda_graphs = CudaGraphs::partial, run.layout.recompute = Recompute::block;
  CHECK_THAT(settings_of(run, RecipeFormat::megatron_core), Contains("--cuda-graph-impl none "));
}

TEST_CASE("torchtitan compiles, Automodel and LLM Foundry gather ahead") {
  const std::string titan = settings_of(with_context(), RecipeFormat::torchtitan);
  CHECK_THAT(titan, Contains("[compile]\nenable = true\ncomponents = [\"model\", \"loss\"]\n"));
  CHECK_THAT(titan, Contains("async_mode = \"async\"\n") && Contains("implementation = \"fused\"\n"));
  CHECK_THAT(settings_of(with_context(), RecipeFormat::automodel),
             Contains("enable_fsdp2_prefetch: true\n") && Contains("is_async: true\n"));
  RunSpec run = with_context();
  run.layout = {};
  run.layout.shard = 16;
  CHECK_THAT(settings_of(run, RecipeFormat::llm_foundry),
             Contains("backward_prefetch: BACKWARD_PRE\n") && Contains("forward_prefetch: true\n"));
}

TEST_CASE("a job with other switches is read as it is simulated, and the import says so") {
  const auto assumed = [](std::string text, const char* file, const std::string& from, const std::string& to) {
    CHECK(import_run(text, file, {}).assumed.empty());
    replace(text, from, to);
    return import_run(text, file, {}).assumed;
  };
  std::string text = export_run(with_context(), RecipeFormat::torchtitan).text;
  CHECK(says(assumed(text, "job.toml", "[compile]\nenable = true", "[compile]\nenable = false"),
             "compile.enable: found false, taken as true: blocks are compiled, one by one"));
  CHECK(says(assumed(text, "job.toml", "async_mode = \"async\"\n", ""),
             "checkpoint.async_mode: found none, which means \"disabled\", taken as \"async\""));
  text = export_run(with_stages(), RecipeFormat::megatron_core).text;
  CHECK(
      says(assumed(text, "pretrain.sh", "  --overlap-grad-reduce \\\n", ""),
           "overlap-grad-reduce: found none, which means false, taken as true: gradients are reduced during backward"));
  text = export_run(with_stages(), RecipeFormat::megatron_bridge).text;
  CHECK(says(assumed(text, "pretrain.sh", "ddp.overlap_param_gather=true", "ddp.overlap_param_gather=false"),
             "ddp.overlap_param_gather: found false, taken as true"));
}

TEST_CASE("latent vectors are normed in Megatron, whose flag says so") {
  RunSpec run = with_stages();
  run.model = read_model("deepseek-v2-lite");
  run.layout.virtual_stages = 1;
  std::string text = export_run(run, RecipeFormat::megatron_core).text;
  CHECK(import_run(text, "pretrain.sh", {}).run.model.attention.qk_norm == AttentionSpec::QkNorm::none);
  replace(text, "  --qk-layernorm \\\n", "");
  CHECK(says(import_run(text, "pretrain.sh", {}).assumed, "qk-layernorm: found none, taken as set"));
}

TEST_CASE("a job resumes where it saves") {
  RunSpec run = with_stages();
  std::string text = export_run(run, RecipeFormat::megatron_core).text;
  CHECK(import_run(text, "pretrain.sh", {}).run.autoresume);
  replace(text, "--load checkpoints", "--load elsewhere");
  const ImportedRun other = import_run(text, "pretrain.sh", {});
  CHECK_FALSE(other.run.autoresume);
  CHECK(says(other.ignored, "load: found elsewhere"));
  run.autoresume = false;
  CHECK_THAT(settings_of(run, RecipeFormat::megatron_core), !Contains("--load"));
  CHECK_THAT(settings_of(run, RecipeFormat::megatron_bridge), Contains("checkpoint.load=null "));
  CHECK(says(export_run(run, RecipeFormat::torchtitan).not_expressed, "autoresume: found false"));
}

TEST_CASE("formats of gradients and gathered weights follow from words of the targets") {
  const auto read = [](const std::string& words) {
    return import_run("torchrun --nproc-per-node 8 run_recipe.py --recipe llama31_8b_pretrain_config " + words,
                      "job.sh", {})
        .run;
  };
  CHECK(read("mixed_precision=fp16_mixed").pure_reduction);
  CHECK_FALSE(read("mixed_precision=bf16_mixed ddp.grad_reduce_in_fp32=false").pure_reduction);
  CHECK(read("mixed_precision=bf16_with_mxfp8_mixed").precisions.gathered_weights == NumberFormat::mxfp8);
  CHECK(read("mixed_precision=bf16_with_fp8_subchannel_scaling_mixed").precisions.gathered_weights ==
        NumberFormat::bf16);
  RunSpec run = with_stages();
  set_formats(run, "amp_fp16");
  CHECK_THAT(settings_of(run, RecipeFormat::megatron_core),
             Contains("--fp16 ") && Contains("--accumulate-allreduce-grads-in-fp32"));
  set_formats(run, "amp_fp8");
  CHECK(says(export_run(run, RecipeFormat::megatron_bridge).not_expressed,
             "precision: the first and the last layer compute in bf16 there"));
}

TEST_CASE("torchtitan's formats below 16 bits are converters, and a section without its converter does nothing") {
  RunSpec run = with_context();
  set_formats(run, "amp_fp8");
  std::string text = export_run(run, RecipeFormat::torchtitan).text;
  CHECK_THAT(text, Contains("converters = [\"quantize.linear.float8\"]\n") &&
                       Contains("[quantize.linear.float8]\nfilter_fqns = [\"output\", \"router.gate\"]\n"
                                "enable_fsdp_float8_all_gather = false\n"));
  const auto forward = [&] { return import_run(text, "job.toml", {}).run.precisions.forward; };
  CHECK(forward() == NumberFormat::fp8);
  replace(text, "converters = [\"quantize.linear.float8\"]", "converters = []");
  CHECK(forward() == NumberFormat::bf16);
  run = with_stages();
  run.layout.whole_experts = true;
  set_formats(run, "amp_fp8");
  CHECK_THAT(settings_of(run, RecipeFormat::torchtitan),
             Contains("\"quantize.grouped_mm.float8\"]\n") && Contains("fqns = [\"experts\"]\n"));
  set_formats(run, "amp_mxfp8");  // not with tensor groups
  CHECK(says(export_run(run, RecipeFormat::torchtitan).not_expressed, "precision: found amp_mxfp8"));
}

TEST_CASE("experts without expert parallelism are cut over tensor ranks in torchtitan") {
  RunSpec run = with_stages();
  run.layout.expert = 1, run.layout.whole_experts = true, run.layout.pipeline = run.layout.virtual_stages = 1;
  const Recipe recipe = export_run(run, RecipeFormat::torchtitan);
  CHECK(says(recipe.not_expressed, "fsdp_config.expert_tensor_parallel_degree: found 1, the file says 2"));
}

TEST_CASE("Automodel keeps experts' weights by default, and gathers rows without a dispatcher") {
  std::string text = export_run(
                         [] {
                           RunSpec run = with_context();
                           run.model = read_model("qwen3-30b-a3b"), run.layout = {};
                           run.layout.shard = 16, run.layout.expert = 8, run.layout.dispatcher = Dispatcher::deepep;
                           return run;
                         }(),
                         RecipeFormat::automodel)
                         .text;
  CHECK(import_run(text, "recipe.yaml", {}).run.layout.reshard_after_forward);
  replace(text, "  reshard_after_forward: true\n", "");
  replace(text, "    reshard_after_forward: true\n", "    ignore_router_for_ac: true\n");
  CHECK_FALSE(import_run(text, "recipe.yaml", {}).run.layout.reshard_after_forward);
  replace(text, "dispatcher: deepep", "dispatcher: torch");
  CHECK(import_run(text, "recipe.yaml", {}).run.layout.dispatcher == Dispatcher::allgather);
}

TEST_CASE("a benchmark's balanced routing is a switch, not another model") {
  RunSpec run = with_stages();
  run.model = read_model("qwen3-30b-a3b");
  run.model.router.forced = RouterSpec::Forced::balanced;
  CHECK_THAT(settings_of(run, RecipeFormat::torchtitan),
             Contains("flavor = \"30B-A3B\"\n") && Contains("moe_force_load_balance = true\n"));
  const std::string overrides = settings_of(run, RecipeFormat::megatron_bridge);
  CHECK_THAT(overrides, Contains("--recipe qwen3_30b_a3b_pretrain_config ") &&
                            Contains("model.moe_router_force_load_balancing=true "));
  run.model.router.forced = RouterSpec::Forced::zipf;
  CHECK(says(export_run(run, RecipeFormat::torchtitan).not_expressed, "expert_assignment: found zipf"));
}

TEST_CASE("the planned nodes start the job") {
  const RunSpec run = with_stages();  // 64 ranks
  const std::string script = export_run(run, RecipeFormat::megatron_core).text;
  CHECK(
      script.starts_with("#!/usr/bin/env bash\n#SBATCH --nodes=8 --ntasks-per-node=1 --gpus-per-node=8 --exclusive\n"));
  CHECK_THAT(script, Contains("\nexport head_node=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
                              "srun torchrun --nnodes 8 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint "
                              "$head_node:29500 pretrain_gpt.py"));
  const Recipe trays = export_run(run, RecipeFormat::torchtitan, 4);
  CHECK_THAT(trays.text, Contains("# Launch, as a script for sbatch:\n#   #SBATCH --nodes=16 ") &&
                             Contains("#   srun torchrun --nnodes 16 --nproc-per-node 4 ") &&
                             Contains("-m torchtitan.train --job.config_file job.toml\n"));
  RunSpec small = with_context();
  small.layout = {};
  small.layout.shard = 8;
  const std::string one = export_run(small, RecipeFormat::megatron_core).text;
  CHECK_THAT(one, Contains("\ntorchrun --nnodes 1 --nproc-per-node 8 --standalone pretrain_gpt.py") &&
                      !Contains("SBATCH") && !Contains("srun"));
  small.layout.shard = 16;
  CHECK_THAT(
      export_run(small, RecipeFormat::llm_foundry).text,
      Contains("#   srun bash -c 'composer -n 8 --world_size 16 --base_rank $((SLURM_NODEID * 8)) "
               "--node_rank $SLURM_NODEID --master_addr $head_node --master_port 29500 train.py recipe.yaml'\n"));
}

TEST_CASE("learning rate, warm-up and data are left to do in the file itself where the run does not say them") {
  RunSpec run = with_stages();
  run.optimizer = {};
  const Recipe open = export_run(run, RecipeFormat::megatron_core);
  REQUIRE(open.todo.size() == 3);
  for (const char* what : {"# TODO --lr: 0.001 is the default of run files", "# TODO --lr-warmup-iters: 0 steps",
                           "# TODO --data-path and --tokenizer-type"})
    CHECK_THAT(open.text, Contains(what));
  run.optimizer.lr = 3e-4, run.optimizer.warmup_steps = 1;
  CHECK(export_run(run, RecipeFormat::megatron_core).todo.size() == 1);
  RunSpec packed = with_context();
  packed.layout = {}, packed.layout.shard = 16, packed.optimizer = run.optimizer;
  packed.dataset.use_folder("./data");
  CHECK(export_run(packed, RecipeFormat::llm_foundry).todo.empty());
}
