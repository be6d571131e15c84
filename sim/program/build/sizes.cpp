#include "sim/program/build/sizes.hpp"

#include <algorithm>
#include <cmath>

namespace wt {

Sizes::Sizes(const ModelSpec& m, const Layout& layout, const ProgramOptions& options, std::int64_t layer) {
  const auto f = [](std::int64_t value) { return static_cast<double>(value); };
  tokens = f(layout.microbatch * options.seq) / f(layout.context);
  own_tokens = layout.sequence_parallel ? tokens / f(layout.tensor) : tokens;
  word = options.precision == Precision::fp32 ? 4 : 2;
  const bool half = options.precision == Precision::bf16, moe = m.moe(layer);
  const AttentionSpec& a = m.attention;
  const double top_k = moe ? f(m.top_k) : 0;
  rows = layout.expert == 1 ? Amount{tokens * top_k, 0} : Amount{0, moe ? 1.0 : 0.0};
  const auto per_row = [&](double bytes) { return Amount{rows.fixed * bytes, rows.per_row * bytes}; };

  const double d = f(m.d_model), q_width = f(m.heads * m.head_dim), kv_width = f(m.kv_heads * m.head_dim),
               out = f(m.heads * m.v_head_dim());
  x = own_tokens * d * word;
  whole_x = tokens * d * word;
  routed = own_tokens * top_k * d * word;
  // RMSNorm keeps 1/rms in fp32, the library's LayerNorm mean and 1/deviation in the compute type.
  const double statistics = own_tokens * (m.norm == Norm::rmsnorm ? 4 : 2 * word);
  const bool parallel = a.parallel != AttentionSpec::Parallel::none,
             one_norm = a.parallel == AttentionSpec::Parallel::one_norm;
  const double norms = one_norm ? 1 : 2;
  const MemoryFacts& facts = options.memory;
  const double rows_of_scores = tokens * f(m.heads);
  scores = options.materialised_scores ? rows_of_scores * f(options.seq) * word : 0;
  // With dropout a mask of bytes, and what it leaves (5 a s of Korthikanti et al.); flash attention keeps the logarithm
  // of each row's sum.
  const double softmax = !options.materialised_scores ? rows_of_scores * 4
                         : facts.dropout              ? scores * (2 + 1 / word)
                                                      : scores;
  probabilities = moe ? own_tokens * f(m.experts) * 4 * (m.router.z_loss_weight > 0 ? 2 : 1) : 0;
  double variants = 0;  // of attention, beyond q, k, v and the output
  if (a.mla.on()) {
    const double lora = f(a.mla.kv_lora_rank), low = f(a.mla.q_lora_rank);
    projected = tokens *
                (q_width + lora + f(a.mla.qk_rope_head_dim + m.heads * (a.mla.qk_nope_head_dim + a.mla.v_head_dim))) *
                word;
    qkv = 3 * tokens * q_width * word;  // values are filled up to the width of keys
    variants = tokens * (2 * (lora + low) * word + 4 * (low > 0 ? 2 : 1));
    largest_dense_weight = std::max({q_width * (low > 0 ? low : d), low * d,
                                     f(m.heads * (a.mla.qk_nope_head_dim + a.mla.v_head_dim)) * lora, out * d}) *
                           word;
  } else {
    projected = qkv = tokens * (q_width + 2 * kv_width) * word;
    largest_dense_weight = std::max((q_width + 2 * kv_width) * d, q_width * d) * word;
  }
  if (a.qk_norm != AttentionSpec::QkNorm::none)
    variants += tokens * ((q_width + kv_width) * word +
                          4 * (a.qk_norm == AttentionSpec::QkNorm::full ? 2 : f(m.heads + m.kv_heads)));
  if (a.clip_qkv > 0) variants += tokens * (q_width + 2 * kv_width);
  heads = tokens * q_width * word;
  core_made = heads + softmax;
  core = softmax + (facts.attention_by_head ? heads : 0);

  const double width = f(m.ffn_width(layer));
  ffn_gate_up = tokens * f(m.ffn_rows(m.ffn_width(layer))) * word;
  ffn_activated = tokens * width * word;
  const double activations = m.activation == Activation::swiglu && !facts.fused_gate ? 2 : 1;
  ffn_saved = ffn_gate_up + activations * ffn_activated;
  ffn_gate_up_weight = f(m.ffn_rows(m.ffn_width(layer))) * d * word;
  ffn_down_weight = width * d * word;
  ffn_saved_kept = ffn_gate_up / 2;
  ffn_kept = ffn_saved_kept + (width > 0 ? x / 2 : 0);
  ffn_input_shared = one_norm || (moe && !half);

  // The router's product is in fp32: bf16 runs keep copies of its input and weight. The FFN's input counts by itself.
  normed_fp32 = moe && half ? own_tokens * d * 4 : 0;
  first_norm = one_norm ? 0 : x;
  const double second_norm = !moe ? 0 : half ? normed_fp32 + f(m.experts) * d * 4 : width > 0 ? 0 : x;
  normed = first_norm + second_norm;
  // The projection keeps attention's output by token; where the kernel keeps it by head, or heads went to other ranks,
  // that is a copy. The second norm keeps the residual it reads; in a parallel block it reads the input.
  const double exchanged = layout.context > 1 && facts.context_by_heads ? heads : 0;
  const double masks = facts.dropout ? 2 * own_tokens * d : 0;  // bytes, behind attention and FFN
  attention = norms * statistics + (parallel ? 0 : x) + qkv + variants + tokens * out * word + core + exchanged +
              masks + probabilities;
  attention_kept = (qkv + x) / 2 + tokens * out * word + softmax;
  kv = m.attention.mla.on() ? 2 * tokens * q_width * word : 2 * tokens * kv_width * word;
  q = qkv - kv;
  kv_gathered = kv * f(layout.context);
  kv_held = layout.context_ring || facts.context_by_heads ? kv : kv_gathered;
  projection = statistics + variants;
  routing = own_tokens * top_k * (8 + 4 + 8 + 8);
  compressed = own_tokens * (d + 4 * std::ceil(d / 128));
  if (layout.expert > 1 && moe) row_orders = {0, 16};
  row_block = per_row(d * word);
  gate_up = per_row(2 * f(m.ffn) * word);
  activated = per_row(f(m.ffn) * word);
  experts_kept = {gate_up.fixed / 2, gate_up.per_row / 2};
  experts_saved = {gate_up.fixed + activations * activated.fixed, gate_up.per_row + activations * activated.per_row};
  logits = tokens * f(m.vocab) * std::max(word, facts.logit_bytes);
  logit_gradient = tokens * f(m.vocab) * word;
  head_weight = f(m.vocab) * d * word;
  const double local_experts = moe ? f(layout.slots_per_rank(m)) : 0;
  expert_gate_up_weight = local_experts * 2 * f(m.ffn) * d * word;
  expert_down_weight = local_experts * f(m.ffn) * d * word;
  weight_gradient_added = half && options.transport_scratch ? 3 : 1;
  if (facts.weight_gradients != WeightGradients::added)
    for (double* temporary : {&largest_dense_weight, &ffn_gate_up_weight, &ffn_down_weight, &head_weight,
                              &expert_gate_up_weight, &expert_down_weight})
      *temporary = 0;
}

}  // namespace wt
