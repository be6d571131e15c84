#include "sim/program/compose/muon.hpp"

#include <algorithm>
#include <cmath>

#include "configs/base/number.hpp"

namespace wt {

std::vector<MuonMatrices> muon_matrices(const ModelSpec& model, const Layout& layout, Group group, std::int64_t layer) {
  std::vector<MuonMatrices> out;
  const auto add = [&out](std::int64_t rows, std::int64_t columns, std::int64_t count) {
    if (rows * columns * count > 0) out.push_back({std::min(rows, columns), std::max(rows, columns), as_double(count)});
  };
  const auto add_ffn = [&](std::int64_t width, std::int64_t count) {
    if (width > 0) add(width, model.d_model, count * (model.ffn_rows(width) / width + 1));
  };
  if (group == Group::expert && model.moe(layer))
    add(model.ffn, model.expert_width(), layout.slots_per_rank(model) * (model.ffn_rows(model.ffn) / model.ffn + 1));
  if (group != Group::dense) return out;
  const std::int64_t d = model.d_model, q = model.heads * model.head_dim;
  if (const LinearMixerSpec& l = model.linear; model.linear_mixer(layer)) {
    add(l.input_rows(), d, 1);
  } else if (const MlaSpec& a = model.attention.mla; a.on()) {
    add(a.q_lora_rank, d, 1);
    add(q, a.q_lora_rank > 0 ? a.q_lora_rank : d, 1);
    add(a.kv_lora_rank + a.qk_rope_head_dim, d, 1);
    add(model.heads * (a.qk_nope_head_dim + a.v_head_dim), a.kv_lora_rank, 1);
  } else {
    add(a.q_lora_rank, d, 1);
    add((model.attention.output_gate ? 2 : 1) * q, a.q_lora_rank > 0 ? a.q_lora_rank : d, 1);
    add(model.kv_heads * model.head_dim, d, model.attention.shared_kv ? 1 : 2);
  }
  const std::int64_t values = model.linear_mixer(layer) ? model.linear.value_width() : model.heads * model.v_head_dim();
  if (const std::int64_t rank = model.attention.out_rank, groups = model.attention.out_groups;
      rank > 0 && !model.linear_mixer(layer)) {
    add(rank, values / groups, groups);
    add(d, groups * rank, 1);
  } else {
    add(d, values, 1);
  }
  if (model.moe(layer)) add(model.moe_latent, d, 2);
  add_ffn(model.ffn_width(layer), 1);
  if (model.moe(layer)) add(model.experts, d, 1);
  if (model.mtp(layer)) add(d, 2 * d, 1);
  return out;
}

std::vector<WorkItem> newton_schulz(const MuonMatrices& matrices) {
  const auto [m, n, count] = matrices;
  const double products = as_double(kNewtonSchulz) * count;
  const std::int64_t groups = std::max<std::int64_t>(1, std::llround(products));
  std::vector<WorkItem> out;
  for (const auto& [width, inner] : {std::pair{m, n}, {m, m}, {n, m}})
    out.push_back(make_item(Kernel::grouped_gemm, Pass::forward, Precision::bf16, {products * as_double(m), 0},
                            {width, inner, groups}));
  return out;
}

}  // namespace wt
