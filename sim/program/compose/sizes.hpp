// Sizes in bytes of a step's tensors: what each segment saves, passes on, or needs temporarily. The model is that of
// one tensor rank (tensor_slice). Under sequence parallelism, tensors between its products are divided by tokens; the
// inputs of products are kept divided and gathered again in backward (Korthikanti et al. 2022, section 4.2.2). The
// sizes follow trainer/model/segments.cpp tensor by tensor; tests/e2e compares them with the allocator's counts.
#pragma once
#include "configs/files/layout.hpp"
#include "configs/files/model.hpp"
#include "sim/program/compose/compose.hpp"

namespace wt {

/// All sizes are bytes for one microbatch on one rank; those of blocks are for one layer. Amounts depend on the number
/// of received expert rows.
struct Sizes {
  Sizes(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t layer = 0);

  double tokens;         ///< microbatch * seq / context
  double own_tokens;     ///< tokens whose norms and residuals this rank computes: tokens / tensor under sequence
                         ///< parallelism
  double word;           ///< bytes of a compute element
  Amount rows;           ///< expert rows of this rank: tokens * top_k, or the most within the experts' capacity, if the
                         ///< expert axis is 1, otherwise a symbol
  double x;              ///< one (own_tokens, d_model) activation
  double whole_x;        ///< (tokens, d_model)
  double permuted;       ///< own rows that are sorted, and added to their tokens: within the experts' capacity
  double routed;         ///< (own_tokens * top_k, d_model): permuted rows, before dispatch and after collect; the most
                         ///< of them within the experts' capacity; under allgather each token once
  double attention;      ///< saved by attention besides its input: norms' statistics, q, k, v, output, `core`,
                         ///< residual, probabilities, dropout masks
  double normed;         ///< saved by attention unless norms are recomputed: normalised activations
  double normed_fp32;    ///< for the router's product, a copy in bf16 runs
  double probabilities;  ///< (tokens, experts) fp32, and the logits if the z-loss needs them
  double routing;        ///< top-k choice, weights, permutation: kept from forward to backward
  double compressed;     ///< a block input as kept under activation_compression: a byte a value, a scale every 128
  Amount row_orders;     ///< orders of the received rows, if experts are on other ranks
  double projected;      ///< output of the projections of q, k and v
  double qkv;            ///< q, k and v of the rank's own tokens as the attention kernel reads them
  double q, kv;          ///< parts of `qkv`
  double kv_gathered;    ///< keys and values of whole sequences, under context parallelism
  double kv_held;        ///< part of `kv_gathered` that a rank has at a time: all, or its own in a ring
  double projection;     ///< the part of `attention` that is saved before q, k and v are complete
  double first_norm;     ///< the part of `normed` that is saved at that time
  bool projection_input_kept;  ///< the projections of q, k and v keep the rows that they read
  double up_projected;  ///< latent attention: the part of `attention` computed from the latent vectors, minus the
                        ///< shared rotary part of keys, which is kept instead
  double router_input_copied;  ///< the part of `normed` that is the router's fp32 copy
  double heads;                ///< output of the attention kernel
  double core_made;            ///< outputs of the attention kernel: its result, and logsumexp or scores
  double core;                 ///< the part of `core_made` that only its backward needs: recompute of the core drops it
  // Kept under recompute of `products`: everything saved, except half of the second products' outputs, and of experts
  // on the same rank nothing.
  double attention_kept;  ///< attention's output, and the half of the projections
  double ffn_kept, ffn_saved_kept;
  Amount experts_kept;
  double scores;        ///< (heads, tokens, seq) in the compute type, if materialised, otherwise 0
  Amount row_block;     ///< (rows, d_model)
  Amount gate_up;       ///< (rows, 2 ffn)
  Amount activated;     ///< (rows, ffn)
  Amount gate_forward;  ///< fp32 tensors of GeGLU on a GPU, in addition to its input and its result
  Amount gate_backward;
  Amount experts_saved;         ///< inputs of the second product and of the activation
  Amount experts_output_saved;  ///< like ffn_output_saved
  Amount experts_activation;    ///< the part of `experts_saved` after the first product
  double logits;                ///< (tokens of a piece, vocab) with copies and gradients (loss_piece_tokens)
  double logit_gradient;        ///< like `logits`, in the compute type
  bool chunked_loss;            ///< there are several pieces
  double
      head_weight;  ///< gradient temporary of the output projection; 0, like the next three, if products add in place
  double expert_gate_up_weight;  ///< gradient temporary (compute type) of this rank's gate and up weights
  double expert_down_weight;
  double largest_dense_weight;  ///< likewise, of the projections around attention
  double ffn_gate_up;           ///< first product of the dense FFN or the shared experts
  double ffn_activated;
  double ffn_gate_forward, ffn_gate_backward;  ///< like gate_forward and gate_backward
  double ffn_saved;                            ///< like experts_saved
  double ffn_gate_up_weight;                   ///< gradient temporaries
  double ffn_down_weight;
  double ffn_output_saved;  ///< the activation's output, which a frozen second product does not keep
  bool ffn_input_shared;    ///< the FFN's input is a tensor that attention also saves
  /// Size of a weight's gradient while it is added to its fp32 sum, over its size in the compute type. Larger than 1 on
  /// CPUs, whose addition of bf16 to fp32 first makes an fp32 copy.
  double weight_gradient_added;

 private:
  struct Block;
  void router_sizes(const Block& block);
  double query_key_value_sizes(const Block& block);  ///< returns what variants of attention save beyond q, k and v
  void attention_sizes(const Block& block);          ///< after router_sizes
  void ffn_sizes(const Block& block);
  void norm_sizes(const Block& block);
  void expert_sizes(const Block& block);
  void head_sizes(const Block& block);
};

}  // namespace wt
