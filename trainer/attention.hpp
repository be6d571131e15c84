// Attention of every family up to its output projection: q, k and v with their norms, clipping and positions, and the
// attention kernel. Autograd saves q, k, v, the kernel's output and one logsumexp a row and head, and what the variants add
// (sim/program/sizes.cpp).
#pragma once
#include <ATen/core/Tensor.h>

#include "configs/spec/model.hpp"
#include "trainer/functions.hpp"
#include "trainer/weights.hpp"

namespace wt {

/// What attention needs to know of positions.
struct Positions {
  RopeTable rope;    ///< of angle zero where positions are linear biases
  at::Tensor alibi;  ///< (1, H, S, S) fp32: slope * (key - query), -infinity for later keys; undefined with rotary positions
  static Positions make(const ModelSpec& model, std::int64_t seq);
};

/// LayerNorm or RMSNorm by the model, with the weights called `name`.
at::Tensor norm(const at::Tensor& x, const Slot& weights, const std::string& name, const ModelSpec& model);

/// normed (T, D) = that norm of x; product (T, N) = normed * weight^T, computed in `type`.
struct Projected {
  at::Tensor normed, product;
};
/// `again`: backward computes the normalised rows once more instead of keeping them (RMSNorm alone).
Projected norm_then_product(const at::Tensor& x, const Slot& weights, const std::string& name, const at::Tensor& weight,
                            const ModelSpec& model, at::ScalarType type, bool again);

struct Attended {
  at::Tensor values;  ///< (B*S, H * v_head_dim)
  at::Tensor normed;  ///< (B*S, D) the normalised input
};
/// x (B*S, D), the block's input. `dense`: the block's gathered weights; `again` as above.
Attended attend(const at::Tensor& x, const Slot& dense, const ModelSpec& model, const Positions& positions, std::int64_t batch,
                bool again);

}  // namespace wt
