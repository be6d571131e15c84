// The tensor names of each family, as in its modeling code in Hugging Face transformers 4.57.
#include <fmt/core.h>

#include "configs/files/weight_names.hpp"

namespace wt {

class Namer {
 public:
  Namer(const ModelSpec& model, WeightNames& out) : m_(model), out_(out) {}

  void name(const std::string& family) {
    if (family == "dbrx")
      dbrx();
    else if (family == "mpt")
      mpt();
    else if (family == "falcon")
      falcon();
    else
      llama_like(family);
  }

 private:
  using Shape = std::vector<std::int64_t>;

  /// Rows [row, row + rows) of our parameter are a whole tensor (rows, columns); columns 0 = (rows).
  void whole(const std::string& parameter, const std::string& tensor, std::int64_t rows, std::int64_t columns,
             std::int64_t row = 0) {
    out_.shapes_[tensor] = columns > 0 ? Shape{rows, columns} : Shape{rows};
    piece(parameter, {tensor, row, rows, 0, false});
  }
  void piece(const std::string& parameter, WeightPiece p) { out_.pieces_[parameter].push_back(std::move(p)); }

  static std::string ours(std::int64_t layer, const std::string& name) {
    return fmt::format("layers.{}.{}", layer, name);
  }
  void norm(const std::string& parameter, const std::string& tensor) {
    whole(parameter + ".weight", tensor + ".weight", m_.d_model, 0);
    if (m_.norm_bias) whole(parameter + ".bias", tensor + ".bias", m_.d_model, 0);
  }
  void outer(const std::string& embedding, const std::string& last_norm) {
    whole("embedding.weight", embedding, m_.vocab, m_.d_model);
    norm("norm", last_norm);
    if (!m_.tied) whole("output.weight", "lm_head.weight", m_.vocab, m_.d_model);
  }
  /// gate, up and down of an FFN of three products.
  void glu(const std::string& parameter, const std::string& gate, const std::string& up, const std::string& down,
           std::int64_t width) {
    const auto parts = [&](const std::string& part, std::int64_t columns, std::int64_t down_columns) {
      whole(parameter + "gate_up" + part, gate + part, width, columns);
      whole(parameter + "gate_up" + part, up + part, width, columns, width);
      whole(parameter + "down" + part, down + part, m_.d_model, down_columns);
    };
    parts(".weight", m_.d_model, width);
    if (m_.ffn_bias) parts(".bias", 0, 0);
  }
  void glu(const std::string& parameter, const std::string& prefix, std::int64_t width) {
    glu(parameter, prefix + "gate_proj", prefix + "up_proj", prefix + "down_proj", width);
  }

  /// GPT-OSS stacks its experts, inputs before outputs, with gate and up interleaved.
  void stacked_experts(std::int64_t layer, const std::string& theirs) {
    const std::int64_t d = m_.d_model, ffn = m_.ffn;
    out_.shapes_[theirs + "gate_up_proj"] = {m_.experts, d, 2 * ffn};
    out_.shapes_[theirs + "gate_up_proj_bias"] = {m_.experts, 2 * ffn};
    out_.shapes_[theirs + "down_proj"] = {m_.experts, ffn, d};
    out_.shapes_[theirs + "down_proj_bias"] = {m_.experts, d};
    for (std::int64_t e = 0; e < m_.experts; ++e) {
      const std::string mine = ours(layer, fmt::format("experts.{}.", e));
      for (std::int64_t half = 0; half < 2; ++half) {
        piece(mine + "gate_up.weight", {theirs + "gate_up_proj", half * ffn, ffn, e * d, true, half, 2});
        piece(mine + "gate_up.bias", {theirs + "gate_up_proj_bias", half * ffn, ffn, e, true, half, 2});
      }
      piece(mine + "down.weight", {theirs + "down_proj", 0, d, e * ffn, true});
      piece(mine + "down.bias", {theirs + "down_proj_bias", 0, d, e, true});
    }
  }

  /// DeepSeek rotates neighbours (2i, 2i+1), we rotate (i, i + half). Maps `dim` rows to our order.
  void interleaved(const std::string& parameter, const std::string& tensor, std::int64_t row, std::int64_t dim) {
    for (std::int64_t i = 0; i < dim; ++i)
      piece(parameter, {tensor, row + i, 1, row + (i < dim / 2 ? 2 * i : 2 * (i - dim / 2) + 1), false});
  }
  void latent_attention(std::int64_t layer, const std::string& theirs) {
    const MlaSpec& a = m_.attention.mla;
    const std::string q_ours = ours(layer, a.q_lora_rank > 0 ? "attention.q_b.weight" : "attention.q.weight");
    const std::string q = theirs + (a.q_lora_rank > 0 ? "q_b_proj.weight" : "q_proj.weight"),
                      kv = theirs + "kv_a_proj_with_mqa.weight";
    if (a.q_lora_rank > 0) {
      whole(ours(layer, "attention.q_a.weight"), theirs + "q_a_proj.weight", a.q_lora_rank, m_.d_model);
      whole(ours(layer, "attention.q_a_norm.weight"), theirs + "q_a_layernorm.weight", a.q_lora_rank, 0);
    }
    const bool bias = m_.attention.bias == AttentionSpec::Bias::all;
    if (bias && a.q_lora_rank > 0) whole(ours(layer, "attention.q_a.bias"), theirs + "q_a_proj.bias", a.q_lora_rank, 0);
    out_.shapes_[q] = {m_.heads * m_.head_dim, a.q_lora_rank > 0 ? a.q_lora_rank : m_.d_model};
    for (std::int64_t head = 0; head < m_.heads; ++head) {
      piece(q_ours, {q, head * m_.head_dim, a.qk_nope_head_dim, head * m_.head_dim, false});
      interleaved(q_ours, q, head * m_.head_dim + a.qk_nope_head_dim, a.qk_rope_head_dim);
    }
    out_.shapes_[kv] = {a.kv_lora_rank + a.qk_rope_head_dim, m_.d_model};
    piece(ours(layer, "attention.kv_a.weight"), {kv, 0, a.kv_lora_rank, 0, false});
    interleaved(ours(layer, "attention.kv_a.weight"), kv, a.kv_lora_rank, a.qk_rope_head_dim);
    if (bias) {
      const std::string kv_bias = theirs + "kv_a_proj_with_mqa.bias";
      out_.shapes_[kv_bias] = {a.kv_lora_rank + a.qk_rope_head_dim};
      piece(ours(layer, "attention.kv_a.bias"), {kv_bias, 0, a.kv_lora_rank, 0, false});
      interleaved(ours(layer, "attention.kv_a.bias"), kv_bias, a.kv_lora_rank, a.qk_rope_head_dim);
    }
    whole(ours(layer, "attention.kv_a_norm.weight"), theirs + "kv_a_layernorm.weight", a.kv_lora_rank, 0);
    whole(ours(layer, "attention.kv_b.weight"), theirs + "kv_b_proj.weight",
          m_.heads * (a.qk_nope_head_dim + a.v_head_dim), a.kv_lora_rank);
  }

  /// DeepSeek's files repeat embedding and head with each module of multi-token prediction. They are named before the
  /// model's own, because the last one read counts.
  void copies_of_modules() {
    for (std::int64_t layer = m_.layers; layer < m_.blocks(); ++layer) {
      const std::string block = fmt::format("model.layers.{}.", layer);
      whole("embedding.weight", block + "embed_tokens.weight", m_.vocab, m_.d_model);
      whole(m_.tied ? "embedding.weight" : "output.weight", block + "shared_head.head.weight", m_.vocab, m_.d_model);
    }
  }
  /// Tensors of such a module outside its block, as in DeepSeek-V3's checkpoint.
  void module(std::int64_t layer, const std::string& block) {
    norm(ours(layer, "enorm"), block + "enorm"), norm(ours(layer, "hnorm"), block + "hnorm");
    whole(ours(layer, "eh_proj.weight"), block + "eh_proj.weight", m_.d_model, 2 * m_.d_model);
    norm(ours(layer, "shared_head.norm"), block + "shared_head.norm");
  }

  void llama_like(const std::string& family) {
    copies_of_modules();
    outer("model.embed_tokens.weight", "model.norm");
    const std::int64_t q = m_.heads * m_.head_dim, kv = m_.kv_heads * m_.head_dim;
    for (std::int64_t layer = 0; layer < m_.blocks(); ++layer) {
      const std::string block = fmt::format("model.layers.{}.", layer), attention = block + "self_attn.";
      if (m_.mtp(layer)) module(layer, block);
      norm(ours(layer, "attention_norm"), block + "input_layernorm");
      if (m_.attention.mla.on()) {
        latent_attention(layer, attention);
      } else {
        const auto qkv = [&](const std::string& part, std::int64_t columns) {
          const std::string mine = ours(layer, "attention.qkv" + part);
          whole(mine, attention + "q_proj" + part, q, columns);
          whole(mine, attention + "k_proj" + part, kv, columns, q);
          whole(mine, attention + "v_proj" + part, kv, columns, q + kv);
        };
        qkv(".weight", m_.d_model);
        if (m_.attention.bias != AttentionSpec::Bias::none) qkv(".bias", 0);
      }
      if (m_.attention.qk_norm != AttentionSpec::QkNorm::none) {
        const bool full = m_.attention.qk_norm == AttentionSpec::QkNorm::full;
        whole(ours(layer, "attention.q_norm.weight"), attention + "q_norm.weight", full ? q : m_.head_dim, 0);
        whole(ours(layer, "attention.k_norm.weight"), attention + "k_norm.weight", full ? kv : m_.head_dim, 0);
      }
      whole(ours(layer, "attention.output.weight"), attention + "o_proj.weight", m_.d_model,
            m_.heads * m_.v_head_dim());
      if (m_.attention.bias == AttentionSpec::Bias::all)
        whole(ours(layer, "attention.output.bias"), attention + "o_proj.bias", m_.d_model, 0);
      if (m_.attention.sinks) whole(ours(layer, "attention.sinks"), attention + "sinks", m_.heads, 0);
      norm(ours(layer, "ffn_norm"), block + "post_attention_layernorm");
      if (!m_.moe(layer)) {
        glu(ours(layer, "ffn."), block + "mlp.", m_.ffn_width(layer));
        continue;
      }
      if (family == "gpt_oss") {
        whole(ours(layer, "router.weight"), block + "mlp.router.weight", m_.experts, m_.d_model);
        whole(ours(layer, "router.logit_bias"), block + "mlp.router.bias", m_.experts, 0);
        stacked_experts(layer, block + "mlp.experts.");
        continue;
      }
      const bool mixtral = family == "mixtral";
      const std::string moe = block + (mixtral ? "block_sparse_moe." : "mlp.");
      whole(ours(layer, "router.weight"), moe + "gate.weight", m_.experts, m_.d_model);
      if (m_.router.bias_update_rate > 0)
        whole(ours(layer, "router.bias"), moe + "gate.e_score_correction_bias", m_.experts, 0);
      if (m_.shared_ffn > 0) glu(ours(layer, "shared_experts."), moe + "shared_experts.", m_.shared_ffn);
      for (std::int64_t e = 0; e < m_.experts; ++e) {
        const std::string expert = fmt::format("{}experts.{}.", moe, e),
                          mine = ours(layer, fmt::format("experts.{}.", e));
        if (mixtral)
          glu(mine, expert + "w1", expert + "w3", expert + "w2", m_.ffn);
        else
          glu(mine, expert, m_.ffn);
      }
    }
  }

  void dbrx() {
    outer("transformer.wte.weight", "transformer.norm_f");
    const std::int64_t q = m_.heads * m_.head_dim, kv = m_.kv_heads * m_.head_dim;
    for (std::int64_t layer = 0; layer < m_.layers; ++layer) {
      const std::string block = fmt::format("transformer.blocks.{}.", layer), attention = block + "norm_attn_norm.";
      const std::string mlp = block + "ffn.experts.mlp.";
      norm(ours(layer, "attention_norm"), attention + "norm_1");
      whole(ours(layer, "attention.qkv.weight"), attention + "attn.Wqkv.weight", q + 2 * kv, m_.d_model);
      whole(ours(layer, "attention.output.weight"), attention + "attn.out_proj.weight", m_.d_model, q);
      norm(ours(layer, "ffn_norm"), attention + "norm_2");
      whole(ours(layer, "router.weight"), block + "ffn.router.layer.weight", m_.experts, m_.d_model);
      for (const char* stacked : {"w1", "v1", "w2"}) out_.shapes_[mlp + stacked] = {m_.experts * m_.ffn, m_.d_model};
      for (std::int64_t e = 0; e < m_.experts; ++e) {
        const std::string gate_up = ours(layer, fmt::format("experts.{}.gate_up.weight", e));
        piece(gate_up, {mlp + "w1", 0, m_.ffn, e * m_.ffn, false});
        piece(gate_up, {mlp + "v1", m_.ffn, m_.ffn, e * m_.ffn, false});
        piece(ours(layer, fmt::format("experts.{}.down.weight", e)), {mlp + "w2", 0, m_.d_model, e * m_.ffn, true});
      }
    }
  }

  void mpt() {
    outer("transformer.wte.weight", "transformer.norm_f");
    for (std::int64_t layer = 0; layer < m_.layers; ++layer) {
      const std::string block = fmt::format("transformer.blocks.{}.", layer);
      norm(ours(layer, "attention_norm"), block + "norm_1");
      whole(ours(layer, "attention.qkv.weight"), block + "attn.Wqkv.weight", 3 * m_.d_model, m_.d_model);
      whole(ours(layer, "attention.output.weight"), block + "attn.out_proj.weight", m_.d_model, m_.d_model);
      norm(ours(layer, "ffn_norm"), block + "norm_2");
      whole(ours(layer, "ffn.up.weight"), block + "ffn.up_proj.weight", m_.ffn, m_.d_model);
      whole(ours(layer, "ffn.down.weight"), block + "ffn.down_proj.weight", m_.d_model, m_.ffn);
    }
  }

  void falcon() {
    outer("transformer.word_embeddings.weight", "transformer.ln_f");
    const std::int64_t d = m_.head_dim, q_each = m_.heads / m_.kv_heads;
    for (std::int64_t layer = 0; layer < m_.layers; ++layer) {
      const std::string block = fmt::format("transformer.h.{}.", layer),
                        qkv = block + "self_attention.query_key_value.weight";
      const bool two = m_.attention.parallel == AttentionSpec::Parallel::two_norms;
      norm(ours(layer, "attention_norm"), block + (two ? "ln_attn" : "input_layernorm"));
      if (two) norm(ours(layer, "ffn_norm"), block + "ln_mlp");
      out_.shapes_[qkv] = {(m_.heads + 2 * m_.kv_heads) * d, m_.d_model};
      for (std::int64_t group = 0; group < m_.kv_heads;
           ++group) {  // Wqkv interleaves by group: its queries, its key, its value
        const std::string mine = ours(layer, "attention.qkv.weight");
        const std::int64_t begin = group * (q_each + 2) * d;
        piece(mine, {qkv, group * q_each * d, q_each * d, begin, false});
        piece(mine, {qkv, (m_.heads + group) * d, d, begin + q_each * d, false});
        piece(mine, {qkv, (m_.heads + m_.kv_heads + group) * d, d, begin + (q_each + 1) * d, false});
      }
      whole(ours(layer, "attention.output.weight"), block + "self_attention.dense.weight", m_.d_model, m_.heads * d);
      whole(ours(layer, "ffn.up.weight"), block + "mlp.dense_h_to_4h.weight", m_.ffn, m_.d_model);
      whole(ours(layer, "ffn.down.weight"), block + "mlp.dense_4h_to_h.weight", m_.d_model, m_.ffn);
    }
  }

  const ModelSpec& m_;
  WeightNames& out_;
};

WeightNames::WeightNames(const ModelSpec& model, std::string family) { Namer(model, *this).name(family); }

}  // namespace wt
