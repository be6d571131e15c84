// Exports to other trainers, key by key against what these formats mean.
#include "planner/recipes/recipe.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "planner/recipes/bridge_recipes.hpp"
#include "planner/recipes/model_names.hpp"
#include "tests/fixtures/recipe_runs.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using Catch::Matchers::Contains;
using namespace wt;
using namespace wt::test;

namespace {

std::string exported(const RunSpec& run, RecipeFormat format) { return export_run(run, format).text; }

}  // namespace

TEST_CASE("every name of a model is one that its framework has") {
  const auto lists = nlohmann::json::parse(read_bytes("tests/data/recipes/keys.json"));
  const auto known = [&](const char* format) {
    std::set<std::string> out{""};
    for (const auto& line : lists.at(format).at("models")) {
      std::istringstream words(line.get<std::string>());
      for (std::string word; words >> word;) out.insert(word);
    }
    return out;
  };
  const std::set<std::string> flavors = known("torchtitan");
  for (const std::string& preset : preset_names("models")) {
    const ModelNames* names = names_of(read_model(preset));
    INFO(preset);
    REQUIRE(names != nullptr);
    CHECK(flavors.contains(names->torchtitan));
    CHECK((*names->bridge == '\0' || bridge_recipes().contains(names->bridge)));
    CHECK(read_model(repository_named(read_model(preset))).name == preset);
  }
  const ModelNames* qwen = names_of(read_model("Qwen/Qwen3-8B"));  // a shape of the Hub
  REQUIRE(qwen != nullptr);
  CHECK(flavors.contains(qwen->torchtitan));
  CHECK(preset_named(&ModelNames::bridge, qwen->bridge) == "Qwen/Qwen3-8B");
  CHECK(repository_named(read_model("google/gemma-2-9b")) == "google/gemma-2-9b");
}

TEST_CASE("torchtitan counts context beside shards, and a local batch holds all microbatches of a pipeline") {
  const std::string flat = exported(with_context(), RecipeFormat::torchtitan);
  CHECK_THAT(flat, Contains("data_parallel_replicate_degree = 2\n"));
  CHECK_THAT(flat, Contains("data_parallel_shard_degree = 2\n"));  // 8 / 4
  CHECK_THAT(flat, Contains("context_parallel_degree = 4\n"));
  CHECK_THAT(flat, Contains("local_batch_size = 2\n"));
  CHECK_THAT(flat, Contains("name = \"llama3\"\nflavor = \"8B\"\n"));
  const std::string staged = exported(with_stages(), RecipeFormat::torchtitan);
  CHECK_THAT(staged, Contains("local_batch_size = 8\n"));  // 64 / 8 data ranks
  CHECK_THAT(staged, Contains("pipeline_parallel_microbatch_size = 1\n"));
  CHECK_THAT(staged, Contains("pipeline_parallel_layers_per_stage = 4\n"));  // 32 layers in 4 x 2 chunks
  CHECK_THAT(staged, Contains("pipeline_parallel_schedule = \"Interleaved1F1B\"\n"));
  CHECK_THAT(staged, Contains("expert_tensor_parallel_degree = 2\n"));
}

TEST_CASE("layers that do not divide go to torchtitan part by part") {
  RunSpec run = with_stages();
  run.model = read_model("deepseek-v2-lite");
  run.layout.tensor = 1, run.layout.sequence_parallel = false, run.layout.virtual_stages = 1;
  const std::string text = exported(run, RecipeFormat::torchtitan);  // 27 layers on 4 stages: 6, 7, 7, 7
  CHECK_THAT(text, Contains(R"(module_fqns_per_model_part = [["tok_embeddings", "layers.0")"));
  CHECK_THAT(text, Contains(R"("layers.26", "norm", "output"]])"));
}

TEST_CASE("Megatron's flags say the layout and the model") {
  const Recipe recipe = export_run(with_stages(), RecipeFormat::megatron_core);
  for (const char* flag :
       {"--nnodes 8 --nproc-per-node 8 ", "--tensor-model-parallel-size 2 ", "--pipeline-model-parallel-size 4 ",
        "--num-virtual-stages-per-pipeline-rank 2 ", "--expert-model-parallel-size 8 ", "--sequence-parallel ",
        "--use-distributed-optimizer ", "--num-distributed-optimizer-instances 1 ", "--num-experts 8 ",
        "--num-query-groups 8 ", "--disable-bias-linear ", "--swiglu ", "--untie-embeddings-and-output-weights ",
        "--moe-router-load-balancing-type seq_aux_loss ", "--bf16"})
    CHECK_THAT(recipe.text, Contains(flag));
  CHECK_THAT(recipe.text, Contains("\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\n"));  // tensor parallelism needs it
  CHECK(recipe.text.find("megatron-fsdp") == std::string::npos);
  CHECK(recipe.text.starts_with("#!/usr/bin/env bash\n"));
}

TEST_CASE("shards of every microbatch are Megatron-FSDP, and a sharded optimizer is its outer strategy") {
  RunSpec run = with_context();
  run.layout.context = 1;
  CHECK_THAT(exported(run, RecipeFormat::megatron_core),
             Contains("--data-parallel-sharding-strategy optim_grads_params") &&
                 Contains("--num-distributed-optimizer-instances 2 ") &&
                 Contains("--outer-dp-sharding-strategy no_shard"));
  run.layout.optimizer_shard = 2, run.layout.reshard_after_forward = false;
  CHECK_THAT(exported(run, RecipeFormat::megatron_core), Contains("--data-parallel-sharding-strategy optim_grads ") &&
                                                             Contains("--outer-dp-sharding-strategy optim "));
}

TEST_CASE("Megatron-Bridge takes the recipe of the model, or overrides the shape of a like one") {
  RunSpec run = with_context();
  run.model = read_model("qwen3-30b-a3b");
  run.layout.context = 1;
  const Recipe shipped = export_run(run, RecipeFormat::megatron_bridge);
  CHECK_THAT(shipped.text, Contains("--recipe qwen3_30b_a3b_pretrain_config"));
  CHECK(shipped.text.find("model.num_layers=") == std::string::npos);
  run.model = read_model("mixtral-8x7b");
  const Recipe other = export_run(run, RecipeFormat::megatron_bridge);
  CHECK_THAT(other.text, Contains("model.num_layers=32 ") && Contains("model.num_moe_experts=8 "));
  CHECK(says(other.not_expressed, "mixtral-8x7b, which has no recipe there"));
}

TEST_CASE("LLM Foundry gets every key whose default differs there") {
  RunSpec run = with_context();
  run.model = read_model("dbrx");
  run.layout = {};
  run.layout.shard = 16, run.layout.expert = 8;
  run.optimizer.lr = 3e-4, run.optimizer.weight_decay = 0.1;
  const std::string text = exported(run, RecipeFormat::llm_foundry);
  for (const char* line :
       {"norm_type: layernorm\n", "no_bias: true\n", "tie_word_embeddings: false\n", "learned_pos_emb: false\n",
        "rope: true\n", "ffn_type: mb_dmoe\n", "mlp_type: glu\n", "moe_normalize_expert_weights: 1\n",
        "moe_world_size: 8\n", "moe_loss_weight: 0.05\n", "clip_qkv: 8.0\n", "weight_decay: 3.0e-05\n"})
    CHECK_THAT(text, Contains(line));
}

TEST_CASE("what a target cannot run at all is refused with what it needs") {
  const auto refused = [](const RunSpec& run, RecipeFormat format) {
    return usage_error([&] { export_run(run, format); });
  };
  CHECK_THAT(refused(with_stages(), RecipeFormat::llm_foundry), Contains("tensor_parallel_degree: found 2, needs 1"));
  CHECK_THAT(refused(preset("dbrx-3072-h100"), RecipeFormat::llm_foundry),
             Contains("found 4 with expert_parallel_degree 4, needs 1"));
  RunSpec run = with_context();
  run.layout.context = 1;
  run.model = read_model("deepseek-v2-lite");
  CHECK_THAT(refused(run, RecipeFormat::llm_foundry),
             Contains("latent attention, dense layers beside MoE layers, shared experts, needs a model"));
  run.model = read_model("qwen3-next-80b-a3b");
  CHECK_THAT(refused(run, RecipeFormat::megatron_core), Contains("linear mixers"));
  CHECK(refused(run, RecipeFormat::megatron_bridge) == "no error");  // its recipe has the model
  run.global_batch = 7;
  CHECK_THAT(refused(run, RecipeFormat::torchtitan), Contains("global_train_batch_size: found 7"));
}

TEST_CASE("data, weights to start from and weights at the end go to LLM Foundry, which has these keys") {
  RunSpec run = with_context();
  run.layout = {};
  run.layout.shard = 16;
  run.dataset.use_folder("s3://bucket/text"), run.load_path = "start", run.export_path = "end",
                                              run.dataset.shuffle_seed = 3;
  run.export_precision = Precision::bf16;
  run.layout.recompute = recompute_from_string("attention:first-4");
  run.model = read_model("mixtral-8x7b");
  run.optimizer.first_step = 0, run.model.router.aux_of_microbatch = true;  // its own ways
  run.save = false;
  const Recipe recipe = export_run(run, RecipeFormat::llm_foundry);
  CHECK(recipe.not_expressed.empty());
  const RunSpec back = import_run(recipe.text, recipe.file_name, {}).run;
  CHECK(back.dataset.folder() == run.dataset.folder());
  CHECK(back.export_path == run.export_path);
  CHECK(to_string(back.layout.recompute) == "attention:first-4");
}

TEST_CASE("recompute of some blocks goes to targets that have a word for it, and is named for the others") {
  const auto there_and_back = [](RunSpec run, const std::string& recompute, RecipeFormat format) {
    run.layout.recompute = recompute_from_string(recompute);
    const Recipe recipe = export_run(run, format);
    const bool named = std::ranges::any_of(recipe.not_expressed, [](const std::string& what) {
      return what.starts_with("fsdp_config.activation_checkpointing_target");
    });
    return to_string(import_run(recipe.text, recipe.file_name, {}).run.layout.recompute) + (named ? ", named" : "");
  };
  RunSpec run = with_stages();
  CHECK(there_and_back(run, "block:chunk-2", RecipeFormat::megatron_core) == "block:chunk-2");
  CHECK(there_and_back(run, "block:every-2", RecipeFormat::megatron_core) == "block, named");
  CHECK(there_and_back(run, "block:first-2", RecipeFormat::megatron_core) == "block, named");
  run = with_context();
  run.layout = {};
  run.layout.shard = 16;
  run.model = read_model("llama3-8b");
  CHECK(there_and_back(run, "block:every-3", RecipeFormat::torchtitan) == "block:every-3");
  CHECK(there_and_back(run, "block:chunk-2", RecipeFormat::torchtitan) == "products, named");
  run.model = read_model("mixtral-8x7b");
  CHECK(there_and_back(run, "block:first-8", RecipeFormat::llm_foundry) == "block:first-8");
  // MegaBlocks' experts are no target there: with attention they are left, alone they are whole blocks.
  CHECK(there_and_back(run, "attention:first-4+experts", RecipeFormat::llm_foundry) == "attention:first-4, named");
  CHECK(there_and_back(run, "experts:range-6-9", RecipeFormat::llm_foundry) == "block:range-6-9, named");
  CHECK(there_and_back(run, "block:every-16", RecipeFormat::llm_foundry) == "block:range-15-16,range-31-32, named");
}

TEST_CASE("Megatron-Bridge's optimizer formats are all said, whatever its recipe has") {
  RunSpec run = with_stages();
  std::string text = exported(run, RecipeFormat::megatron_bridge);
  CHECK_THAT(text, Contains("optimizer.use_precision_aware_optimizer=false") &&
                       Contains("optimizer.main_grads_dtype=torch.float32") &&
                       Contains("optimizer.exp_avg_dtype=torch.float32"));
  run.precisions.moments = NumberFormat::bf16;
  text = exported(run, RecipeFormat::megatron_bridge);
  CHECK_THAT(text, Contains("optimizer.use_precision_aware_optimizer=true") &&
                       Contains("optimizer.exp_avg_dtype=torch.bfloat16") &&
                       Contains("optimizer.exp_avg_sq_dtype=torch.bfloat16") && !Contains("precisions.moments"));
  CHECK(import_run(text, "pretrain.sh", {}).run.precisions.moments == NumberFormat::bf16);
  text.replace(text.find("exp_avg_dtype=torch.bfloat16"), 28, "exp_avg_dtype=torch.int8    ");
  CHECK_THROWS_WITH(import_run(text, "pretrain.sh", {}), Contains("optimizer.exp_avg_dtype: found torch.int8"));
}

TEST_CASE("torchtitan counts a rank's blocks through its chunks, where every n-th is more than a chunk has") {
  RunSpec run = with_stages();  // 4 stages of 2 chunks, 32 layers: 4 layers each
  run.model = read_model("llama3-8b");
  run.layout.expert = 1;
  run.layout.recompute = recompute_from_string("block:every-4");
  std::string text = export_run(run, RecipeFormat::torchtitan).text;
  const auto imported = [&] { return import_run(text, "job.toml", {}).run.layout.recompute; };
  CHECK(to_string(imported()) == "block:every-4");
  const std::string said = "selective_ac_option = \"4\"";
  REQUIRE(text.find(said) != std::string::npos);
  text.replace(text.find(said), said.size(), "selective_ac_option = \"7\"");
  // The seventh of a stage's 8 is the third of its second chunk, whose layers start at 16.
  CHECK(to_string(imported()) == "block:range-18-19,range-22-23,range-26-27,range-30-31");
  run.layout.recompute = imported();
  CHECK(to_string(import_run(export_run(run, RecipeFormat::torchtitan).text, "job.toml", {}).run.layout.recompute) ==
        to_string(run.layout.recompute));
}

TEST_CASE("what a target says otherwise is named by our keys") {
  RunSpec run = with_stages();
  run.layout.placement.assign(32, {1, 0, 2, 3, 4, 5, 6, 7});
  run.layout.cuda_graphs = CudaGraphs::full;
  run.layout.virtual_stages = 1, run.layout.schedule = Schedule::zero_bubble;
  const std::vector<std::string> missing = export_run(run, RecipeFormat::torchtitan).not_expressed;
  for (const char* what : {"model: found mixtral-8x7b", "fsdp_config.expert_placement: ",
                           "rename experts and router rows", "fsdp_config.cuda_graphs: found full, the file says none",
                           "fsdp_config.pipeline_schedule: found zero_bubble, the file says 1f1b; it has no ZB-H1"})
    CHECK(says(missing, what));
  for (const std::string& what : missing) CHECK_THAT(exported(run, RecipeFormat::torchtitan), Contains("#   " + what));
  CHECK(export_run(with_context(), RecipeFormat::torchtitan).not_expressed.empty());
  run.layout.placement.assign(32, {0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(says(export_run(run, RecipeFormat::automodel).not_expressed, "it has no copies of experts"));
}

TEST_CASE("our own format says what the trainer does not run") {
  const Recipe recipe = export_run(with_stages(), RecipeFormat::windtunnel);
  CHECK(says(recipe.not_expressed, "pipeline_parallel_degree 4: simulated alone"));
  CHECK(recipe.next_step.starts_with("windtunnel simulate"));
  const Recipe trains = export_run(preset("tiny-moe"), RecipeFormat::windtunnel);
  CHECK(trains.not_expressed.empty());
  CHECK(run_to_yaml(import_run(trains.text, "run.yaml", {}).run) == run_to_yaml(preset("tiny-moe")));
}
