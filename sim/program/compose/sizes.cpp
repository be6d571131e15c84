#include "sim/program/compose/sizes.hpp"

#include <algorithm>
#include <cmath>

#include "configs/base/number.hpp"

namespace wt {

/// The inputs, and values that several sizes are computed from.
struct Sizes::Block {
  const ModelSpec& model;
  const Layout& layout;
  const ProgramOptions& options;
  const MemoryFacts& facts = options.memory;
  std::int64_t layer;
  bool moe = model.moe(layer);
  bool half = options.precision == Precision::bf16;
  bool one_norm = model.attention.parallel == AttentionSpec::Parallel::one_norm;
  bool mixer_alone = !model.feeds_forward(layer);
  double top_k = moe ? as_double(model.top_k) : 0;
  double d = as_double(model.d_model), expert_d = as_double(model.expert_width());
  bool linear = model.linear_mixer(layer);
  double q_width = as_double(linear ? model.linear.value_width() : model.heads * model.head_dim);
  double kv_width = as_double(model.kv_heads * model.head_dim);
  double out_width = linear ? q_width : as_double(model.heads * model.v_head_dim());
  double ffn_width = as_double(model.ffn_width(layer));
  /// Number of ffn-wide tensors that an FFN's activation keeps in addition to its input: its output, for the gradient
  /// of the next weight, and the activated gate if the gate is not fused.
  bool frozen = options.frozen();
  double activations = (model.gated() && !facts.fused_gate ? 2 : 1) - (frozen ? 1 : 0);
  /// Number of adapters of the projections of q, k and v, or of the output projection.
  std::int64_t adapters(bool output) const {
    std::int64_t count = 0;
    for (const AdaptedProduct& each : options.lora.value_or(AdapterShape{}).products)
      count += each.layer == layer && each.output == output;
    return count;
  }
  /// Whether the projection's input is kept, for the gradient of its weight or of adapters.
  bool keeps_input(bool output) const { return !frozen || adapters(output) > 0; }
  /// Whether GeGLU is our trainer's on a GPU (trainer/model/activation.cpp), which is not fused and processes all rows
  /// at once. On a CPU our trainer processes some rows at a time. Megatron's products, which add in place, have fused
  /// gates.
  bool fp32_gate = (model.activation == Activation::geglu || model.activation == Activation::geglu_tanh) &&
                   !options.transport_scratch && facts.fused_gate && facts.weight_gradients == WeightGradients::added;
  /// Bytes per element: the GELU of the gate, and for 16-bit inputs copies of gate and up.
  double gate_forward() const { return fp32_gate ? (half ? 12 : 4) : 0; }
  /// up times the gradient, the gate's gradient, and such copies of gate, up and gradient.
  double gate_backward() const { return fp32_gate ? (half ? 20 : 8) : 0; }
  /// The most rows of these tokens that the experts accept, or with padding compute.
  double kept_rows(double of_tokens) const {
    const double all = of_tokens * top_k;
    if (!moe || !model.router.drops()) return all;
    const double most = as_double(model.experts * model.router.capacity(static_cast<std::int64_t>(all), model.experts));
    return model.router.padded ? most : std::min(all, most);
  }
};

Sizes::Sizes(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t layer) {
  const Block block{.model = model, .layout = layout, .options = options, .layer = layer};
  tokens = as_double(layout.microbatch * options.seq) / as_double(layout.context);
  own_tokens = layout.sequence_parallel ? tokens / as_double(layout.tensor) : tokens;
  word = options.precision == Precision::fp32 ? 4 : 2;
  x = own_tokens * block.d * word;
  whole_x = tokens * block.d * word;
  compressed = own_tokens * (block.d + 4 * std::ceil(block.d / 128));
  router_sizes(block);
  attention_sizes(block);
  ffn_sizes(block);
  norm_sizes(block);
  expert_sizes(block);
  head_sizes(block);
  weight_gradient_added = block.half && options.transport_scratch ? 3 : 1;
  if (block.frozen || block.facts.weight_gradients != WeightGradients::added)
    for (double* temporary : {&largest_dense_weight, &ffn_gate_up_weight, &ffn_down_weight, &head_weight,
                              &expert_gate_up_weight, &expert_down_weight})
      *temporary = 0;
}

void Sizes::router_sizes(const Block& b) {
  const RouterSpec& router = b.model.router;
  permuted = b.kept_rows(own_tokens);
  routed = (b.layout.dispatcher == Dispatcher::allgather ? own_tokens : permuted) * b.expert_d * word;
  routing = own_tokens * b.top_k * (8 + 4 + 8 + 8 + (router.drops() ? 1 : 0));
  probabilities = b.moe ? own_tokens * as_double(b.model.experts) * 4 * (router.z_loss_weight > 0 ? 2 : 1) : 0;
}

double Sizes::query_key_value_sizes(const Block& b) {
  const ModelSpec& m = b.model;
  const AttentionSpec& a = m.attention;
  double variants = 0;
  up_projected = 0;
  if (b.linear) {  // outputs of the projection, the convolution and the kernel, which the gated norm reads
    const double rows = as_double(m.linear.input_rows());
    projected = qkv = tokens * rows * word;
    kv = kv_gathered = kv_held = 0, q = qkv;
    largest_dense_weight = std::max(rows, b.out_width) * b.d * word;
    return tokens *
           (as_double(m.linear.conv_channels()) * word + b.out_width * word + 4 * as_double(m.linear.value_heads));
  }
  if (a.mla.on()) {
    const double lora = as_double(a.mla.kv_lora_rank), low = as_double(a.mla.q_lora_rank);
    projected =
        tokens *
        (b.q_width + lora + as_double(a.mla.qk_rope_head_dim + m.heads * (a.mla.qk_nope_head_dim + a.mla.v_head_dim))) *
        word;
    qkv = 3 * tokens * b.q_width * word;  // values are padded to the width of keys
    kv = 2 * tokens * b.q_width * word;
    up_projected = qkv - tokens * as_double(a.mla.qk_rope_head_dim) * word;
    variants = tokens * (2 * (lora + low) * word + 4 * (low > 0 ? 2 : 1));
    largest_dense_weight =
        std::max({b.q_width * (low > 0 ? low : b.d), low * b.d,
                  as_double(m.heads * (a.mla.qk_nope_head_dim + a.mla.v_head_dim)) * lora, b.out_width * b.d}) *
        word;
  } else {
    projected = qkv = tokens * (b.q_width + 2 * b.kv_width) * word;
    kv = 2 * tokens * b.kv_width * word;
    variants = 2 * tokens * as_double(a.mla.q_lora_rank) * word;
    largest_dense_weight = std::max((b.q_width + 2 * b.kv_width) * b.d, b.q_width * b.d) * word;
  }
  if (a.output_gate) {  // kept: the kernel's output, the gate, and their product, which is the projection's input
    projected += tokens * b.q_width * word;
    variants += 2 * tokens * b.q_width * word;
    largest_dense_weight = (2 * b.q_width + 2 * b.kv_width) * b.d * word;
  }
  q = qkv - kv;
  kv_gathered = kv * as_double(b.layout.context);
  kv_held = b.layout.context_ring || b.facts.context_by_heads ? kv : kv_gathered;
  if (a.qk_norm != AttentionSpec::QkNorm::none)
    variants += tokens * ((b.q_width + b.kv_width) * word +
                          (a.qk_layernorm ? 2 * word : 4) *
                              (a.qk_norm == AttentionSpec::QkNorm::full ? 2 : as_double(m.heads + m.kv_heads)));
  if (a.indexer.on())  // its queries and key, which the gradients of its projections need
    variants += tokens * as_double((a.indexer.heads + 1) * a.indexer.head_dim) * word;
  if (a.clip_qkv > 0) variants += tokens * (b.q_width + 2 * b.kv_width);
  return variants;
}

void Sizes::attention_sizes(const Block& b) {
  const double variants = query_key_value_sizes(b);
  const double rows_of_scores = b.linear ? 0 : tokens * as_double(b.model.heads);
  scores = b.options.materialised_scores ? rows_of_scores * as_double(b.options.seq) * word : 0;
  // With dropout: a byte mask and the masked result (5 a s of Korthikanti et al.). Flash attention keeps the logarithm
  // of each row's sum.
  const double softmax = !b.options.materialised_scores ? rows_of_scores * 4
                         : b.facts.dropout              ? scores * (2 + 1 / word)
                                                        : scores;
  heads = tokens * b.q_width * word;
  core_made = heads + softmax;
  core = softmax + (b.facts.attention_by_head && !b.linear ? heads : 0);
  // RMSNorm keeps 1/rms in fp32, the library's LayerNorm mean and 1/deviation in the compute type.
  const double statistics = own_tokens * (b.model.norm == Norm::rmsnorm ? 4 : 2 * word);
  const auto low = [&](bool into_residual) {
    return b.frozen ? tokens * as_double(b.options.lora->rank * b.adapters(into_residual)) * word : 0;
  };
  projection = statistics + variants + low(false);
  // The projection keeps attention's output by token. This is a copy if the kernel keeps it by head, or if heads went
  // to other ranks. The second norm keeps the residual that it reads; in a parallel block it reads the block's input.
  const double output = b.keeps_input(true) || !b.facts.attention_by_head ? tokens * b.out_width * word : 0;
  const double exchanged = b.layout.context > 1 && b.facts.context_by_heads ? heads : 0;
  const double residual = b.mixer_alone || b.model.attention.parallel != AttentionSpec::Parallel::none ? 0 : x;
  const double masks = b.facts.dropout ? 2 * own_tokens * b.d : 0;  // byte masks after attention and FFN
  // Norms of what attention and FFN add keep their inputs.
  const double added = b.model.norm_placement == NormPlacement::both ? 2 * (x + statistics) : 0;
  attention = (b.one_norm || b.mixer_alone ? 1 : 2) * statistics + added + residual + qkv + variants + output + core +
              exchanged + masks + probabilities + low(false) + low(true) + b.facts.kept_inputs * x;
  attention_kept = (qkv + x) / 2 + output + softmax;
}

void Sizes::ffn_sizes(const Block& b) {
  const double gate_up_width = as_double(b.model.ffn_rows(b.model.ffn_width(b.layer)));
  ffn_gate_up = tokens * gate_up_width * word;
  ffn_activated = tokens * b.ffn_width * word;
  ffn_gate_forward = tokens * b.ffn_width * b.gate_forward();
  ffn_gate_backward = tokens * b.ffn_width * b.gate_backward();
  ffn_saved = ffn_gate_up + b.activations * ffn_activated;
  ffn_output_saved = b.frozen ? 0 : ffn_activated;
  ffn_gate_up_weight = gate_up_width * b.d * word;
  ffn_down_weight = b.ffn_width * b.d * word;
  ffn_saved_kept = ffn_gate_up / 2;
  ffn_kept = ffn_saved_kept + (b.ffn_width > 0 ? x / 2 : 0);
  ffn_input_shared = (b.one_norm && b.keeps_input(false)) || (b.moe && !b.half && !b.frozen);
}

void Sizes::norm_sizes(const Block& b) {
  // The router's product is in fp32, so bf16 runs keep copies of its input and weight. The FFN's input is counted
  // separately.
  normed_fp32 = b.moe && b.half ? own_tokens * b.d * 4 : 0;
  projection_input_kept = b.keeps_input(false);
  first_norm = b.one_norm || !b.keeps_input(false) ? 0 : x;
  router_input_copied = normed_fp32 > 0 ? (b.frozen ? 0 : normed_fp32) + as_double(b.model.experts) * b.d * 4 : 0;
  const double second_norm = !b.moe ? 0 : b.half ? router_input_copied : b.ffn_width > 0 || b.frozen ? 0 : x;
  normed = first_norm + second_norm;
}

void Sizes::expert_sizes(const Block& b) {
  const double ffn = as_double(b.model.ffn);
  rows = b.layout.expert == 1 ? Amount{b.kept_rows(b.layout.whole_experts ? own_tokens : tokens), 0}
                              : Amount{0, b.moe ? 1.0 : 0.0};
  const auto per_row = [&](double bytes) { return Amount{rows.fixed * bytes, rows.per_row * bytes}; };
  if (b.layout.expert > 1 && b.moe) row_orders = {0, 16};
  row_block = per_row(b.expert_d * word);
  const double gate_up_width = as_double(b.model.ffn_rows(b.model.ffn));
  gate_up = per_row(gate_up_width * word);
  activated = per_row(ffn * word);
  gate_forward = per_row(ffn * b.gate_forward());
  gate_backward = per_row(ffn * b.gate_backward());
  experts_output_saved = b.frozen ? Amount{} : activated;
  // Recompute of `products` keeps what was exchanged; a rank that has all experts keeps nothing of them, because the
  // list of kept ops has no grouped products.
  experts_kept = b.layout.expert == 1 ? Amount{} : Amount{gate_up.fixed / 2, gate_up.per_row / 2};
  experts_activation = {b.activations * activated.fixed, b.activations * activated.per_row};
  experts_saved = {gate_up.fixed + experts_activation.fixed, gate_up.per_row + experts_activation.per_row};
  const double local_experts = b.moe ? as_double(b.layout.slots_per_rank(b.model)) : 0;
  expert_gate_up_weight = local_experts * gate_up_width * b.expert_d * word;
  expert_down_weight = local_experts * ffn * b.expert_d * word;
}

void Sizes::head_sizes(const Block& b) {
  const double vocab = as_double(b.model.vocab);
  const auto all = static_cast<std::int64_t>(tokens);
  const std::int64_t piece =
      loss_piece_tokens(b.options.loss_chunks.value_or(b.facts.loss_chunks), all, b.model.vocab, b.model.d_model);
  chunked_loss = piece < all;
  logits = as_double(piece) * vocab * std::max(word, b.facts.logit_bytes);
  logit_gradient = as_double(piece) * vocab * word;
  head_weight = vocab * b.d * word;
}

}  // namespace wt
