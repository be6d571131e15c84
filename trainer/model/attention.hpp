// Attention of every family up to its output projection: q, k and v with their norms, clipping and positions, and the
// attention kernel. Autograd saves q, k, v, the kernel's output and one logsumexp a row and head, and what the variants
// add (sim/program/compose/sizes.cpp).
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "configs/files/model.hpp"
#include "trainer/model/document_attention.hpp"
#include "trainer/model/functions.hpp"
#include "trainer/parameters/weights.hpp"

namespace wt {

/// Which tokens of a sequence a rank has under context parallelism: pieces c and 2C-1-c of 2C equal ones, so that under
/// a causal mask every rank has the same work. Ascending; all of them where C is 1.
std::vector<std::int64_t> context_positions(std::int64_t seq, std::int64_t context, std::int64_t rank);

/// What attention needs to know of positions.
struct Positions {
  RopeTable rope;  ///< of angle zero where positions are linear biases; rows of the rank's own positions
  /// Additive fp32 masks (1, H or 1, queries, keys), -infinity for later keys: slope * (key - query) with linear
  /// biases. One for each of the rank's two pieces under context parallelism, over the keys up to its end; one with
  /// linear biases alone; none otherwise, where the kernel's own causal mask will do.
  std::vector<at::Tensor> masks;
  /// The same for the layers of a window or of chunks, -infinity for what their queries do not see. None where every
  /// layer sees all.
  std::vector<at::Tensor> local_masks;
  std::int64_t context = 1;
  static Positions make(const ModelSpec& model, std::int64_t seq, std::int64_t context = 1, std::int64_t rank = 0);
  /// Masks in `type` on CUDA, whose kernels take no other; fp32 on the CPU.
  Positions to(at::Device device, at::ScalarType type) const;
};

/// x (T, K) times the weights called `name` (N, K), plus their bias and what adapters add where they have such: (T, N).
at::Tensor product(const at::Tensor& x, const Slot& weights, const std::string& name);

/// LayerNorm or RMSNorm by the model, with the weights called `name`.
at::Tensor norm(const at::Tensor& x, const Slot& weights, const std::string& name, const ModelSpec& model);

/// normed (T, D) = that norm of x; product (T, N) = normed * weight^T, computed in `type`.
struct Projected {
  at::Tensor normed, product;
};
/// `again`: backward computes the normalised rows once more instead of keeping them (RMSNorm alone).
Projected norm_then_product(const at::Tensor& x, const Slot& weights, const std::string& name, const at::Tensor& weight,
                            const ModelSpec& model, at::ScalarType type, bool recompute_norm);

struct Qkv {
  at::Tensor q, k, v;  ///< (B, heads, S, head_dim), rotated
  at::Tensor normed;   ///< (B*S, D) the normalised input, where the FFN reads it too
};
/// x (B*S, D), the block's input. `dense`: the block's gathered weights; `again` as above.
Qkv project_qkv(const at::Tensor& x, const Slot& dense, const ModelSpec& model, const Positions& positions,
                std::int64_t batch, bool recompute_norm);

/// Keys and values of all ranks of a context group, (C, 2, B, KV, S / C, hd) -> (2, B, KV, S, hd) in the order of the
/// sequence.
at::Tensor in_sequence_order(const at::Tensor& gathered);
/// Its inverse, for gradients.
at::Tensor in_rank_order(const at::Tensor& k, const at::Tensor& v, std::int64_t ranks);

/// What scaled_dot_product_attention runs for such tensors in training: "flash", "efficient", "cudnn" or "math", as
/// LibTorch chooses. q (B, H, S, hd), k and v (B, KV, S', hd); causal without a mask.
std::string attention_backend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const std::optional<at::Tensor>& mask = {});
/// What attend() would run in the first layer for such a microbatch of `sequences`.
std::string attention_backend(const ModelSpec& model, const Positions& positions, std::int64_t sequences,
                              at::ScalarType type);

/// Attention with a learned logit a head, sinks (H), beside those of the keys in every softmax (GPT-OSS):
/// q (B, H, S, hd), k and v (B, KV, S', hd) -> (B, H, S, hd); causal without a mask. Saves what attention without sinks
/// saves: a sink scales the output of that by sigmoid(logsumexp - sink), and its backward is exact with the logsumexp
/// that includes the sink. `fused` is for the CPU, whose kernel tells its logsumexp; without it all scores are there.
at::Tensor sink_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& sinks,
                          const std::optional<at::Tensor>& mask, double scale, bool fused);

/// q (B, H, S / C, hd), k and v (B, KV, S, hd) -> (B * S / C, H * v_head_dim). `dense`: the layer's gathered weights,
/// of which it takes the sinks. `documents`: those of the B sequences.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Slot& dense,
                  const ModelSpec& model, const Positions& positions, std::int64_t layer,
                  const Documents& documents = {});

}  // namespace wt
