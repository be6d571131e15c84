// How a framework uses memory: what it keeps between forward and backward, the bytes of a parameter's state, temporary
// tensors, and copies between buffers. The step program is built from it (sim/program/compose), so that memory
// predictions describe the program's own stack.
#pragma once
#include <cstdint>

namespace wt {

/// How a weight's gradient is added to the sum of the step's gradients.
enum class WeightGradients {
  added,     ///< a tensor of the compute type, added to the sum afterwards
  in_place,  ///< the product itself accumulates (Megatron: gradient_accumulation_fusion)
  dummy,     ///< in place, and one dummy tensor of the compute type per weight shape stays for autograd
};

/// Copies on the compute stream between a collective's buffer and separate tensors.
enum class CollectiveCopies {
  none,       ///< layers compute in the collective's buffers
  gradients,  ///< into the reduction buffer, in the compute type (FSDP1: the gradient of torch.split)
  both,       ///< also gathered weights out of their buffer; gradients are widened during the copy (FSDP2)
};

/// Bytes of a logit with a fused loss: bf16, with the gradient in its place (Transformer Engine's, Megatron-Core's).
constexpr double kFusedLogit_bytes = 2;
/// MemoryFacts::loss_chunks of Liger's fused output projection and loss, whose pieces follow from the model.
constexpr std::int64_t kLigerChunks = 0;
/// Tokens of a microbatch that have logits at a time with that many `chunks`; the last piece may have fewer. Liger's
/// pieces: the vocabulary over the width of them, rounded up to a power of two of tokens (linkedin/Liger-Kernel,
/// fused_linear_cross_entropy.py).
std::int64_t loss_piece_tokens(std::int64_t chunks, std::int64_t tokens, std::int64_t vocab, std::int64_t width);

/// The defaults describe this project's trainer.
struct MemoryFacts {
  double gradient_bytes = 4;    ///< of a parameter, where gradients stay whole until the end of a step
  double optimizer_bytes = 12;  ///< of a parameter: fp32 master copy and two moments
  double logit_bytes = 2;  ///< of a logit when the loss starts backward, with copies and gradients; at least 4 in fp32
  /// Pieces of a microbatch's tokens; only one piece at a time has logits. 1 = all at once; kLigerChunks = by Liger's
  /// rule. The output projection and its whole gradient are held meanwhile.
  std::int64_t loss_chunks = 1;
  WeightGradients weight_gradients = WeightGradients::added;
  bool dropout = false;           ///< keeps dropout masks, and materialised attention scores twice
  bool fused_gate = true;         ///< keeps only the gated activation's input; otherwise the activated gate, too
  bool attention_by_head = true;  ///< keeps attention's output by head and by token; otherwise once
  bool attention_masks = true;    ///< additive masks in memory, where attention needs masks
  bool context_by_heads = false;  ///< context parallelism exchanges heads and keeps the attention's output twice
  bool whole_states = false;      ///< every rank has the optimizer's whole state (Megatron without its distributed
                                  ///< optimizer); experts' over ranks with the same experts
  double kept_inputs = 0;         ///< further tensors of the size of a layer's input that the layer keeps for backward
  /// Transformer Engine's workspace of a cuBLAS product. Grouped products have four more. 0 = none.
  double product_workspace_bytes = 0;
  bool grouped_products = true;  ///< of experts; otherwise one product for each expert
  /// The head gives a loss's logits back before the norm's backward, and before the next loss's of multi-token
  /// prediction.
  bool losses_in_turn = true;
  bool late_reuse = false;  ///< sequence parallelism gathers on its own stream, so that buffers are freed late
  /// late_reuse grows up to this number of microbatches: in nanotron's published memory, runs with fewer reserve less,
  /// runs with more no more.
  static constexpr int kMicrobatchesAhead = 8;
  /// Where weights are not gathered for each pass, they stay in one buffer from step to step, and gradients in another,
  /// for every layout: Layout::resident_weights.
  bool resident_weights = false;
  /// A layer's weights are gathered during the layer before it, and its gradients reduced during the next. Otherwise
  /// both run between the layers, and nothing computes meanwhile (XLA without its latency-hiding scheduler).
  bool gathers_overlap = true;
  /// Only their time is counted, not the buffers.
  CollectiveCopies collective_copies = CollectiveCopies::none;
  // Whose memory it reports: the first pipeline stage's, the last one's; otherwise the largest.
  bool first_rank_only = false, last_rank_only = false;
  friend bool operator==(const MemoryFacts&, const MemoryFacts&) = default;
};

/// For a stack whose memory use nobody described.
inline MemoryFacts pytorch_fsdp() {
  MemoryFacts facts;
  facts.logit_bytes = 12;  // bf16, an fp32 copy, its softmax (reused as the gradient), and the gradient in bf16
  facts.fused_gate = facts.attention_by_head = facts.attention_masks = facts.losses_in_turn = false;
  return facts;
}

}  // namespace wt
