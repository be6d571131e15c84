// A small model of every family, to be trained in a second.
#pragma once
#include <vector>

#include "tests/support/trainer_fixture.hpp"

namespace wt::test {

/// small_run() with two layers of the given shape and four steps; widths are no powers of two, so that mistaken ones
/// show.
inline RunSpec family_run(const std::string& name) {
  RunSpec run = small_run();
  run.steps = 4, run.global_batch = 8, run.layout.microbatch = 1;
  ModelSpec& m = run.model;
  m.name = run.name = name, m.layers = 2, m.router.z_loss_weight = 0;
  return run;
}

inline ModelSpec& dense(ModelSpec& m) {
  m.experts = m.top_k = 0;
  return m;
}

/// What GPT-OSS has beyond Mixtral.
inline void as_gpt_oss(ModelSpec& m) {
  m.attention.bias = AttentionSpec::Bias::all, m.attention.sinks = true;
  m.attention.window = 9, m.attention.local = {{true, false}};
  m.ffn_bias = true, m.activation = Activation::clamped_swiglu;
}

/// Mixtral's shape is small_run()'s.
inline std::vector<RunSpec> family_runs() {
  using QkNorm = AttentionSpec::QkNorm;
  using Parallel = AttentionSpec::Parallel;
  std::vector<RunSpec> out;
  const auto add = [&](const std::string& name) -> ModelSpec& {
    out.push_back(family_run(name));
    return out.back().model;
  };
  ModelSpec& dbrx = add("dbrx");
  dbrx.norm = Norm::layernorm, dbrx.attention.clip_qkv = 0.05;
  ModelSpec& olmoe = add("olmoe");
  olmoe.attention.qk_norm = QkNorm::full, olmoe.router.normalize = false;
  ModelSpec& qwen = add("qwen3-moe");
  qwen.attention.qk_norm = QkNorm::head, qwen.head_dim = 28, qwen.router.z_loss_weight = 0.001;
  ModelSpec& lite = add("deepseek-v2-lite");
  lite.attention.mla = {24, 0, 16, 8, 20}, lite.head_dim = 24, lite.kv_heads = 4, lite.shared_ffn = 56;
  lite.layers = 3, lite.dense_layers = 1, lite.dense_ffn = 120, lite.router.normalize = false;
  ModelSpec& v2 = add("deepseek-v2");  // with what its larger model has: low-rank queries, groups, stretched positions
  v2 = out[out.size() - 2].model, v2.name = "deepseek-v2";
  v2.attention.mla.q_lora_rank = 32, v2.attention.bias = AttentionSpec::Bias::all;
  v2.attention.rope_scaling = {.kind = RopeScaling::Kind::yarn,
                               .factor = 40,
                               .original_max_position_embeddings = 16,
                               .mscale = 0.707,
                               .mscale_all_dim = 0.707};
  v2.router.groups = 4, v2.router.top_groups = 2, v2.router.group_worth = RouterSpec::GroupWorth::best,
  v2.router.scale = 4;
  ModelSpec& v3 = add("deepseek-v3");
  v3.attention.mla = {24, 32, 16, 8, 20}, v3.head_dim = 24, v3.kv_heads = 4, v3.shared_ffn = 56;
  v3.router.score = RouterSpec::Score::sigmoid, v3.router.groups = 4, v3.router.top_groups = 2, v3.router.scale = 2.5;
  v3.router.bias_update_rate = 0.001;
  ModelSpec& modules = add("deepseek-v3-mtp");  // two modules behind its layers, whose blocks have experts
  modules = out[out.size() - 2].model, modules.name = "deepseek-v3-mtp", modules.mtp_layers = 2;
  // More modules than slots of weights, the head's matrix the embedding's, inputs of layers read by LayerNorm.
  ModelSpec& tied = dense(add("tied-mtp"));
  tied.ffn = 120, tied.tied = true, tied.norm = Norm::layernorm, tied.norm_bias = true, tied.mtp_layers = 3;
  tied.mtp_loss_weight = 0.6;
  ModelSpec& llama = dense(add("llama"));
  llama.ffn = 120;
  ModelSpec& llama3 = dense(add("llama-3.1"));
  llama3.ffn = 120, llama3.attention.bias = AttentionSpec::Bias::all;
  llama3.attention.rope_scaling = {.kind = RopeScaling::Kind::llama3,
                                   .factor = 8,
                                   .original_max_position_embeddings = 32,
                                   .low_freq_factor = 1,
                                   .high_freq_factor = 4};
  ModelSpec& mpt = dense(add("mpt"));
  mpt.norm = Norm::layernorm, mpt.activation = Activation::gelu, mpt.tied = true, mpt.attention.alibi = true,
  mpt.kv_heads = 4;
  ModelSpec& falcon = dense(add("falcon-7b"));
  falcon.norm = Norm::layernorm, falcon.norm_bias = true, falcon.activation = Activation::gelu, falcon.kv_heads = 1;
  falcon.attention.parallel = Parallel::one_norm;
  ModelSpec& newer = dense(add("falcon-180b"));
  newer = out[out.size() - 2].model;
  newer.name = "falcon-180b", newer.kv_heads = 2, newer.attention.parallel = Parallel::two_norms;
  ModelSpec& gpt_oss = add("gpt-oss");
  gpt_oss.layers = 3, as_gpt_oss(gpt_oss);
  ModelSpec& turns = add("turns");  // chunks, and experts in every other layer, as in Llama-4
  turns.layers = 4, turns.moe_pattern = {{false, true}}, turns.dense_ffn = 120, turns.shared_ffn = 56;
  turns.attention.chunk = 8, turns.attention.local = {{true, true, true, false}}, turns.ffn_bias = true;
  turns.router.score = RouterSpec::Score::sigmoid, turns.router.bias_update_rate = 0.001;
  ModelSpec& mistral = dense(add("mistral"));
  mistral.ffn = 120, mistral.attention.window = 9;
  return out;
}

}  // namespace wt::test
