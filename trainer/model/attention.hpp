// Attention of all families up to its output projection: q, k and v with norms, clipping and positions, and the
// attention kernel. Autograd saves q, k, v, the kernel's output, one logsumexp per row and head, and what variants add
// (sim/program/compose/sizes.cpp).
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "configs/files/model.hpp"
#include "trainer/model/document_attention.hpp"
#include "trainer/model/functions.hpp"
#include "trainer/parameters/weights.hpp"

namespace wt {

/// A rank's tokens of a sequence under context parallelism: pieces c and 2C-1-c of 2C equal ones, so that every rank
/// has the same work under a causal mask. Ascending; all tokens where C is 1.
std::vector<std::int64_t> context_positions(std::int64_t seq, std::int64_t context, std::int64_t rank);

/// Attention's inputs that depend on positions.
struct Positions {
  RopeTable rope;  ///< rows of the rank's own positions; zero angles with linear biases
  /// Additive fp32 masks (1, H or 1, queries, keys), -infinity for later keys; with linear biases slope * (key -
  /// query). Under context parallelism one for each of the rank's two pieces, over the keys up to its end; otherwise
  /// one with linear biases; otherwise none, because the kernel's own causal mask suffices.
  std::vector<at::Tensor> masks;
  /// The same for layers with a window or chunks, -infinity for keys that their queries do not see. Empty if there are
  /// no such layers.
  std::vector<at::Tensor> local_masks;
  std::int64_t context = 1;
  static Positions make(const ModelSpec& model, std::int64_t seq, std::int64_t context = 1, std::int64_t rank = 0);
  /// Masks have `type` on CUDA, as its kernels require; fp32 on the CPU.
  Positions to(at::Device device, at::ScalarType type) const;
  void add_to(std::vector<at::Tensor>& tensors) const;
};

/// x (T, K) times the weights `name` (N, K), plus their bias and adapters, if any: (T, N).
at::Tensor product(const at::Tensor& x, const Slot& weights, const std::string& name);

/// LayerNorm or RMSNorm, as in the model, with the weights `name`.
at::Tensor norm(const at::Tensor& x, const Slot& weights, const std::string& name, const ModelSpec& model);

/// normed (T, D) = that norm of x; product (T, N) = normed * weight^T, computed in `type`.
struct Projected {
  at::Tensor normed, product;
};
/// `recompute_norm`: backward recomputes the normalised rows instead of keeping them (only RMSNorm).
Projected norm_then_product(const at::Tensor& x, const Slot& weights, const std::string& name, const at::Tensor& weight,
                            const ModelSpec& model, at::ScalarType type, bool recompute_norm);

struct Qkv {
  at::Tensor q, k, v;  ///< (B, heads, S, head_dim), rotated
  at::Tensor normed;   ///< (B*S, D) the normalised input, if the FFN reads it too
};
/// x (B*S, D) is the block's input. `dense`: the block's gathered weights.
Qkv project_qkv(const at::Tensor& x, const Slot& dense, const ModelSpec& model, const Positions& positions,
                std::int64_t batch, bool recompute_norm);

/// Reorders keys and values of all ranks of a context group, (C, 2, B, KV, S / C, hd), to the order of the sequence,
/// (2, B, KV, S, hd).
at::Tensor in_sequence_order(const at::Tensor& gathered);
/// The inverse, for gradients.
at::Tensor in_rank_order(const at::Tensor& k, const at::Tensor& v, std::int64_t ranks);

/// The kernel of scaled_dot_product_attention for such tensors in training, by LibTorch's choice: "flash", "efficient",
/// "cudnn" or "math". q (B, H, S, hd), k and v (B, KV, S', hd); causal without a mask.
std::string attention_backend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const std::optional<at::Tensor>& mask = {});
/// The kernel of attend() in the first layer for a microbatch of `sequences`.
std::string attention_backend(const ModelSpec& model, const Positions& positions, std::int64_t sequences,
                              at::ScalarType type);

/// Attention with a learned logit per head, sinks (H), in addition to those of the keys in every softmax (GPT-OSS): q
/// (B, H, S, hd), k and v (B, KV, S', hd) -> (B, H, S, hd); causal without a mask. Saves the same as attention without
/// sinks: a sink scales the output by sigmoid(logsumexp - sink), and backward is exact with the logsumexp that includes
/// the sink. `fused` is for the CPU, whose kernel returns its logsumexp; otherwise all scores are materialised.
at::Tensor sink_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& sinks,
                          const std::optional<at::Tensor>& mask, double scale, bool fused);

/// q (B, H, S / C, hd), k and v (B, KV, S, hd) -> (B * S / C, H * v_head_dim). `dense`: the layer's gathered weights,
/// for the sinks. `documents`: those of the B sequences.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Slot& dense,
                  const ModelSpec& model, const Positions& positions, std::int64_t layer,
                  const Documents& documents = {});

}  // namespace wt
