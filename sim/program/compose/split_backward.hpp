// Zero-bubble pipelines (Qi et al. 2023, arXiv 2401.10241): a layer's backward pass is cut into the gradients of its
// inputs, which the stage before waits for, and those of its weights, which nobody does.
#pragma once
#include "sim/program/compose/op_factory.hpp"

namespace wt {

inline constexpr const char* kWeightGradients = "weights.bwd";

/// Takes the weight halves of the products out of a layer's backward ops. What they need stays: saved activations are
/// freed by weight_gradients(), and the gradients of the products' outputs are kept as "weights.kept".
void split_backward(Nodes& layer, const Sizes& sizes);
/// One op with the weight halves of the products of a layer's backward ops.
Op weight_gradients(const Nodes& layer);

}  // namespace wt
