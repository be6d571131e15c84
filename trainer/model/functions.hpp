// Differentiable functions that LibTorch lacks, or for which it saves too much: thin autograd functions over kernels/.
// Each saves exactly what its backward reads, which the step program's memory accounts for.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "configs/files/recompute.hpp"
#include "kernels/kernels.h"
#include "trainer/model/grouped_choice.hpp"
#include "trainer/model/router.hpp"

namespace wt {

/// The CPU, or the tensor's CUDA device with its current stream. Throws Error{runtime} for an unsupported device.
WtStream stream_of(const at::Tensor& tensor);
/// The kernels' data type for the tensor. Throws Error{runtime} for types other than fp32 and bf16.
WtDtype dtype_of(const at::Tensor& tensor);
/// Throws Error{runtime} with the kernel's own message.
void check_kernel(WtStatus status);

/// Rotary tables, (seq, rope_dim / 2) fp32 each, times the amplitude of scaled positions.
struct RopeTable {
  at::Tensor cosine, sine;
  static RopeTable make(const ModelSpec& model, std::int64_t seq);
  RopeTable to(at::Device device) const { return {cosine.to(device), sine.to(device)}; }
};

/// RMSNorm and a product that reads it: normed (T, D), product (T, N) = normed * weight^T.
struct NormProduct {
  at::Tensor normed, product;
};
/// x (T, D), gain (D), weight (N, D) in x's type; the product is computed, and returned, in `type`. Saves x, one fp32 a
/// row, and the normalised rows as the product reads them. With `recompute_norm` backward recomputes these, with the
/// same bits. For a frozen weight they are not needed.
NormProduct norm_product(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& weight, double eps,
                         at::ScalarType type, bool recompute_norm);

/// rows (R, K) sorted by expert, weight (E, N, K), offsets (E) int32 (end of each expert's rows) -> (R, N): each row
/// times its expert's weight^T, plus bias (E, N) if defined, for which the host reads the offsets. Saves the rows
/// unless the weight is frozen. Without `compute` the result has no values, but backward, which does not read them, can
/// start there. The kernel is LibTorch's _grouped_mm or ours, in forward and backward separately by GroupedChoice for
/// this device, unless `by` is given.
at::Tensor grouped_product(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& offsets, bool compute,
                           std::optional<GroupedBy> by = {}, const at::Tensor& bias = {});
/// Whether our kernel supports these (a GPU of compute capability 9.0, bf16, widths of whole 16 bytes).
bool own_grouped_product(const at::Tensor& rows, const at::Tensor& weight);

/// Adds scale * (x A^T) B^T to the columns of y (T, N) from `first` on, in place: x (T, K), a (r, K), b (out, r). Saves
/// x, the factors and x A^T (T, r).
at::Tensor add_low_rank(const at::Tensor& y, const at::Tensor& x, const at::Tensor& a, const at::Tensor& b,
                        std::int64_t first, double scale);

/// x (T, D), gain (D) -> (T, D). Saves x and one fp32 a row.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps);

/// qkv (B*S, (H + 2 KV) * hd) -> q (B, H, S, hd), k and v (B, KV, S, hd), rotated. Saves nothing of qkv.
std::vector<at::Tensor> rope_split(const at::Tensor& qkv, const RopeTable& table, std::int64_t batch,
                                   std::int64_t heads, std::int64_t kv_heads);

/// x (T, D) -> the kept rows sorted by expert slot (N, D), N = T*k if none is dropped. Saves the permutation.
at::Tensor permute(const at::Tensor& x, const RouterChoice& choice, std::int64_t top_k);

/// gate_up (R, 2F) -> (R, F). Saves its input.
at::Tensor swiglu(const at::Tensor& gate_up);

/// Activation after the first product of an FFN or expert: (R, 2F), with GELU (R, F), -> (R, F). Saves its input.
at::Tensor activate(const at::Tensor& first, Activation activation);

// Without autograd: the caller keeps what backward needs.

/// out (T, D) = residual + sum over the kept of the top k of weight * rows[inverse].
at::Tensor combine(const at::Tensor& rows, const RouterChoice& choice, const at::Tensor& weights,
                   const at::Tensor& residual);
/// Gradients of rows (N, D) and weights (T, k), those of dropped choices 0.
std::pair<at::Tensor, at::Tensor> combine_backward(const at::Tensor& gradient, const at::Tensor& rows,
                                                   const RouterChoice& choice, const at::Tensor& weights);
/// An activation kept for recompute: one byte a value, one fp32 scale per 128 values of a row (wt_quantize_blocks).
struct PackedRows {
  at::Tensor codes, scales;
};
/// x (T, D); `compression` must not be none.
PackedRows pack_rows(const at::Tensor& x, Compression compression);
/// (T, D) in `type`.
at::Tensor unpack_rows(const PackedRows& packed, Compression compression, at::ScalarType type);
/// Stable sort of rows by `slot` (n), int64 in [0, slots): order[j] is the j-th row, inverse[order[j]] = j, both (n)
/// int64; counts (slots) int64, or undefined. If `renamed` is defined, `slot` contains indices into it, and its values
/// are the slots.
void sort_rows(const at::Tensor& slot, std::int64_t slots, at::Tensor& order, at::Tensor& inverse,
               const at::Tensor& counts = {}, const at::Tensor& renamed = {});
/// y[j] = x[index[j]].
at::Tensor gather_rows(const at::Tensor& x, const at::Tensor& index);
/// Adds the sum over rows of -log softmax(logits)[target] to `loss` (one fp64 on the same device), and replaces logits
/// by scale * (softmax - onehot).
void cross_entropy_in_place(at::Tensor& logits, const at::Tensor& targets, double scale, const at::Tensor& loss);

}  // namespace wt
