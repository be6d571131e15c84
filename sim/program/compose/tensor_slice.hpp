// Tensor parallelism by slicing the model: the products of one rank of a tensor group are those of a narrower model
// (Shoeybi et al. 2019, arXiv 1909.08053): heads, FFN and expert widths and the vocabulary are divided, d_model and
// head_dim are kept. Norms, router and latent projections are whole on every rank.
#pragma once
#include <cstdint>

#include "configs/files/model.hpp"

namespace wt {

/// `tensor` divides heads and FFN widths (Layout::check). A vocabulary that it does not divide is filled up; of keys
/// and values every rank has a head at least, ranks that share one hold it twice.
/// Whole experts keep their width.
ModelSpec tensor_slice(const ModelSpec& model, std::int64_t tensor, bool whole_experts = false);

}  // namespace wt
