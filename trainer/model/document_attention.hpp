// Attention inside the documents of a packed sequence: a query only sees the keys of its own document.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <vector>

namespace wt {

/// For each sequence of a microbatch, the positions where its documents begin, ascending from 0; empty: every sequence
/// is one document.
using Documents = std::vector<std::vector<std::int64_t>>;

/// Attention of q (1, H, n, hd), k and v (1, KV, keys, hd) with a mask (1, H or 1, n, keys); without one it is causal,
/// with as many keys as queries.
using AttentionCore = std::function<at::Tensor(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                               const std::optional<at::Tensor>& mask)>;

/// q (B, H, S / C, hd), k and v (B, KV, S, hd) -> (B * S / C, H, v_head_dim). `masks`: the layer's, as in Positions;
/// under context parallelism one for each of a rank's two pieces. Calls `core` for each document, whose saved tensors
/// add up to those of a single call; a mask for all would need S x S numbers per sequence.
at::Tensor attend_documents(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Documents& documents,
                            const std::vector<at::Tensor>& masks, std::int64_t context, std::int64_t v_head_dim,
                            const AttentionCore& core);

}  // namespace wt
