// The segments of a block between its collectives, and the embedding and head around the blocks. A forward segment runs
// autograd on detached inputs and keeps the graph's ends in LayerState; its backward runs torch::autograd::backward on
// them. Sizes of everything kept here are what sim/program/compose/sizes.cpp accounts for.
#pragma once
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <functional>
#include <vector>

#include "configs/files/model.hpp"
#include "trainer/model/attention.hpp"
#include "trainer/model/functions.hpp"
#include "trainer/parameters/weights.hpp"

namespace wt {

/// What a module of multi-token prediction holds beside its block, from its forward to its backward.
struct ModuleState {
  at::Tensor embedding;  ///< (T, D) leaf: of the tokens that the module is given
  /// Its norm before the shared head: a copy with gradients of its own, because by then the block's slot may hold
  /// another layer's weights, and its gradient buffer another's gradients.
  Slot head_norm;
  at::Tensor input_gradient;  ///< (T, D) of the hidden state that it reads, by the loss of that depth
  // Under context parallelism: the block's input as attention adds it.
  at::Tensor projected;  ///< (T, D)
  torch::autograd::Edge projected_end;
};

/// What one layer holds between its ops in one microbatch. Undefined tensors hold no memory.
struct LayerState {
  at::Tensor input;    ///< (T, D) leaf: the layer's input
  ModuleState module;  ///< unused in layers that are not such a module
  // Under context parallelism, where attention is cut at the gather of keys and values; s = S / C tokens of a sequence.
  at::Tensor q;                ///< (B, H, s, hd); a leaf of the attention graph where it is kept
  at::Tensor kv, kv_gathered;  ///< (2, B, KV, s, hd) own keys and values; (C, ...) those of all ranks, in their order
  at::Tensor k, v;             ///< (B, KV, S, hd) in the order of the sequence; leaves of the attention graph
  at::Tensor residual_input;   ///< (T, D) leaf: the block's input as the attention graph adds it
  torch::autograd::Edge q_end, k_end, v_end;
  at::Tensor q_gradient, kv_gathered_gradient, kv_gradient, residual_input_gradient;
  PackedRows packed;     ///< the same from forward to recompute under activation_compression, which then starts from it
  at::Tensor residual;   ///< (T, D) attention output plus input; after the FFN with its output; until combine
  at::Tensor ffn_input;  ///< (T, D) normalised activations for the dense FFN or the shared experts; a leaf where the
                         ///< graph is kept
  at::Tensor weights;    ///< (T, k) fp32 router weights
  at::Tensor rows;       ///< (T*k, D) permuted rows, until the experts or the exchange have them
  /// Ends of the graphs, without values: what nobody reads again is given back although backward starts there.
  torch::autograd::Edge residual_end, weights_end, rows_end, output_end, ffn_input_end, ffn_output_end;
  RouterChoice choice;

  std::vector<std::int64_t> sent_rows, received_rows;  ///< per expert rank
  at::Tensor received_counts;                          ///< (expert ranks, local experts) int64
  at::Tensor to_expert_major, to_rank_major;           ///< row orders of the received rows, int64
  at::Tensor received;                                 ///< (R, D) rows from all ranks, rank-major
  at::Tensor expert_input;                             ///< (R, D) sorted by expert; a leaf where the graph is kept
  at::Tensor outgoing;                                 ///< (R, D) outputs in rank-major order, to be sent back
  at::Tensor collected;                                ///< (T*k, D) expert outputs of this rank's tokens

  at::Tensor output_gradient;     ///< (T, D)
  at::Tensor ffn_input_gradient;  ///< (T, D)
  at::Tensor collected_gradient, weights_gradient;
  at::Tensor incoming_gradient;      ///< (R, D) rank-major gradient of the expert outputs
  at::Tensor expert_input_gradient;  ///< (R, D), rank-major again, to be sent back
  at::Tensor rows_gradient;          ///< (T*k, D)
};

class Segments {
 public:
  /// Every loss term is divided by the global batch's tokens once.
  Segments(const ModelSpec& model, const Layout& layout, std::int64_t seq, std::int64_t global_sequences,
           at::ScalarType type, std::int64_t context_rank = 0, at::Device device = at::kCPU,
           bool last_target_missing = false);

  // Forward and recompute. What `again` names is not saved in forward: recompute saves it.
  /// Under context parallelism, before attention: queries stay, keys and values are to be gathered.
  void project(LayerState& s, const Slot& dense, std::int64_t layer, Direction direction,
               const LayerRecompute& recompute) const;
  void attention(LayerState& s, const Slot& dense, std::int64_t layer, Direction direction,
                 const LayerRecompute& recompute, const at::Tensor& router_bias, RouterLoss& loss) const;
  /// Dense FFN or shared experts: adds its output to s.residual, which in a dense layer is then the block's output.
  void ffn(LayerState& s, const Slot& dense, std::int64_t layer, Direction direction,
           const LayerRecompute& recompute) const;
  void experts(LayerState& s, const Slot& expert, Direction direction, const LayerRecompute& recompute) const;
  at::Tensor combine_rows(LayerState& s, const LayerRecompute& recompute) const;

  void combine_rows_backward(LayerState& s) const;
  void ffn_backward(LayerState& s) const;
  void experts_backward(LayerState& s) const;
  /// Returns the gradient of the block's input; under context parallelism project_backward does.
  at::Tensor attention_backward(LayerState& s) const;
  at::Tensor project_backward(LayerState& s) const;

  /// Balancing loss of a layer under context parallelism, from loads summed over the ranks that share the sequences.
  at::Tensor balance_loss(const LayerState& s) const;

  /// From the sent and the received counts, both of which must be there: rows to and from each rank, row orders. Here
  /// the host reads from the device; on the way from router to combine it otherwise does so for copies of experts,
  /// for their biases and for fp32 products alone.
  void plan_rows(LayerState& s) const;

  at::Tensor embed(const Slot& embedding, const at::Tensor& tokens) const;
  void embed_backward(GradientBuffer& embedding, const at::Tensor& tokens, const at::Tensor& gradient) const;
  /// Adds the loss (summed over tokens, not divided) to `loss`, one fp64, and returns the gradient of the input.
  /// `norms`: where the norm is, in the head's weights or in those of the module whose `depth` this is, counted from 1.
  at::Tensor head(const Slot& head, const Slot& norms, const at::Tensor& input, const at::Tensor& targets,
                  std::int64_t depth, const at::Tensor& loss) const;
  /// Tokens of the global batch that have a target `depth` + 1 places on.
  double loss_tokens(std::int64_t depth) const {
    return counted_targets_ > 0 ? counted_targets_ : sequences_ * (with_target_ - static_cast<double>(depth));
  }

  const Positions& positions() const { return positions_; }

  /// Of the microbatch that follows.
  void set_documents(Documents documents) { documents_ = std::move(documents); }
  /// Tokens of the global batch that are learned, from the next step on, in place of all that have a target.
  void set_loss_tokens(double tokens) { counted_targets_ = tokens; }

 private:
  /// Calls visit(at, first, count) for the pieces of a sequence that this rank has: `count` tokens from its own token
  /// `at` on stand at the sequence's positions from `first` on.
  void for_own_positions(
      const std::function<void(std::int64_t at, std::int64_t first, std::int64_t count)>& visit) const;
  /// Of the layer's input. A module's is not compressed: the head reads it as well.
  Compression compression(const LayerRecompute& recompute, std::int64_t layer) const;
  /// (T, D): the block's input, which in a module is made of the layer's and the embedding. For attention and project.
  at::Tensor begin_block(LayerState& s, const Slot& dense, std::int64_t layer, Direction direction,
                         const LayerRecompute& recompute) const;

  const ModelSpec& model_;
  const Layout& layout_;
  std::int64_t seq_;            ///< tokens of a sequence that this rank has
  double sequences_, length_;   ///< of the global batch: how many, and tokens of each
  double with_target_;          ///< of the tokens of a sequence
  double counted_targets_ = 0;  ///< of the global batch; 0: with_target_ says it
  Documents documents_;
  std::int64_t context_rank_;
  at::ScalarType type_;
  RouterLossScale router_scale_;
  Positions positions_;
  std::vector<SlotMap> slots_;  ///< by layer
};

}  // namespace wt
