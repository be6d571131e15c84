#include "sim/program/sizes.hpp"

#include <algorithm>
#include <cmath>

namespace wt {

Sizes::Sizes(const ModelSpec& m, const Layout& layout, const ProgramOptions& options) {
  const auto f = [](std::int64_t value) { return static_cast<double>(value); };
  tokens = f(layout.microbatch * options.seq);
  word = options.precision == Precision::fp32 ? 4 : 2;
  const bool half = options.precision == Precision::bf16;
  rows = layout.expert == 1 ? Amount{tokens * f(m.top_k), 0} : Amount{0, 1};
  const auto per_row = [&](double bytes) { return Amount{rows.fixed * bytes, rows.per_row * bytes}; };

  const double d = f(m.d_model), q = f(m.heads * m.head_dim), kv = f(m.kv_heads * m.head_dim);
  x = tokens * d * word;
  routed = tokens * f(m.top_k) * d * word;
  qkv = tokens * (q + 2 * kv) * word;
  heads = tokens * q * word;
  const double rstd = 2 * tokens * 4;
  logsumexp = tokens * f(m.heads) * 4;
  probabilities = tokens * f(m.experts) * 4 * (m.router.z_loss_weight > 0 ? 2 : 1);
  // The router's product is in fp32: bf16 runs keep copies of its input and weight.
  normed_fp32 = half ? tokens * d * 4 : 0;
  normed = x + (half ? normed_fp32 + f(m.experts) * d * 4 : x);
  // The attention kernel keeps its output by head; the projection keeps it by token: a copy.
  attention = rstd + x + qkv + 2 * heads + logsumexp + probabilities;
  routing = tokens * f(m.top_k) * (8 + 4 + 8 + 8);
  compressed = tokens * (d + 4 * std::ceil(d / 128));
  if (layout.expert > 1) row_orders = {0, 16};
  row_block = per_row(d * word);
  gate_up = per_row(2 * f(m.ffn) * word);
  activated = per_row(f(m.ffn) * word);
  logits = tokens * f(m.vocab) * word;
  head_weight = f(m.vocab) * d * word;
  const double local_experts = f(layout.slots_per_rank(m));
  expert_gate_up_weight = local_experts * 2 * f(m.ffn) * d * word;
  expert_down_weight = local_experts * f(m.ffn) * d * word;
  largest_dense_weight = std::max((q + 2 * kv) * d, q * d) * word;
}

}  // namespace wt
