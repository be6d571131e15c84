// Zero-bubble pipelines (Qi et al. 2023, arXiv 2401.10241): a layer's backward pass is split into the gradients of its
// inputs, for which the previous stage waits, and those of its weights, for which nothing waits.
#pragma once
#include "sim/program/compose/op_factory.hpp"

namespace wt {

inline constexpr const char* kWeightGradients = "weights.bwd";

/// Removes the weight halves of the products from a layer's backward ops. Their inputs are kept: weight_gradients()
/// frees the saved activations, and the gradients of the products' outputs are kept as "weights.kept".
void split_backward(Nodes& layer, const Sizes& sizes);
/// One op with the weight halves of the products of a layer's backward ops.
Op weight_gradients(const Nodes& layer);

}  // namespace wt
