// How a framework uses memory: what it keeps between forward and backward, what a parameter costs it, which tensors it
// makes for a moment, and what it copies from buffer to buffer. The step program takes it (sim/program/compose), so
// that whoever asks the memory of a program asks that of its stack.
#pragma once

namespace wt {

/// How a weight's gradient gets into the sum of the step's gradients.
enum class WeightGradients {
  added,     ///< as a tensor of the compute type that is added to the sum
  in_place,  ///< the product itself adds to the sum (Megatron: gradient_accumulation_fusion)
  dummy,     ///< in place, and one tensor of the compute type for each shape of a weight is held for autograd
};

/// What the stream that computes copies between a collective's buffer and tensors that have one of their own.
enum class CollectiveCopies {
  none,       ///< layers compute in the collective's buffers
  gradients,  ///< into the buffer that is reduced, in the compute type (FSDP1: the gradient of torch.split)
  both,       ///< gathered weights out of their buffer, too; gradients are widened on the way (FSDP2)
};

/// The defaults are this project's trainer.
struct MemoryFacts {
  double gradient_bytes = 4;    ///< a parameter, where gradients stay whole until the end of a step
  double optimizer_bytes = 12;  ///< a parameter: fp32 master copy and two moments
  double logit_bytes = 2;  ///< a logit, where the loss starts backward, with copies and gradients; 4 in fp32 at least
  WeightGradients weight_gradients = WeightGradients::added;
  bool dropout = false;           ///< keeps masks, and with materialised scores these twice
  bool fused_gate = true;         ///< keeps the gated activation's input alone, else the activated gate, too
  bool attention_by_head = true;  ///< keeps attention's output by head and by token, else once
  bool attention_masks = true;    ///< additive masks in memory, where attention needs some
  bool context_by_heads = false;  ///< context parallelism exchanges heads and keeps the attention's output twice
  bool losses_in_turn = true;     ///< of multi-token prediction: one's backward before the next's logits, else all kept
  bool late_reuse = false;        ///< sequence parallelism gathers on a stream of its own: buffers come back late
  /// After so many microbatches: nanotron's runs with fewer reserve less, those with more no more, read off its
  /// published memory.
  static constexpr int kMicrobatchesAhead = 8;
  /// Where weights are not gathered anew for each pass, they stay in one buffer from step to step and gradients in
  /// another, whatever else the layout says: Layout::resident_weights.
  bool resident_weights = false;
  /// Counted in time alone: the buffers are not.
  CollectiveCopies collective_copies = CollectiveCopies::none;
  bool first_rank_only = false;  ///< what it prints is the first pipeline stage's, else the largest
  friend bool operator==(const MemoryFacts&, const MemoryFacts&) = default;
};

/// What a stack has that says nothing of its memory.
inline MemoryFacts pytorch_fsdp() {
  MemoryFacts facts;
  facts.logit_bytes = 12;  // bf16, an fp32 copy, its softmax that becomes the gradient, and that in bf16
  facts.fused_gate = facts.attention_by_head = facts.attention_masks = facts.losses_in_turn = false;
  return facts;
}

}  // namespace wt
