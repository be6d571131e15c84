// Tensor parallelism as a slice of the model: a tensor rank's products are those of a narrower model (Shoeybi et al.
// 2019, arXiv 1909.08053). Heads, FFN and expert widths and the vocabulary are divided; d_model and head_dim are kept.
// Norms, router and latent projections are complete on every rank.
#pragma once
#include <cstdint>

#include "configs/files/model.hpp"

namespace wt {

/// `tensor` must divide heads and FFN widths (Layout::check). A vocabulary that it does not divide is padded. Every
/// rank has at least one key-value head; ranks that share one each have a copy. With `whole_experts`, experts keep
/// their width.
ModelSpec tensor_slice(const ModelSpec& model, std::int64_t tensor, bool whole_experts = false);

}  // namespace wt
