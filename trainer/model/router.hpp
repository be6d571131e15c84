// The router: the experts and weights of each token, and the balancing losses.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "configs/files/model.hpp"

namespace wt {

/// The router's choice for one microbatch: made once, reused by recompute.
struct RouterChoice {
  at::Tensor forced;           ///< (T, k) int64: if defined, used instead of the best k (rehearsals)
  at::Tensor index;            ///< (T, k) int64, logical experts
  at::Tensor kept;             ///< (T, k) bool: rows within their expert's capacity; undefined = all
  at::Tensor order;            ///< (N) int64: sorted kept row -> token*k + choice, sorted by expert slot
  at::Tensor inverse;          ///< (T*k) int64; WT_DROPPED = no row
  at::Tensor expert_counts;    ///< (E) int64 rows that chose each logical expert, dropped ones among them
  at::Tensor slot_counts;      ///< (slots) int64 kept rows per slot
  at::Tensor sequence_counts;  ///< (sequences, E) fp32 rows per expert; summed over the context group before backward
  at::Tensor score_sums;       ///< (sequences, E) fp64 sums for the balancing loss, under context parallelism
};

/// Weights of the balancing losses, including the divisors of their means.
struct RouterLossScale {
  /// aux_loss_weight * E / (MoE layers * top_k * sequences of the global batch * seq^2). With of_microbatch:
  /// aux_loss_weight * E / (MoE layers * top_k * tokens of the global batch), still to be divided by the microbatch's
  /// tokens.
  double aux = 0;
  double z = 0;                 ///< z_loss_weight / (MoE layers * tokens of the global batch)
  std::int64_t seq = 0;         ///< tokens of a sequence on this rank
  bool of_microbatch = false;   ///< the balancing loss covers all tokens together (RouterSpec::aux_of_microbatch)
  bool whole_sequences = true;  ///< false: other ranks have parts of the sequences, and the loss waits for their counts
};

/// This rank's contributions to the loss: fp64 scalars on the logits' device, so that the host does not wait; undefined
/// = none.
struct RouterLoss {
  at::Tensor aux, z;
};
/// total += part, where total may still be undefined.
void add_loss(at::Tensor& total, const at::Tensor& part);

/// logits (T, E) fp32 -> weights (T, k) fp32. Fills `choice` unless it is filled already (recompute), and adds to
/// `loss`. Backward adds the gradients of both balancing losses. The load-balancing loss is per sequence: scale.aux *
/// sum over sequences and experts of (rows that chose e) * (sum of scores of e), with sigmoid of scores divided by
/// their sum over experts (DeepSeek-V3 report, eq. 17-20). bias: (E,) fp32, added to the scores only for the choice, or
/// undefined.
at::Tensor route(const at::Tensor& logits, std::int64_t top_k, const RouterSpec& spec, const RouterLossScale& scale,
                 const at::Tensor& bias, RouterChoice& choice, RouterLoss& loss);

/// The slots of a layer's experts.
struct SlotMap {
  std::vector<std::int64_t> experts;      ///< logical expert of each slot; empty = identity
  std::vector<std::int64_t> lowest_slot;  ///< of each expert; empty = identity
  at::Tensor slot_of_expert;              ///< (E) int64: lowest_slot on the device; undefined for the identity
  static SlotMap make(std::vector<std::int64_t> experts_of_slots, std::int64_t experts, at::Device device);
};
/// Sorts the kept rows by expert slot. Rows of an expert with several slots are distributed by rows_per_slot, in
/// order, on the host. The host also reads the number of rows if some may be dropped.
void sort_by_slot(RouterChoice& choice, const SlotMap& slots);

/// Loss-free balancing (DeepSeek-V3 report, section 2.1.2; the update as in torchtitan): per layer,
/// delta = rate * sign(mean rows - rows), minus its own mean over experts; bias += delta. bias, rows: (layers, E) fp32.
void update_router_bias(at::Tensor& bias, const at::Tensor& rows, double rate);

}  // namespace wt
