// Differentiable pieces of a block that LibTorch lacks or saves too much for: thin autograd functions over kernels/.
// Each saves exactly what its backward reads, which is what the step program's memory accounts for.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "configs/files/recompute.hpp"
#include "kernels/kernels.h"
#include "trainer/model/grouped_choice.hpp"
#include "trainer/model/router.hpp"

namespace wt {

/// Where a kernel over this tensor runs: on the CPU, or on the tensor's device and that device's current stream.
/// Throws Error{runtime} for a device that this build does not serve.
WtStream stream_of(const at::Tensor& tensor);
/// What kernels call the type of its elements. Throws Error{runtime} for any but fp32 and bf16.
WtDtype dtype_of(const at::Tensor& tensor);
/// Throws Error{runtime} in the kernel's own words where it refused.
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
/// x (T, D), gain (D), weight (N, D) in x's type; the product computes and results in `type`. Saves x, one fp32 a row,
/// and the normalised rows as the product reads them; with `again` not these: backward computes them once more, to the
/// same bits. Of a frozen weight it needs none.
NormProduct norm_product(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& weight, double eps,
                         at::ScalarType type, bool recompute_norm);

/// rows (R, K) sorted by expert, weight (E, N, K), offsets (E) int32: end of each expert's rows -> (R, N), each row
/// times its expert's weight^T, plus its row of bias (E, N) where that is defined, for which the host reads the
/// offsets. Saves the rows unless the weight is frozen. With `compute` off the result has no values: backward, which
/// does not read them, can start there. By LibTorch's _grouped_mm or our kernel: forward and backward each as
/// GroupedChoice has it for this device, unless `by` says.
at::Tensor grouped_product(const at::Tensor& rows, const at::Tensor& weight, const at::Tensor& offsets, bool compute,
                           std::optional<GroupedBy> by = {}, const at::Tensor& bias = {});
/// Does our kernel serve these (a GPU of compute capability 9.0, bf16, widths of whole 16 bytes)?
bool own_grouped_product(const at::Tensor& rows, const at::Tensor& weight);

/// y (T, N) with scale * (x A^T) B^T added to its columns from `first` on, in place: x (T, K), a (r, K), b (out, r).
/// Saves x, the factors and x A^T (T, r).
at::Tensor add_low_rank(const at::Tensor& y, const at::Tensor& x, const at::Tensor& a, const at::Tensor& b,
                        std::int64_t first, double scale);

/// x (T, D), gain (D) -> (T, D). Saves x and one fp32 a row.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps);

/// qkv (B*S, (H + 2 KV) * hd) -> q (B, H, S, hd), k and v (B, KV, S, hd), rotated. Saves nothing of qkv.
std::vector<at::Tensor> rope_split(const at::Tensor& qkv, const RopeTable& table, std::int64_t batch,
                                   std::int64_t heads, std::int64_t kv_heads);

/// x (T, D) -> rows sorted by expert slot (T*k, D). Saves the permutation.
at::Tensor permute(const at::Tensor& x, const RouterChoice& choice, std::int64_t top_k);

/// gate_up (R, 2F) -> (R, F). Saves its input.
at::Tensor swiglu(const at::Tensor& gate_up);

/// The output of an FFN's or expert's first product, (R, 2F) or with GELU (R, F), -> (R, F). Saves its input.
at::Tensor activate(const at::Tensor& first, Activation activation);

// Without autograd: the caller keeps what backward needs.

/// out (T, D) = residual + sum over the top k of weight * rows[inverse].
at::Tensor combine(const at::Tensor& rows, const RouterChoice& choice, const at::Tensor& weights,
                   const at::Tensor& residual);
/// Gradients of rows (T*k, D) and weights (T, k).
std::pair<at::Tensor, at::Tensor> combine_backward(const at::Tensor& gradient, const at::Tensor& rows,
                                                   const RouterChoice& choice, const at::Tensor& weights);
/// An activation as kept for recompute: a byte a value, an fp32 scale for every 128 of a row (wt_quantize_blocks).
struct PackedRows {
  at::Tensor codes, scales;
};
/// x (T, D); `compression` not none.
PackedRows pack_rows(const at::Tensor& x, Compression compression);
/// (T, D) in `type`.
at::Tensor unpack_rows(const PackedRows& packed, Compression compression, at::ScalarType type);
/// Stable sort of rows by `slot` (n), int64 in [0, slots): order[j] is the row that comes j-th, inverse[order[j]] = j,
/// both (n) int64; counts (slots) int64, or undefined. `renamed`: slots looked up in it by the values of `slot`, or
/// undefined.
void sort_rows(const at::Tensor& slot, std::int64_t slots, at::Tensor& order, at::Tensor& inverse,
               const at::Tensor& counts = {}, const at::Tensor& renamed = {});
/// y[j] = x[index[j]].
at::Tensor gather_rows(const at::Tensor& x, const at::Tensor& index);
/// Adds the sum over rows of -log softmax(logits)[target] to `loss`, fp64 of one element on the same device; logits
/// become scale * (softmax - onehot).
void cross_entropy_in_place(at::Tensor& logits, const at::Tensor& targets, double scale, const at::Tensor& loss);

}  // namespace wt
