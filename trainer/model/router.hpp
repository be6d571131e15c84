// The router: which experts a token takes and with which weights, and the losses that balance them.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "configs/files/model.hpp"

namespace wt {

/// What the router decided for one microbatch: fixed once, reused by recompute.
struct RouterChoice {
  at::Tensor forced;           ///< (T, k) int64: taken instead of the best k where defined (rehearsals)
  at::Tensor index;            ///< (T, k) int64, logical experts
  at::Tensor order;            ///< (T*k) int64: sorted row -> token*k + choice, sorted by expert slot
  at::Tensor inverse;          ///< (T*k) int64
  at::Tensor expert_counts;    ///< (E) int64 rows per logical expert
  at::Tensor slot_counts;      ///< (slots) int64 rows per slot
  at::Tensor sequence_counts;  ///< (sequences, E) fp32 rows per expert; summed over the context group before backward
  at::Tensor score_sums;  ///< (sequences, E) fp64 sums of what the load-balancing loss sums, under context parallelism
};

/// Weights of the balancing losses, already divided by what they are averaged over.
struct RouterLossScale {
  /// aux_loss_weight * E / (MoE layers * top_k * sequences of the global batch * seq^2); with of_microbatch / (MoE
  /// layers
  /// * top_k * tokens of the global batch), which the microbatch's tokens still divide.
  double aux = 0;
  double z = 0;                 ///< z_loss_weight / (MoE layers * tokens of the global batch)
  std::int64_t seq = 0;         ///< tokens of a sequence on this rank
  bool of_microbatch = false;   ///< the load-balancing loss is of all tokens together (RouterSpec::aux_of_microbatch)
  bool whole_sequences = true;  ///< false: other ranks have the rest, and the loss waits for their counts
};

/// This rank's contributions to the loss: fp64 scalars where the logits are, so that nobody waits for them; undefined =
/// none.
struct RouterLoss {
  at::Tensor aux, z;
};
/// total += part, where total may be undefined yet.
void add_loss(at::Tensor& total, const at::Tensor& part);

/// logits (T, E) fp32 -> weights (T, k) fp32. Fills `choice` unless it is filled already (recompute), adds to
/// `loss`. The gradient of both balancing losses is added in backward. The load-balancing loss is per sequence:
/// scale.aux * sum over sequences, experts of (rows that chose e) * (sum of scores of e), with sigmoid of scores
/// divided by their sum over experts (DeepSeek-V3 report, eq. 17-20). bias: (E,) fp32, added to the scores for choosing
/// alone, or undefined.
at::Tensor route(const at::Tensor& logits, std::int64_t top_k, const RouterSpec& spec, const RouterLossScale& scale,
                 const at::Tensor& bias, RouterChoice& choice, RouterLoss& loss);

/// Where a layer's experts are.
struct SlotMap {
  std::vector<std::int64_t> experts;      ///< logical expert of each slot; empty = identity
  std::vector<std::int64_t> lowest_slot;  ///< of each expert; empty = identity
  at::Tensor slot_of_expert;              ///< (E) int64: the same on the device; undefined with the identity
  static SlotMap make(std::vector<std::int64_t> experts_of_slots, std::int64_t experts, at::Device device);
};
/// Sorts the chosen rows by expert slot. The rows of an expert with several slots go to them as rows_per_slot says, in
/// order; that is dealt on the host.
void sort_by_slot(RouterChoice& choice, const SlotMap& slots);

/// Loss-free balancing (DeepSeek-V3 report, section 2.1.2; the update as in torchtitan): per layer,
/// delta = rate * sign(mean rows - rows), minus its own mean over experts; bias += delta. bias, rows: (layers, E) fp32.
void update_router_bias(at::Tensor& bias, const at::Tensor& rows, double rate);

}  // namespace wt
