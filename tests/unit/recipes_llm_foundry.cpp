// Recipes of LLM Foundry 0.22.0: what each key becomes, by a census of the keys in its scripts/train/yamls, and what
// goes there and back.
#include <catch2/catch.hpp>

#include "planner/recipes/recipe.hpp"
#include "tests/support/recipe_runs.hpp"
#include "tests/support/usage_error.hpp"

using Catch::Matchers::Contains;
using namespace wt;
using namespace wt::test;

namespace {

/// Of all its recipes for mpt_causal_lm, with other lines behind.
std::string mpt(const std::string& model, const std::string& more = "") {
  return "variables: {global_seed: 17, unused: x}\nmax_seq_len: 64\nrun_name:\nmodel: {name: mpt_causal_lm, d_model: "
         "32, "
         "n_heads: 4, n_layers: 2, vocab_size: 100, max_seq_len: '${max_seq_len}'" +
         (model.empty() ? "" : ", " + model) +
         "}\ntokenizer: {name: x, kwargs: {model_max_length: 64}}\nglobal_train_batch_size: 8\n"
         "device_train_microbatch_size: 2\nmax_duration: 40ba\nseed: ${variables.global_seed}\n"
         "optimizer: {name: decoupled_adamw, lr: 1.0e-3, betas: [0.9, 0.95], eps: 1.0e-8, weight_decay: 0.0}\n" +
         more;
}
ImportedRun read(const std::string& text) {
  return import_run(text, "job.yaml", {.format = {}, .model = "", .gpus = 4});
}
ModelSpec model(const std::string& keys) { return read(mpt(keys)).run.model; }
std::string refusal(const std::string& text) {
  return usage_error([&] { read(text); });
}

}  // namespace

TEST_CASE("an mpt_causal_lm that says nothing is MPT") {
  const ModelSpec m = model("");
  CHECK(m.learned_positions == 64);
  CHECK(m.no_rotation());
  CHECK(m.tied);
  CHECK(m.norm_bias);
  CHECK(m.ffn_bias);
  CHECK(m.attention.bias == AttentionSpec::Bias::all);
  CHECK(m.activation == Activation::gelu);
  // Embedding, positions, norms and products with their biases, as MPTForCausalLM has them.
  CHECK(m.total_parameters() ==
        100 * 32 + 64 * 32 + 2 * 32 +
            2 * (2 * 2 * 32 + (3 * 32 * 32 + 3 * 32) + (32 * 32 + 32) + (32 * 128 + 128) + (128 * 32 + 32)));
}

TEST_CASE("activations, positions and norms of an mpt_causal_lm") {
  CHECK(model("ffn_config: {ffn_type: mptglu}").activation == Activation::geglu);
  CHECK(model("ffn_config: {ffn_type: mptglu, ffn_act_fn: {name: silu}}").activation == Activation::swiglu);
  CHECK(model("ffn_config: {ffn_act_fn: {name: gelu, approximate: tanh}}").activation == Activation::gelu_tanh);
  CHECK(model("attn_config: {rope: true}").learned_positions == 0);
  CHECK(model("attn_config: {alibi: true}").attention.alibi);
  CHECK(model("attn_config: {qk_ln: true}").attention.qk_layernorm);
  CHECK_FALSE(model("norm_type: rmsnorm, attn_config: {qk_gn: true}").attention.qk_layernorm);
  const ModelSpec bare = model("no_bias: true");
  CHECK_FALSE((bare.norm_bias || bare.ffn_bias || bare.attention.bias != AttentionSpec::Bias::none));
  const ModelSpec moe = model("no_bias: true, ffn_config: {ffn_type: mb_dmoe, moe_num_experts: 4, moe_top_k: 2}");
  CHECK(moe.activation == Activation::gelu_tanh);
  CHECK(moe.router.aux_of_microbatch);
  CHECK(moe.router.aux_loss_weight == 0.1);
  CHECK_FALSE(moe.router.normalize);
  CHECK(moe.untrainable().empty());
  CHECK_THAT(refusal(mpt("ffn_config: {ffn_act_fn: {name: silu}}")), Contains("in an FFN without a gate, needs gelu"));
  CHECK_THAT(refusal(mpt("learned_pos_emb: false")), Contains("needs positions"));
  CHECK_THAT(refusal(mpt("ffn_config: {ffn_type: mb_dmoe, moe_normalize_expert_weights: 2}")), Contains("needs 1"));
}

TEST_CASE("each stock key is left out with its reason") {
  const ImportedRun job = read(mpt(
      "init_device: meta, loss_fn: torch_crossentropy, attn_config: {attn_impl: flash, fused_qkv: false}",
      "train_loader: {name: text, dataset: {local: ./c4, split: train, shuffle: true, max_seq_len: 64, shuffle_seed: "
      "3}, "
      "drop_last: true, num_workers: 8, pin_memory: false, prefetch_factor: 2, persistent_workers: true, timeout: 0}\n"
      "eval_loader: {name: text, dataset: {local: ./c4, split: val}, drop_last: false}\n"
      "eval_interval: 500ba\neval_first: false\neval_subset_num_batches: -1\ndevice_eval_batch_size: 4\n"
      "fsdp_config: {sharding_strategy: FULL_SHARD, mixed_precision: PURE, activation_checkpointing: false, "
      "activation_checkpointing_reentrant: false, activation_cpu_offload: false, limit_all_gathers: true, verbose: "
      "false, state_dict_type: sharded}\nprogress_bar: false\nlog_to_console: true\nconsole_log_interval: 1ba\n"
      "callbacks: {speed_monitor: {window_size: 10}, lr_monitor: {}, memory_monitor: {}, runtime_estimator: {}}\n"
      "loggers: {mlflow: {experiment_name: e}}\nexpandable_segments: true\n"));
  CHECK(job.run.name == "job");
  CHECK(job.run.seed == 17);
  CHECK(job.run.dataset.shuffle_seed == 3);
  CHECK(says(job.dropped, "model.init_device: found meta; weights are drawn rank by rank"));
  CHECK(says(job.dropped, "train_loader.num_workers: found 8; our loader reads shards without worker processes"));
  CHECK(job.run.dataset.shuffle);
  CHECK(job.run.dataset.streams.front().local_folder() == "./c4/train");
  REQUIRE(job.run.evaluation.sets.size() == 1);
  CHECK(job.run.evaluation.sets.front().dataset.streams.front().local_folder() == "./c4/val");
  CHECK(job.run.evaluation.interval == 500);
  CHECK(job.run.evaluation.device_batch == 4);
  REQUIRE(job.run.loggers.mlflow);
  CHECK(job.run.loggers.mlflow->experiment_name == "e");
  CHECK_FALSE(says(job.dropped, "variables."));
  CHECK_FALSE(says(job.dropped, "state_dict_type"));
  for (const std::string& what : job.dropped) CHECK_THAT(what, Contains("; "));  // none without a reason
}

TEST_CASE("what would make another model or run of it is listed as assumed") {
  const ImportedRun job = read(
      "model: {name: hf_causal_lm, pretrained_model_name_or_path: databricks/dbrx-instruct, config_overrides: {}, "
      "peft_config: {peft_type: LORA, r: 64}}\ntokenizer: {name: x}\nmax_seq_len: 64\nglobal_train_batch_size: "
      "16\nmax_duration: 2ep\noptimizer: {name: decoupled_lionw}\ncallbacks: {hf_checkpointer: {save_folder: "
      "\"./{run_name}/hf\", save_interval: 1dur}}\nrun_name: ft\n");
  CHECK(job.run.model.name == "dbrx");
  CHECK(job.run.export_path == "./ft/hf");
  CHECK(says(job.assumed, "model.peft_config.peft_type: found LORA; the run trains all weights"));
  CHECK(says(job.assumed, "model.pretrained: found true; weights are drawn by seed unless load_path names a folder"));
  CHECK(says(job.assumed, "max_duration: found epochs of a data set that is not here"));
}

TEST_CASE("a finetuning loader comes over with its targets and its packing") {
  const auto loader = [](const std::string& dataset) {
    return "train_loader: {name: finetuning, drop_last: true, num_workers: 8, dataset: {remote: s3://b/ft, local: "
           "/cache, max_seq_len: 64, decoder_only_format: true" +
           dataset + "}}\n";
  };
  const ImportedRun plain = read(mpt("", loader("")));
  REQUIRE(plain.run.dataset.finetuning);
  CHECK(*plain.run.dataset.finetuning == FinetuningSpec{});
  CHECK(says(plain.assumed, "train_loader.dataset.eos_token_id: found none; LLM Foundry ends each last response"));
  const ImportedRun packed = read(mpt("attn_config: {attn_uses_sequence_id: true}",
                                      loader(", target_prompts: LENGTH>=9, target_responses: ALL, packing_ratio: 2.5, "
                                             "eos_token_id: 3, allow_pad_trimming: true") +
                                          "eval_loader: {name: finetuning, label: answers, dataset: {local: e, "
                                          "max_seq_len: 64, decoder_only_format: true, packing_ratio: 2.5}}\n"));
  const FinetuningSpec& spec = *packed.run.dataset.finetuning;
  CHECK(spec.prompts == FinetuningSpec::Prompts::long_ones);
  CHECK(spec.shortest_prompt == 9);
  CHECK(spec.all_responses);
  CHECK(spec.packing_ratio == 2.5);
  CHECK(spec.eos_token_id == 3);
  CHECK(packed.run.samples_per_step() == 20);
  CHECK_FALSE(says(packed.assumed, "train_loader"));
  CHECK(says(packed.dropped, "train_loader.dataset.allow_pad_trimming: found true; padding changes no loss"));
  CHECK(says(packed.dropped, "eval_loader.dataset.packing_ratio: found 2.5; every example is evaluated alone"));
  REQUIRE(packed.run.evaluation.sets.size() == 1);
  CHECK(packed.run.evaluation.sets.front().dataset.finetuning == FinetuningSpec{});
  const ImportedRun mixing = read(mpt("", loader(", packing_ratio: 2, eos_token_id: 3")));
  CHECK(says(mixing.assumed, "packing_ratio: found 2 without attn_uses_sequence_id, where MPT lets the examples"));
  const ImportedRun named = read(mpt("", "train_loader: {name: finetuning, dataset: {hf_name: org/set}}\n"));
  CHECK(named.run.dataset.empty());
  CHECK(says(named.dropped, "train_loader.dataset.hf_name: found org/set; examples are read from MDS"));

  CHECK_THAT(refusal(mpt("", loader(", packing_ratio: auto"))), Contains("found auto, needs a number from 1"));
  CHECK_THAT(refusal(mpt("", loader("") + "eval_loader: {name: finetuning, dataset: {local: e, decoder_only_format: "
                                          "false}}\n")),
             Contains("eval_loader.dataset.decoder_only_format: found false, needs true"));
  std::string tokens = mpt("", loader(", eos_token_id: 3"));
  tokens.replace(tokens.find("40ba"), 4, "5000tok");
  CHECK_THAT(refusal(tokens), Contains("max_duration: found 5000 tokens of finetuning examples"));
  CHECK_THAT(refusal(mpt("attn_config: {attn_uses_sequence_id: true}",
                         "train_loader: {name: text, dataset: {local: "
                         "a}}\n")),
             Contains("attn_uses_sequence_id: found true, needs false: attention separates packed"));
}

TEST_CASE("unknown keys and what cannot be meant are refused by name") {
  CHECK_THAT(refusal(mpt("", "max_durations: 1ep\n")), Contains("max_durations") && Contains("max_duration'"));
  CHECK_THAT(refusal(mpt("d_modle: 3")), Contains("model.d_modle: found a key that LLM Foundry 0.22.0 has not"));
  CHECK_THAT(refusal(mpt("emb_pdrop: 0.1")), Contains("model.emb_pdrop: found 0.1, needs 0"));
  CHECK_THAT(refusal(mpt("fc_type: te")), Contains("model.fc_type"));
  CHECK_THAT(refusal(mpt("attn_config: {attn_uses_sequence_id: true}")), Contains("attn_uses_sequence_id"));
  CHECK_THAT(refusal(mpt("", "tp_config: {strategy: ffn}\n")), Contains("tp_config.strategy"));
  CHECK_THAT(refusal(mpt("", "code_paths: [x.py]\n")), Contains("no code of a recipe is run"));
  CHECK_THAT(refusal(mpt("", "algorithms: {alibi: {max_sequence_length: 8}}\n")), Contains("gradient_clipping alone"));
  CHECK_THAT(refusal("variables: {global_seed: 1}\nmax_seq_len: 8\nmodel: {name: hf_t5}\n" +
                     mpt("").substr(mpt("").find("tokenizer"))),
             Contains("model.name: found hf_t5"));
  CHECK_THAT(refusal(mpt("", "scheduler: {name: step}\n")), Contains("linear_decay_with_warmup"));
  CHECK(read(mpt("emb_pdrop: 0.0, fc_type: torch, logit_scale: null")).run.steps == 40);  // what our models are
}

TEST_CASE("optimizer and schedule mean what Composer does") {
  const RunSpec run = read(mpt("", "scheduler: {name: linear_decay_with_warmup, t_warmup: 0.1dur, alpha_f: 0}\n")).run;
  CHECK(run.optimizer.schedule == ScheduleKind::linear);
  CHECK(run.optimizer.warmup_steps == 4);
  CHECK(run.optimizer.first_step == 0);
  std::string lion = mpt("");
  lion.replace(lion.find("decoupled_adamw, lr: 1.0e-3"), 27, "decoupled_lionw, lr: 1.0e-6");
  lion.replace(lion.find("eps: 1.0e-8, weight_decay: 0.0"), 30, "weight_decay: 1.0e-06");
  CHECK(read(lion).run.optimizer.kind == OptimizerKind::lionw);
  CHECK(read(lion).run.optimizer.weight_decay == 1);
  std::string automatic = mpt("");
  automatic.replace(automatic.find("size: 2\n"), 8, "size: auto\n");
  CHECK(read(automatic).run.microbatch_auto);
}

TEST_CASE("an imported recipe goes back to LLM Foundry unchanged") {
  for (const char* keys : {"", "ffn_config: {ffn_type: mptglu}", "attn_config: {qk_ln: true}",
                           "no_bias: true, ffn_config: {ffn_type: mb_dmoe, moe_num_experts: 4, moe_top_k: 2}"}) {
    const RunSpec run = read(mpt(keys,
                                 "scheduler: {name: constant_with_warmup, t_warmup: 100tok}\nfsdp_config: "
                                 "{data_parallel_shard_degree: 4}\ntrain_loader: {dataset: {local: ./data}}\n"))
                            .run;
    const Recipe back = export_run(run, RecipeFormat::llm_foundry);
    CHECK(back.not_expressed.empty());
    CHECK(run_to_yaml(
              import_run(back.text, "job.yaml", {.format = RecipeFormat::llm_foundry, .model = {}, .gpus = {}}).run) ==
          run_to_yaml(run));
  }
}

TEST_CASE("so does one that packs finetuning examples") {
  const RunSpec run =
      read(mpt("attn_config: {attn_uses_sequence_id: true}",
               "scheduler: {name: constant_with_warmup, t_warmup: 12sp}\nfsdp_config: {data_parallel_shard_degree: "
               "4}\ntrain_loader: {name: finetuning, dataset: {remote: s3://b/ft, local: /cache, decoder_only_format: "
               "true, target_prompts: all, packing_ratio: 3, eos_token_id: 2}}\n"))
          .run;
  const Recipe back = export_run(run, RecipeFormat::llm_foundry);
  CHECK(back.not_expressed.empty());
  CHECK_THAT(back.text, Contains("t_warmup: 12sp") && Contains("attn_uses_sequence_id: true") &&
                            Contains("name: finetuning") && Contains("decoder_only_format: true"));
  CHECK(run_to_yaml(
            import_run(back.text, "job.yaml", {.format = RecipeFormat::llm_foundry, .model = {}, .gpus = {}}).run) ==
        run_to_yaml(run));
}
