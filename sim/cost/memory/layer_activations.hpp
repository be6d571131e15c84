// What one layer keeps for its backward pass, in bytes a token: the tensors of Korthikanti et al. 2022, section 4, for
// any width of heads and FFN, gated or not, dense or with experts, with scores materialised or not.
#pragma once
#include "configs/spec/model.hpp"
#include "configs/spec/stack.hpp"
#include "sim/measurements/run_rows.hpp"

namespace wt {

struct LayerActivations {
  double residual = 0;  ///< norms, residual stream: split by sequence parallelism alone
  double products = 0;  ///< operands of attention, FFN and experts: split by tensor parallelism
  double split(std::int64_t tensor, bool sequence_parallel) const;  ///< bytes a token on one rank
};

/// Of a layer of the row's model, without what its recompute drops: the scores (selective), half of the products
/// (selective per op) or all but the input (full).
LayerActivations layer_activations(const RunRow& row, std::int64_t layer, const MemoryFacts& facts);
/// The same without recompute.
LayerActivations whole_layer_activations(const RunRow& row, std::int64_t layer, const MemoryFacts& facts);

}  // namespace wt
