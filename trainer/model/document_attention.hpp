// Attention inside of the documents of a packed sequence: a query sees the keys of its own document alone.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <vector>

namespace wt {

/// Of each sequence of a microbatch the places where its documents begin, ascending from 0; empty: each sequence is
/// one.
using Documents = std::vector<std::vector<std::int64_t>>;

/// Attention of q (1, H, n, hd), k and v (1, KV, keys, hd) with a mask (1, H or 1, n, keys); causal without one, and
/// then there are as many keys as queries.
using AttentionCore = std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                               const std::optional<at::Tensor>& mask)>;

/// q (B, H, S / C, hd), k and v (B, KV, S, hd) -> (B * S / C, H, v_head_dim). `masks`: those of the layer, as Positions
/// has them; one for each of a rank's two pieces under context parallelism. Each document is a call of `core`, whose
/// saved tensors add up to those of one call for all; a mask would take S x S numbers a sequence.
at::Tensor attend_documents(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Documents& documents,
                            const std::vector<at::Tensor>& masks, std::int64_t context, std::int64_t v_head_dim,
                            const AttentionCore& core);

}  // namespace wt
