#include "sim/cost/memory/layer_activations.hpp"

namespace wt {
namespace {

constexpr double kElement = 2;  // bf16 or fp16
double as_double(std::int64_t value) { return static_cast<double>(value); }

/// Inputs of the FFN's second product and of its activation, without the input of the first product.
double ffn_bytes(const ModelSpec& m, std::int64_t width, const MemoryFacts& facts) {
  const bool unfused = m.activation == Activation::swiglu && !facts.fused_gate;
  return kElement * as_double(m.ffn_rows(width) + (unfused ? 2 : 1) * width);
}

double attention_bytes(const RunRow& row, const MemoryFacts& facts, bool scores) {
  const ModelSpec& m = row.model;
  const double queries = as_double(m.heads * m.head_dim), keys = as_double(m.kv_heads * m.head_dim);
  const double outputs = row.cp > 1 && facts.context_by_heads ? 2 : 1;
  const double operands = kElement * (queries + 2 * keys + outputs * queries);
  if (row.flash_attention) return operands + 4 * as_double(m.heads);  // log of the softmax's sum, fp32
  if (!scores) return operands;
  // Softmax, and with dropout a mask of bytes and what it leaves (5 a s of Korthikanti et al.).
  return operands + as_double(m.heads * row.seq) * (facts.dropout ? 2 * kElement + 1 : kElement);
}

double expert_bytes(const ModelSpec& m, const MemoryFacts& facts) {
  const double row_bytes = 2 * kElement * as_double(m.d_model) + ffn_bytes(m, m.ffn, facts);  // sorted rows in and out
  return as_double(m.top_k) * row_bytes + 2 * 4 * as_double(m.experts);                       // scores and shares, fp32
}

LayerActivations layer_bytes(const RunRow& row, std::int64_t layer, const MemoryFacts& facts, bool scores) {
  const ModelSpec& m = row.model;
  const double width = as_double(m.d_model);
  LayerActivations a;
  a.residual =
      2 * (2 * kElement * width + (facts.dropout ? width : 0));  // both norms' input and output, masks of bytes
  a.products =
      attention_bytes(row, facts, scores) + (m.ffn_width(layer) > 0 ? ffn_bytes(m, m.ffn_width(layer), facts) : 0);
  if (m.moe(layer)) a.products += expert_bytes(m, facts);
  return a;
}

/// torchtitan's selective recompute by op: the layer's input, every second matrix product and the attention are kept.
LayerActivations every_second_product(const RunRow& row, std::int64_t layer) {
  const ModelSpec& m = row.model;
  const double width = as_double(m.d_model), queries = as_double(m.heads * m.head_dim),
               keys = as_double(m.kv_heads * m.head_dim);
  const double ffn = as_double(m.ffn_rows(m.ffn_width(layer)) + m.top_k * (m.moe(layer) ? m.ffn_rows(m.ffn) : 0));
  const double products = queries + 2 * keys + width + ffn + width;  // q, k, v, output, FFN's first and second
  return {kElement * width, kElement * (products / 2 + queries) + 4 * as_double(m.heads)};
}

}  // namespace

double LayerActivations::split(std::int64_t tensor, bool sequence_parallel) const {
  return residual / (sequence_parallel ? as_double(tensor) : 1) + products / as_double(tensor);
}

LayerActivations whole_layer_activations(const RunRow& row, std::int64_t layer, const MemoryFacts& facts) {
  return layer_bytes(row, layer, facts, true);
}

LayerActivations layer_activations(const RunRow& row, std::int64_t layer, const MemoryFacts& facts) {
  if (row.recompute == RunRow::Recompute::full) return {kElement * as_double(row.model.d_model), 0};
  if (row.recompute_text == "selective (per-op)") return every_second_product(row, layer);
  return layer_bytes(row, layer, facts, row.recompute == RunRow::Recompute::none);
}

}  // namespace wt
