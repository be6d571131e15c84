// A small model of every family, to be trained in a second.
#pragma once
#include <vector>

#include "tests/support/trainer_fixture.hpp"

namespace wt::test {

/// small_run() with two layers of the given shape and four steps; widths are no powers of two, so that mistaken ones show.
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
  ModelSpec& v2 = add("deepseek-v2-lite");
  v2.attention.mla = {24, 0, 16, 8, 20}, v2.head_dim = 24, v2.kv_heads = 4, v2.shared_ffn = 56;
  v2.layers = 3, v2.dense_layers = 1, v2.dense_ffn = 120, v2.router.normalize = false;
  ModelSpec& v3 = add("deepseek-v3");
  v3.attention.mla = {24, 32, 16, 8, 20}, v3.head_dim = 24, v3.kv_heads = 4, v3.shared_ffn = 56;
  v3.router.score = RouterSpec::Score::sigmoid, v3.router.groups = 4, v3.router.top_groups = 2, v3.router.scale = 2.5;
  v3.router.bias_update_rate = 0.001;
  ModelSpec& llama = dense(add("llama"));
  llama.ffn = 120;
  ModelSpec& mpt = dense(add("mpt"));
  mpt.norm = Norm::layernorm, mpt.activation = Activation::gelu, mpt.tied = true, mpt.attention.alibi = true, mpt.kv_heads = 4;
  ModelSpec& falcon = dense(add("falcon-7b"));
  falcon.norm = Norm::layernorm, falcon.norm_bias = true, falcon.activation = Activation::gelu, falcon.kv_heads = 1;
  falcon.attention.parallel = Parallel::one_norm;
  ModelSpec& newer = dense(add("falcon-180b"));
  newer = out[out.size() - 2].model;
  newer.name = "falcon-180b", newer.kv_heads = 2, newer.attention.parallel = Parallel::two_norms;
  return out;
}

}  // namespace wt::test
