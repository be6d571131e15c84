// Recipes of LLM Foundry 0.22.0: what each key becomes, by a census of the keys in its scripts/train/yamls, and what
// goes there and back.
#include <catch2/catch.hpp>

#include "planner/recipes/recipe.hpp"
#include "tests/fixtures/recipe_runs.hpp"
#include "tests/fixtures/usage_error.hpp"

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
  CHECK(says(job.ignored, "model.init_device: found meta; weights are drawn rank by rank"));
  CHECK(says(job.ignored, "train_loader.num_workers: found 8; our loader reads shards without worker processes"));
  CHECK(job.run.dataset.shuffle);
  CHECK(job.run.dataset.streams.front().local_folder() == "./c4/train");
  REQUIRE(job.run.evaluation.sets.size() == 1);
  CHECK(job.run.evaluation.sets.front().dataset.streams.front().local_folder() == "./c4/val");
  CHECK(job.run.evaluation.interval == 500);
  CHECK(job.run.evaluation.device_batch == 4);
  REQUIRE(job.run.loggers.mlflow);
  CHECK(job.run.loggers.mlflow->experiment_name == "e");
  CHECK_FALSE(says(job.ignored, "variables."));
  CHECK_FALSE(says(job.ignored, "state_dict_type"));
  for (const std::string& what : job.ignored) CHECK_THAT(what, Contains("; "));  // none without a reason
}

TEST_CASE("several sets of eval_loader come over with their labels") {
  const std::string sets =
      "eval_loader:\n- {label: c4, name: text, drop_last: false, dataset: {local: '${variables.data}', split: val}}\n"
      "- {label: code, name: text, dataset: {streams: {the.stack: {local: ./s}, b: {local: ./b}}}}\n";
  std::string recipe = mpt("", sets + "eval_interval: 10ba\neval_subset_num_batches: 3\ndevice_eval_batch_size: 3\n");
  recipe.replace(0, recipe.find('\n') + 1, "variables: {data: ./c4, global_seed: 17}\n");
  const ImportedRun job = read(recipe);
  REQUIRE(job.run.evaluation.sets.size() == 2);
  CHECK(job.run.evaluation.sets[0].label == "c4");
  CHECK(job.run.evaluation.sets[0].dataset.streams.front().local_folder() == "./c4/val");
  REQUIRE(job.run.evaluation.sets[1].dataset.streams.size() == 2);
  CHECK(job.run.evaluation.sets[1].dataset.streams[0].name == "the.stack");
  CHECK(job.run.evaluation.interval == 10);
  CHECK(job.run.evaluation.subset_batches == 3);
  CHECK(job.run.evaluation.device_batch == 3);
  CHECK(says(job.ignored, "eval_loader[0].drop_last: found false; every sample counts once"));
  CHECK(run_from_text(run_to_yaml(job.run), "run.yaml").evaluation == job.run.evaluation);
  std::string other = recipe;
  other.replace(other.find("eval_loader:"), 12, "eval_loaders:");  // the same under its other name
  CHECK(read(other).run.evaluation == job.run.evaluation);
  CHECK(says(read(other).ignored, "eval_loaders[0].drop_last: found false; every sample counts once"));
  CHECK_THAT(refusal(recipe + "eval_loaders: [{label: a, dataset: {local: ./a}}]\n"),
             Contains("eval_loaders: found eval_loader, too"));
  // As LLM Foundry: a list needs labels, the label of one loader alone counts for nothing.
  CHECK_THAT(refusal(mpt("", "eval_loader: [{dataset: {local: ./a}}]\n")),
             Contains("eval_loader[0].label: found none, needs one"));
  CHECK_THAT(refusal(mpt("", "eval_loader: [{label: a, dataset: {local: ./a}}, {label: a, dataset: {local: ./b}}]\n")),
             Contains("eval_loader[1].label: found 'a' twice"));
  CHECK_THAT(refusal(mpt("", "eval_loader: [{label: a/b, dataset: {local: ./a}}]\n")), Contains("a word without '/'"));
  CHECK(read(mpt("", "eval_loader: {label: a, dataset: {local: ./a}}\n")).run.evaluation.sets.front().label == "eval");
  // One that is no MDS folder is left out by name.
  const ImportedRun some = read(mpt(
      "", "eval_loader: [{label: a, dataset: {hf_name: x}}, {label: b, dataset: {local: ./b}}]\neval_interval: 1ba\n"));
  REQUIRE(some.run.evaluation.sets.size() == 1);
  CHECK(some.run.evaluation.sets.front().label == "b");
  CHECK(says(some.ignored, "eval_loader[0].dataset.hf_name: found x"));
}

TEST_CASE("names with dots stay names") {
  const ImportedRun job = read(mpt("",
                                   "train_loader: {dataset: {shuffle: true, streams: {en.wiki: {local: ./a}, "
                                   "'v1.2': {local: ./b, split: train}, '3': {local: ./c}}}}\n"
                                   "loggers: {mlflow: {tags: {mlflow.note: x}}}\n"));
  REQUIRE(job.run.dataset.streams.size() == 3);
  CHECK(job.run.dataset.streams[0].name == "en.wiki");
  CHECK(job.run.dataset.streams[1].name == "v1.2");
  CHECK(job.run.dataset.streams[1].local_folder() == "./b/train");
  CHECK(job.run.dataset.streams[2].name == "3");
  CHECK(job.run.loggers.mlflow->tags.at("mlflow.note") == "x");
  CHECK_THAT(refusal(mpt("", "max_seq.len: 3\n")), Contains("\"max_seq.len\": found a key that LLM Foundry"));
}

TEST_CASE("a recipe has one unit of time") {
  RunSpec run = read(mpt("")).run;
  run.optimizer.warmup_steps = 3;
  CHECK_THAT(export_run(run, RecipeFormat::llm_foundry).text,
             Contains("max_duration: 40ba") && Contains("t_warmup: 3ba"));
  run.optimizer.warmup_steps = 3.5;  // batches of 8 x 64 tokens
  const Recipe tokens = export_run(run, RecipeFormat::llm_foundry);
  CHECK_THAT(tokens.text, Contains("max_duration: 20480tok") && Contains("t_warmup: 1792tok"));
  run.optimizer.schedule_steps = 39.25;  // inside of the last batch
  CHECK_THAT(export_run(run, RecipeFormat::llm_foundry).text, Contains("max_duration: 20096tok") && !Contains("t_max"));
  run.optimizer.schedule_steps = 20;
  CHECK(says(export_run(run, RecipeFormat::llm_foundry).not_expressed,
             "scheduler.t_max: found 20 batches of 40, and LLM Foundry refuses one before the run's end"));
  CHECK(says(read(mpt("", "scheduler: {t_warmup: 512tok}\n")).assumed,
             "scheduler.t_warmup: found 512tok, and an end in ba, which LLM Foundry refuses; taken as 1 batches"));
  CHECK(read(mpt("", "scheduler: {t_warmup: 0.1dur}\n")).assumed == read(mpt("")).assumed);
}

TEST_CASE("what stock recipes need: merged maps, a microbatch that is reduced, Llama 3 by its repository") {
  const ImportedRun merged = read(mpt(
      "",
      "train_loader: &train\n  name: text\n  dataset: &data {local: ./c4, split: train, shuffle: true}\n  drop_last: "
      "true\neval_loader:\n  <<: *train\n  dataset: {<<: [*data, {split: x, shuffle_seed: 3}], split: val}\n"));
  REQUIRE(merged.run.evaluation.sets.size() == 1);
  const DatasetSpec& set = merged.run.evaluation.sets.front().dataset;
  CHECK(set.streams.front().local_folder() == "./c4/val");  // its own goes before what is merged
  CHECK(set.shuffle_seed == 3);
  CHECK(says(merged.ignored, "eval_loader.drop_last: found true"));
  std::string large = mpt("");
  large.replace(large.find("microbatch_size: 2"), 18, "microbatch_size: 5");
  const ImportedRun job = read(large);  // 8 sequences on 4 GPUs
  CHECK(job.run.layout.microbatch == 2);
  CHECK(says(job.assumed, "device_train_microbatch_size: found 5, taken as 2"));
  CHECK(
      read("model: {name: hf_causal_lm, pretrained_model_name_or_path: meta-llama/Meta-Llama-3-8B}\ntokenizer: {name: "
           "x}\nmax_seq_len: 64\nglobal_train_batch_size: 16\nmax_duration: 2ba\n")
          .run.model.name == "llama3-8b");
  const std::string gpt2 =
      "model: {name: hf_causal_lm, pretrained_model_name_or_path: gpt2, pretrained: false, config_overrides: "
      "{n_positions: 2048}}\ntokenizer: {name: gpt2}\nmax_seq_len: 2048\nglobal_train_batch_size: 16\nmax_duration: "
      "2ba\n";
  CHECK(read(gpt2).run.model.learned_positions == 2048);
  CHECK(read(gpt2).run.model.total_parameters() == 124439808 + 1024 * 768);
}

TEST_CASE("what would make another model or run of it is listed as assumed") {
  const ImportedRun job = read(
      "model: {name: hf_causal_lm, pretrained_model_name_or_path: databricks/dbrx-instruct, config_overrides: {}}"
      "\ntokenizer: {name: x}\nmax_seq_len: 64\nglobal_train_batch_size: "
      "16\nmax_duration: 2ep\noptimizer: {name: decoupled_lionw}\ncallbacks: {hf_checkpointer: {save_folder: "
      "\"./{run_name}/hf\", save_interval: 1dur}}\nrun_name: ft\n");
  CHECK(job.run.model.name == "dbrx");
  CHECK(job.run.export_path == "./ft/hf");
  CHECK_FALSE(job.run.lora);
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
  CHECK(says(packed.assumed, "eval_loader.dataset.eos_token_id: found none; LLM Foundry ends each last response"));
  CHECK(says(packed.ignored, "train_loader.dataset.allow_pad_trimming: found true; padding changes no loss"));
  CHECK(says(packed.ignored, "eval_loader.dataset.packing_ratio: found 2.5; every example is evaluated alone"));
  REQUIRE(packed.run.evaluation.sets.size() == 1);
  CHECK(packed.run.evaluation.sets.front().dataset.finetuning == FinetuningSpec{});
  const ImportedRun mixing = read(mpt("", loader(", packing_ratio: 2, eos_token_id: 3")));
  const std::string seen = "packing_ratio: found 2 without an mpt_causal_lm's attn_uses_sequence_id; examples of a ";
  CHECK(says(mixing.assumed, seen + "sequence see one another there"));
  const ImportedRun llama = read(
      "model: {name: hf_causal_lm, pretrained_model_name_or_path: meta-llama/Meta-Llama-3-8B}\ntokenizer: {name: x}\n"
      "max_seq_len: 64\nglobal_train_batch_size: 16\nmax_duration: 2ba\n" +
      loader(", packing_ratio: 2, eos_token_id: 3"));
  CHECK(says(llama.assumed, seen));
  const ImportedRun named = read(mpt("", "train_loader: {name: finetuning, dataset: {hf_name: org/set}}\n"));
  CHECK(named.run.dataset.empty());
  CHECK(says(named.ignored, "train_loader.dataset.hf_name: found org/set; examples are read from MDS"));

  CHECK_THAT(refusal(mpt("", loader(", packing_ratio: auto"))), Contains("found auto, needs a number from 1"));
  CHECK_THAT(refusal(mpt("", loader("") + "eval_loader: {name: finetuning, dataset: {local: e, decoder_only_format: "
                                          "false}}\n")),
             Contains("eval_loader.dataset.decoder_only_format: found false, needs true"));
  CHECK_THAT(refusal(mpt("", loader(", eos_token_id: 100"))),
             Contains("train_loader.dataset.eos_token_id: found 100, the model's vocab_size is 100"));
  CHECK_THAT(refusal(mpt("", loader("") + "eval_loader: {name: finetuning, dataset: {local: e, decoder_only_format: "
                                          "true, eos_token_id: 101}}\n")),
             Contains("eval_loader.dataset.eos_token_id of 'eval': found 101"));
  std::string tokens = mpt("", loader(", eos_token_id: 3"));
  tokens.replace(tokens.find("40ba"), 4, "5000tok");
  CHECK_THAT(refusal(tokens), Contains("max_duration: found 5000 tokens of finetuning examples"));
  CHECK_THAT(refusal(mpt("attn_config: {attn_uses_sequence_id: true}",
                         "train_loader: {name: text, dataset: {local: "
                         "a}}\n")),
             Contains("attn_uses_sequence_id: found true, needs false: attention separates packed"));
}

TEST_CASE("the adapter of an hf_causal_lm comes over, without dropout and with fp32 gradients") {
  const std::string head = "model: {name: hf_causal_lm, pretrained_model_name_or_path: databricks/dbrx-instruct, ",
                    tail = "}\nmax_seq_len: 64\nglobal_train_batch_size: 16\nmax_duration: 2ba\n";
  const LoraSpec expected{64, 128, {"Wqkv"}};
  const std::string peft = "peft_type: LORA, task_type: CAUSAL_LM, r: 64, lora_alpha: 128, target_modules: [Wqkv]";
  CHECK((read(head + "peft_config: {" + peft + "}" + tail).run.lora == expected));
  const ImportedRun stock = read(head + "peft_config: {" + peft + ", lora_dropout: 0.05}" + tail +
                                 "optimizer: {name: decoupled_lionw}\nfsdp_config: {mixed_precision: PURE}\n");
  CHECK((stock.run.lora == expected));
  CHECK_FALSE(stock.run.pure_reduction);
  CHECK(says(stock.assumed, "model.peft_config.lora_dropout: found 0.05, taken as 0"));
  CHECK(says(stock.assumed, "fsdp_config.mixed_precision: found PURE, taken as DEFAULT"));
  CHECK_THAT(refusal(head + "peft_config: {" + peft + ", use_dora: true}" + tail), Contains("use_dora"));
}

TEST_CASE("unknown keys and what cannot be meant are refused by name") {
  CHECK_THAT(refusal(mpt("", "max_durations: 1ep\n")), Contains("max_durations") && Contains("max_duration'"));
  CHECK_THAT(refusal(mpt("d_modle: 3")), Contains("model.d_modle: found a key that LLM Foundry 0.22.0 has not"));
  CHECK_THAT(refusal(mpt("emb_pdrop: 0.1")), Contains("model.emb_pdrop: found 0.1, needs 0"));
  CHECK_THAT(refusal(mpt("fc_type: te")), Contains("model.fc_type"));
  CHECK_THAT(refusal(mpt("peft_config: {r: 8}")), Contains("an mpt_causal_lm takes no adapter"));
  const auto adapter = [](const std::string& peft) {
    return refusal(
        "model: {name: hf_causal_lm, pretrained_model_name_or_path: databricks/dbrx-instruct, peft_config: {" + peft +
        "}}\nmax_seq_len: 64\nglobal_train_batch_size: 16\nmax_duration: 2ba\n");
  };
  CHECK_THAT(adapter("lora_dropout: 1.5, target_modules: [Wqkv]"),
             Contains("model.peft_config") && Contains("dropout"));
  CHECK_THAT(adapter("target_modules: [Wqkv], use_dora: true"), Contains("use_dora"));
  CHECK_THAT(adapter("r: 8"), Contains("target_modules"));
  CHECK_THAT(refusal(mpt("attn_config: {attn_uses_sequence_id: true}")), Contains("attn_uses_sequence_id"));
  CHECK_THAT(refusal(mpt("", "tp_config: {strategy: ffn}\n")), Contains("tp_config.strategy"));
  CHECK_THAT(refusal(mpt("", "code_paths: [x.py]\n")), Contains("no code of a recipe is run"));
  CHECK_THAT(refusal(mpt("", "algorithms: {alibi: {max_sequence_length: 8}}\n")), Contains("gradient_clipping alone"));
  CHECK_THAT(refusal("variables: {global_seed: 1}\nmax_seq_len: 8\nmodel: {name: hf_t5}\n" +
                     mpt("").substr(mpt("").find("tokenizer"))),
             Contains("model.name: found hf_t5"));
  CHECK_THAT(refusal(mpt("", "scheduler: {name: step}\n")), Contains("linear_decay_with_warmup"));
  CHECK_THAT(refusal(mpt("", "load_path: x\nload_weights_only: false\n")), Contains("load_path gives weights alone"));
  CHECK(read(mpt("", "load_weights_only: false\n")).run.load_path.empty());
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
  RunSpec run =
      read(mpt("attn_config: {attn_uses_sequence_id: true}",
               "scheduler: {name: constant_with_warmup, t_warmup: 12sp}\nfsdp_config: {data_parallel_shard_degree: "
               "4}\ntrain_loader: {name: finetuning, dataset: {remote: s3://b/ft, local: /cache, decoder_only_format: "
               "true, target_prompts: all, packing_ratio: 3, eos_token_id: 2}}\n"))
          .run;
  const Recipe back = export_run(run, RecipeFormat::llm_foundry);
  REQUIRE(back.not_expressed.size() == 1);  // our key: LLM Foundry would refuse it
  CHECK_THAT(back.not_expressed[0], Contains("train_loader.dataset.eos_token_id: found 2") &&
                                        Contains("LLM Foundry ends responses with its tokenizer's end token"));
  CHECK_THAT(back.text, Contains("t_warmup: 12sp") && Contains("attn_uses_sequence_id: true") &&
                            Contains("name: finetuning") && Contains("decoder_only_format: true") &&
                            !Contains("eos_token_id: 2"));
  run.dataset.finetuning->eos_token_id.reset();
  CHECK(run_to_yaml(
            import_run(back.text, "job.yaml", {.format = RecipeFormat::llm_foundry, .model = {}, .gpus = {}}).run) ==
        run_to_yaml(run));
}
