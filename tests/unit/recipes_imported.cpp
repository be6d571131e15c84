// Files as people write them for other trainers, read as runs; and files that nobody should write.
#include "planner/recipes/recipe.hpp"

#include <catch2/catch.hpp>

#include "tests/fixtures/recipe_runs.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using Catch::Matchers::Contains;
using namespace wt;
using namespace wt::test;

namespace {

ImportedRun imported(const std::string& file, const RecipeSource& source = {}) {
  return import_run(read_bytes("tests/data/recipes/" + file), "tests/data/recipes/" + file, source);
}

std::string refusal(const std::string& text, const std::string& origin, const RecipeSource& source = {}) {
  return usage_error([&] { import_run(text, origin, source); });
}

}  // namespace

TEST_CASE("a torchtitan job with defaults") {
  const ImportedRun job = imported("deepseek_v2_lite.toml", {.format = {}, .model = "", .gpus = 64});
  CHECK(job.format == RecipeFormat::torchtitan);
  CHECK(job.run.model.name == "deepseek-v2-lite");
  const Layout& l = job.run.layout;
  CHECK(l.name() == "2x32 expert 8 context 2");  // -1: 64 GPUs / 2 replicas / context 2 = 16, and context inside
  CHECK(l.reshard_after_forward);
  CHECK(job.run.global_batch == 4 * 64 / 2);  // -1: once the local batch of each of the data ranks
  CHECK(l.recompute.of(0, 27).block == false);
  CHECK(l.recompute.of(1, 27).block);  // every second layer, the second first
  CHECK(job.run.optimizer.beta2 == 0.95);
  CHECK(job.run.precisions.forward == NumberFormat::fp8);
  CHECK(says(job.assumed, "model.converters: found quantize.linear.float8 alone, taken as amp_fp8 of all products"));
  CHECK_FALSE(says(job.ignored, "compile.enable"));
  CHECK_FALSE(says(job.assumed, "compile.enable"));
}

TEST_CASE("a launch script of Megatron-LM with lists and variables") {
  const ImportedRun job = imported("mixtral.sh");
  CHECK(job.format == RecipeFormat::megatron_core);
  const RunSpec& run = job.run;
  CHECK(run.layout.world() == 128);  // 16 nodes, SLURM_NNODES's fallback, of 8
  CHECK(run.layout.name() == "1x16 expert 8 tensor 2+sequence pipeline 4x2");
  CHECK(run.microbatches() == 16);
  CHECK(run.steps == 500000);
  CHECK(run.optimizer.final_lr_fraction == 0.1);
  CHECK(run.optimizer.beta2 == 0.999);  // Megatron's default
  const ModelSpec mixtral = read_model("mixtral-8x7b");
  CHECK(run.model.total_parameters() == mixtral.total_parameters());
  CHECK(run.model.flops_per_token(4096) == mixtral.flops_per_token(4096));
  CHECK(says(job.learning, "init-method-std: found 0.01"));
  CHECK(says(job.ignored, "--wandb-project Mixtral: found only if [ -n \"${WANDB_API_KEY}\" ]"));
  CHECK(run.model.router.z_loss_weight == 0);  // commented out
  CHECK_FALSE(run.autoresume);                 // it saves, and loads nothing
  CHECK(says(job.assumed, "overlap-grad-reduce: found none, which means false, taken as true"));
  CHECK(says(job.assumed, "overlap-param-gather: found none, which means false, taken as true"));
  CHECK_FALSE(says(job.assumed, "moe-grouped-gemm"));  // it is there
}

TEST_CASE("overrides of Megatron-Bridge in a file") {
  const ImportedRun job = imported("qwen3_bridge.yaml", {.format = {}, .model = "qwen3-30b-a3b", .gpus = 32});
  CHECK(job.format == RecipeFormat::megatron_bridge);
  const Layout& l = job.run.layout;
  CHECK(l.chunk_layers == std::vector<std::int64_t>{25, 23});
  CHECK(l.whole_experts);
  CHECK(l.dispatcher == Dispatcher::hybridep);
  CHECK(to_string(l.recompute) == "norm+moe_act");
  CHECK(job.run.precisions.forward == NumberFormat::mxfp8);
}

TEST_CASE("an override of Megatron-Bridge changes the recipe's model, and none takes a part of it away") {
  const auto model = [](const std::string& overrides) {
    return import_run(
               "torchrun --nproc-per-node 8 run_recipe.py --recipe qwen3_30b_a3b_pretrain_config "
               "train.micro_batch_size=1 train.global_batch_size=8 dataset.sequence_length=4096 " +
                   overrides,
               "job.sh", {})
        .run.model;
  };
  const ModelSpec whole = read_model("qwen3-30b-a3b");
  CHECK(model("").total_parameters() == whole.total_parameters());
  const ImportedRun bare =
      import_run("torchrun --nproc-per-node 8 run_recipe.py --recipe llama31_8b_pretrain_config", "job.sh", {});
  CHECK(bare.run.global_batch == 512);  // recipes/llama/llama3.py
  CHECK(model("model.num_layers=4").layers == 4);
  CHECK(model("model.num_layers=4").experts == whole.experts);
  CHECK(model("model.num_layers=4").attention.qk_norm == whole.attention.qk_norm);
  CHECK(model("model.num_moe_experts=null model.expert_model_parallel_size=1").experts == 0);
  CHECK(model("model.moe_router_force_load_balancing=true").router.forced == RouterSpec::Forced::balanced);
}

TEST_CASE("a job of NeMo Automodel finds its model by the repository") {
  const ImportedRun job = imported("automodel_qwen3.yaml");
  CHECK(job.format == RecipeFormat::automodel);
  CHECK(job.run.model.name == "qwen3-30b-a3b");
  CHECK(job.run.layout.name() == "1x16 expert 16 pipeline 4x2 deepep");
  CHECK(job.run.layout.microbatch == 2);
  CHECK(job.run.optimizer.eps == 1e-5);  // PyYAML reads a text here, Automodel a number
}

TEST_CASE("an LLM Foundry recipe means its own defaults") {
  const ImportedRun job = imported("mpt_1b.yaml", {.format = {}, .model = "", .gpus = 16});
  CHECK(job.format == RecipeFormat::llm_foundry);
  const RunSpec& run = job.run;
  CHECK(run.steps == 24'000'000'000 / (512 * 2048) + 1);  // the last batch goes beyond the tokens
  CHECK(run.seq == 2048);                                 // ${variables.max_seq_len}
  CHECK(run.dataset.shuffle_seed == 17);
  CHECK(run.model.norm == Norm::layernorm);
  CHECK(run.model.norm_bias);
  CHECK(run.model.ffn_bias);
  CHECK(run.model.tied);
  CHECK(run.model.activation == Activation::gelu);
  CHECK(run.model.ffn == 4 * 2048);
  CHECK_FALSE(run.pure_reduction);
  CHECK(says(job.assumed, "fsdp_config.mixed_precision: found PURE; gradients are reduced in fp32"));
  CHECK(run.optimizer.weight_decay == Approx(0.1));  // decoupled: 2e-5 / 2e-4
  CHECK(run.layout.name() == "1x16 expert 1");
  CHECK(run.model.learned_positions == 2048);
  CHECK(run.model.total_parameters() == 1'315'950'592);
  CHECK(run.optimizer.first_step == 0);
  CHECK(says(job.ignored, "callbacks.speed_monitor.window_size: found 10; metrics.jsonl has it in any case"));
}

TEST_CASE("lengths of LLM Foundry in all their units") {
  const auto steps = [](const std::string& duration) {
    return import_run(
               "tokenizer: {name: x}\nmodel: {name: mpt_causal_lm}\nmax_seq_len: 100\nvariables: {data_remote: "
               "}\nrun_name: "
               "${variables.data_remote}\n"
               "global_train_batch_size: 10\ndevice_train_microbatch_size: 1\nmax_duration: " +
                   duration + "\nfsdp_config: {}\nscheduler: {t_warmup: 0.5dur}\n",
               "job.yaml", {.format = {}, .model = "", .gpus = 10})
        .run;
  };
  CHECK(steps("40ba").steps == 40);
  CHECK(steps("1e4tok").steps == 10);
  CHECK(steps("10_000tok").steps == 10);
  CHECK(steps("200sp").steps == 20);
  CHECK(steps("2ep").steps == 2);  // assumed: the data, which are not here, say how long an epoch is
  CHECK(steps("40ba").optimizer.warmup_steps == 20);
  CHECK_THAT(usage_error([&] { steps("40 weeks"); }),
             Contains("max_duration: found '40 weeks', needs a number of batches such as 40ba"));
  CHECK_THAT(usage_error([&] { steps("ba"); }), Contains("found 'ba'"));
}

TEST_CASE("a shell script's words") {
  const auto run = [](const std::string& more) {
    return import_run(
               "# comment --tensor-model-parallel-size 8\nEXTRA=\"--micro-batch-size 2 --global-batch-size=64\"\n"
               "A=(--num-layers 4 # --num-layers 8\n --hidden-size 512 --num-attention-heads 8)\nA+=(--vocab-size "
               "1000)\n"
               "echo --not-this; torchrun --nproc_per_node 8 train.py ${A[@]} \\\n $EXTRA --seq-length '128' --bf16 "
               "--position-embedding-type rope " +
                   more + "\n",
               "job.sh", {})
        .run;
  };
  CHECK(run("").layout.world() == 8);
  CHECK(run("").layout.microbatch == 2);
  CHECK(run("").model.layers == 4);
  CHECK(run("").model.ffn == 2048);          // 4 x hidden without swiglu
  CHECK(run("--swiglu").model.ffn == 1344);  // 2/3 of it, a multiple of 64
  CHECK(run("--lr ${LR:-3e-4}").optimizer.lr == 3e-4);
  CHECK(run("--train-samples 64000 --lr-warmup-fraction 0.01").steps == 1000);  // of 64 sequences
  CHECK(run("--train-samples 64000 --lr-warmup-fraction 0.01").optimizer.warmup_steps == 10);
  CHECK(run("--log-interval $((2*3)) --seed 5 2>&1 | tee $(date).log").seed == 5);
  CHECK(run("--context-parallel-size 2").layout.context_ring);  // p2p is Megatron's default
  CHECK(run("--num-experts 4 --moe-layer-freq '([0]*1+[1]*3)'").model.dense_layers == 1);
  CHECK(run("--num-experts 4 --moe-layer-freq 2").model.moe(0));
  CHECK_FALSE(run("--num-experts 4 --moe-layer-freq 2").model.moe(1));
  CHECK(run("--recompute-granularity full --recompute-method block --recompute-num-layers 1")
            .layout.recompute.of(0, 4)
            .block);
  CHECK(to_string(run("--recompute-granularity full --recompute-method block --recompute-num-layers 1 "
                      "--pipeline-model-parallel-size 2")
                      .layout.recompute) == "block:chunk-1");
}

TEST_CASE("any text is a command line, a file or an error") {
  const std::string letters = " \n\t\"'$(){}[]#;|&=-+ab1\\,.:*";
  std::uint64_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (int length = 0; length < 24; ++length) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text += letters[static_cast<std::size_t>(state >> 33) % letters.size()];
    }
    for (const char* name : {"job.sh", "job.toml", "job.yaml", "job"}) {
      INFO(name << ": " << text);
      CHECK_FALSE(refusal(text, name, {{}, "mixtral-8x7b", 8}).empty());  // and of usage
    }
  }
}

TEST_CASE("long words and deep lists are read or refused") {
  const std::string million(1000000, '('), word(1000000, 'x'), lists(100000, '[');
  const std::string flags =
      "torchrun --nproc-per-node 8 x.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --vocab-size 1000 "
      "--micro-batch-size 1 --seq-length 128 --max-position-embeddings 128 --num-experts 4 --moe-layer-freq ";
  CHECK_THAT(refusal(flags + "'" + million + "'", "job.sh"), Contains("needs a number or lists"));
  CHECK_THAT(refusal(flags + "'[1]*99999999999999999999'", "job.sh"), Contains("needs a number or lists"));
  CHECK(refusal(flags + "1 --wandb-project '" + million + "'", "job.sh", {RecipeFormat::megatron_core, "", 0}) ==
        "no error");
  CHECK_THAT(refusal(flags + "1 a." + word + "=" + word, "job.sh", {RecipeFormat::megatron_core, "", 0}),
             Contains("found a word that Megatron-LM core_v0.16.1 does not have"));
  CHECK(refusal("a: " + lists, "job.yaml") != "no error");
  CHECK(refusal("a = " + lists, "job.toml") != "no error");
  CHECK(refusal(word, "job") != "no error");
}

TEST_CASE("broken files and missing facts are refused with what is needed") {
  const RecipeSource none;
  CHECK_THAT(refusal("[model\n", "job.toml"), Contains("job.toml:1: found broken TOML"));
  CHECK_THAT(refusal("a: [b\n", "job.yaml"), Contains("not valid YAML"));
  CHECK_THAT(refusal("# nothing\n", "job.toml"), Contains("found no keys, needs those of torchtitan 0.2.2"));
  CHECK_THAT(refusal("hello", "job.sh"), Contains("found no flags, needs a command line, YAML or TOML"));
  const std::string llama = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n";
  CHECK_THAT(refusal(llama, "job.toml"), Contains("needs the number of GPUs") && Contains("give --gpus N"));
  CHECK_THAT(refusal("[model]\nname = \"llama3\"\nflavor = \"1B\"\n", "job.toml"),
             Contains("model.flavor: found llama3 1B, which is no flavor of torchtitan 0.2.2's language models"));
  CHECK_THAT(refusal(llama + "[parallelism]\ndata_parallel_shard_degree = 8\n", "job.toml", {{}, "", 16}),
             Contains("found 8 GPUs, and 16 by --gpus"));
  CHECK_THAT(refusal(llama + "[parallelism]\ntensor_parallel_degree = \"two\"\n", "job.toml", {{}, "", 16}),
             Contains("parallelism.tensor_parallel_degree: found \"two\", needs a whole number from 1"));
  CHECK_THAT(refusal(llama + "[parallelism]\ntensor_parallel_degree = 3\n", "job.toml", {{}, "", 16}),
             Contains("found 16 GPUs, needs a multiple of tensor x pipeline x other degrees = 3"));
  CHECK_THAT(refusal("torchrun --nproc-per-node 8 x.py --num-layers 4", "job.sh"),
             Contains("num-layers: found no model's shape") && Contains("--model NAME"));
  CHECK_THAT(refusal("max_seq_len: ${nowhere}\ntokenizer: {name: x}\n", "job.yaml"),
             Contains("found '${nowhere}', needs a reference to a key of this file"));
  CHECK_THAT(refusal("a: ${b}\nb: ${a}\ntokenizer: {name: x}\n", "job.yaml"), Contains("needs a reference to a key"));
  CHECK_THAT(usage_error([] { recipe_format_from_string("torchtitn", "--to"); }),
             Contains("--to: found 'torchtitn'; did you mean 'torchtitan'?"));
}

TEST_CASE("words that a format does not have are refused, and those that we do not have are assumed") {
  const std::string flags =
      "torchrun --nproc-per-node 8 x.py --micro-batch-size 1 --global-batch-size 64 --seq-length 4096 --bf16 ";
  const RecipeSource mixtral{.format = {}, .model = "mixtral-8x7b", .gpus = 0};
  const auto refused = [&](const std::string& more) { return refusal(flags + more, "job.sh", mixtral); };
  CHECK_THAT(refused("--recompute-granularity some"), Contains("found some, allowed are full, selective"));
  CHECK_THAT(refused("--recompute-granularity selective --recompute-modules mlp moe attn"),
             Contains("recompute-modules: found attn, needs core_attn"));
  CHECK_THAT(refused("--fp8-format hybrid --fp8-recipe new"),
             Contains("fp8-recipe: found new, allowed are tensorwise"));
  CHECK_THAT(refused("--moe-token-dispatcher-type flex --expert-model-parallel-size 8 --moe-flex-dispatcher-backend x"),
             Contains("found x, allowed are deepep, hybridep"));
  CHECK_THAT(refused("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'E|t|L'"),
             Contains("found 3 chunks, needs a multiple of the 4 stages"));
  CHECK_THAT(refused("--expert-model-parallel-size 16"), Contains("expert"));
  const ImportedRun assumed =
      import_run(flags + "--expert-model-parallel-size 8 --lr-decay-style WSD --cp-comm-type a2a", "job.sh", mixtral);
  CHECK(assumed.run.layout.dispatcher == Dispatcher::allgather);  // the default of 0.16.1
  CHECK_THAT(refused("--moe-token-dispatcher-type ring"),
             Contains("found ring, allowed are allgather, alltoall, flex"));
  CHECK(says(import_run(flags + "--use-megatron-fsdp --moe-token-dispatcher-type alltoall", "job.sh", mixtral).assumed,
             "data-parallel-sharding-strategy: found none, which is no_shard in 0.16.1"));
  CHECK(says(assumed.learning, "lr-decay-style: found WSD, taken as cosine"));
  CHECK(says(assumed.assumed, "found no distributed optimizer, taken as 8 ranks"));
  CHECK(says(assumed.assumed, "attention-dropout: found 0.1, taken as 0"));  // Megatron-LM's default
}
