// The segments of a block between its collectives, and embedding and head. A forward segment runs autograd on detached
// inputs and keeps the graph's ends in LayerState; its backward calls torch::autograd::backward on them.
// sim/program/compose/sizes.cpp accounts for everything kept here.
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

/// State of a multi-token prediction module outside its block, from its forward to its backward.
struct ModuleState {
  at::Tensor embedding;  ///< (T, D) leaf: of the module's tokens
  /// Its norm before the shared head: a copy with its own gradients, because the block's slot and gradient buffer may
  /// belong to another layer by then.
  Slot head_norm;
  at::Tensor input_gradient;  ///< (T, D) gradient of the hidden state that it reads, from the loss of that depth
  // Under context parallelism: the block's input as attention adds it.
  at::Tensor projected;  ///< (T, D)
  torch::autograd::Edge projected_end;
};

/// State of one layer between its ops in one microbatch. Undefined tensors use no memory.
struct LayerState {
  at::Tensor input;    ///< (T, D) leaf: the layer's input
  ModuleState module;  ///< unused in other layers
  // Under context parallelism, which splits attention at the gather of keys and values; s = S / C tokens of a sequence.
  at::Tensor q;                ///< (B, H, s, hd); a leaf of the attention graph where it is kept
  at::Tensor kv, kv_gathered;  ///< (2, B, KV, s, hd) own keys and values; (C, ...) those of all ranks, by rank
  at::Tensor k, v;             ///< (B, KV, S, hd) in the order of the sequence; leaves of the attention graph
  at::Tensor residual_input;   ///< (T, D) leaf: the block's input as the attention graph adds it
  torch::autograd::Edge q_end, k_end, v_end;
  at::Tensor q_gradient, kv_gathered_gradient, kv_gradient, residual_input_gradient;
  PackedRows packed;     ///< compressed `input` from forward to recompute, under activation_compression
  at::Tensor residual;   ///< (T, D) attention output plus input; after the FFN also its output; until combine
  at::Tensor ffn_input;  ///< (T, D) normalised activations for the dense FFN or the shared experts; a leaf where the
                         ///< graph is kept
  at::Tensor weights;    ///< (T, k) fp32 router weights
  at::Tensor rows;  ///< (N, D) permuted rows, until the experts or the exchange have used them; N = T*k less dropped
  /// Ends of the graphs, without values: backward starts there, although values that are no longer read are freed.
  torch::autograd::Edge residual_end, weights_end, rows_end, output_end, ffn_input_end, ffn_output_end;
  RouterChoice choice;

  std::vector<std::int64_t> sent_rows, received_rows;  ///< per expert rank
  at::Tensor received_counts;                          ///< (expert ranks, local experts) int64
  at::Tensor to_expert_major, to_rank_major;           ///< row orders of the received rows, int64
  at::Tensor received;                                 ///< (R, D) rows from all ranks, rank-major
  at::Tensor expert_input;                             ///< (R, D) sorted by expert; a leaf where the graph is kept
  at::Tensor outgoing;                                 ///< (R, D) outputs in rank-major order, to be sent back
  at::Tensor collected;                                ///< (N, D) expert outputs of this rank's tokens

  at::Tensor output_gradient;     ///< (T, D)
  at::Tensor ffn_input_gradient;  ///< (T, D)
  at::Tensor collected_gradient, weights_gradient;
  at::Tensor incoming_gradient;      ///< (R, D) rank-major gradient of the expert outputs
  at::Tensor expert_input_gradient;  ///< (R, D), rank-major again, to be sent back
  at::Tensor rows_gradient;          ///< (N, D)
};

class Segments {
 public:
  /// All loss terms are divided by the tokens of the global batch.
  Segments(const ModelSpec& model, const Layout& layout, std::int64_t seq, std::int64_t global_sequences,
           at::ScalarType type, std::int64_t context_rank = 0, at::Device device = at::kCPU,
           bool last_target_missing = false, std::int64_t loss_chunks = 1);

  // Forward and recompute. What `recompute` names is saved only in recompute.
  /// Under context parallelism, before attention: computes queries, and the keys and values to gather.
  void project(LayerState& s, const Slot& dense, std::int64_t layer, Direction direction,
               const LayerRecompute& recompute) const;
  void attention(LayerState& s, const Slot& dense, std::int64_t layer, Direction direction,
                 const LayerRecompute& recompute, const at::Tensor& router_bias, RouterLoss& loss) const;
  /// Dense FFN or shared experts: adds its output to s.residual, which in a dense layer then is the block's output.
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

  /// A layer's balancing loss under context parallelism, from loads summed over the ranks that share the sequences.
  at::Tensor balance_loss(const LayerState& s) const;

  /// Needs the sent and the received counts: computes rows to and from each rank, and row orders. Here the host reads
  /// from the device. Between router and combine it otherwise does so only for copies of experts, for biases of
  /// experts, for fp32 products, and where rows are dropped.
  void plan_rows(LayerState& s) const;

  at::Tensor embed(const Slot& embedding, const at::Tensor& tokens) const;
  void embed_backward(GradientBuffer& embedding, const at::Tensor& tokens, const at::Tensor& gradient) const;
  /// Adds the loss (sum over tokens, not divided) to `loss`, one fp64, and returns the gradient of the input (T, D).
  /// Logits exist for one piece of the tokens at a time. `norms`: the weights that contain the norm, the head's or
  /// those of the module at `depth`, counted from 1.
  at::Tensor head(const Slot& head, const Slot& norms, const at::Tensor& input, const at::Tensor& targets,
                  std::int64_t depth, const at::Tensor& loss) const;
  /// Tokens of the global batch with a target `depth` + 1 places ahead.
  double loss_tokens(std::int64_t depth) const {
    return counted_targets_ > 0 ? counted_targets_ : sequences_ * (with_target_ - static_cast<double>(depth));
  }

  const Positions& positions() const { return positions_; }

  /// For the next microbatch.
  void set_documents(Documents documents) { documents_ = std::move(documents); }
  /// From the next step on: the global batch's tokens in the loss, where not all tokens with a target count.
  void set_loss_tokens(double tokens) { counted_targets_ = tokens; }

 private:
  /// Calls visit(at, first, count) for the pieces of a sequence on this rank: its own `count` tokens from index `at` on
  /// have the sequence's positions from `first` on.
  void for_own_positions(
      const std::function<void(std::int64_t at, std::int64_t first, std::int64_t count)>& visit) const;
  /// Compression of the layer's input. A module's input is never compressed, because the head reads it as well.
  Compression compression(const LayerRecompute& recompute, std::int64_t layer) const;
  /// The block's input (T, D) for attention and project; in a module it is computed from the layer's input and
  /// embedding.
  at::Tensor begin_block(LayerState& s, const Slot& dense, std::int64_t layer, Direction direction,
                         const LayerRecompute& recompute) const;

  const ModelSpec& model_;
  const Layout& layout_;
  std::int64_t seq_;            ///< tokens of a sequence on this rank
  double sequences_, length_;   ///< of the global batch: number of sequences, and tokens of each
  double with_target_;          ///< tokens of a sequence with a target
  double counted_targets_ = 0;  ///< of the global batch; 0: computed from with_target_
  Documents documents_;
  std::int64_t context_rank_;
  std::int64_t loss_chunks_;  ///< MemoryFacts::loss_chunks
  at::ScalarType type_;
  RouterLossScale router_scale_;
  Positions positions_;
  std::vector<SlotMap> slots_;  ///< by layer
};

}  // namespace wt
