// Sharded parameters. A parameter group is one flat sequence of named tensors. Every rank of its shard axis owns an
// equal slice of it, and keeps the slice's state in fp32 (master, AdamW moments): all of it, or a part where replicas
// share the optimizer's work. To compute, the slices are gathered into a slot: a flat buffer in the compute type with
// leaf views. The leaves' .grad are views of one flat fp32 gradient buffer, so that autograd accumulates in place.
// Layers share two slots per group (without resharding after forward, each has its own). Layer l always uses slot l %
// 2, so that tensors saved by autograd find the same weights after the backward gather. Every layer has its own leaves
// over the slot's memory, because layers may have different parameters.
#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program/compose/compose.hpp"

namespace wt {

/// Initial values instead of a standard deviation: ones or zeros for norm gains and biases; for a matrix (out, in)
/// uniform between -1 / sqrt(in) and 1 / sqrt(in), like PyTorch's linear module.
inline constexpr double kOnes = 0, kZeros = -1, kUniform = -2;

/// A logical tensor inside a group's flat sequence. Experts have one entry each, contiguous in the stacked leaf.
struct ParameterInfo {
  std::string name;  ///< fully qualified: "layers.3.experts.7.gate_up"
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;    ///< elements from the start of the flat sequence
  double init_std = 0;        ///< normal(0, std); or kOnes, kZeros, kUniform
  bool further_copy = false;  ///< a copy of an expert in a lower slot, which represents it in norms and checkpoints
  std::int64_t elements() const;
};

/// A leaf tensor of a slot: one parameter, or the stacked experts of a rank.
struct LeafInfo {
  std::string name;  ///< inside the block: "attention.qkv.weight"; of stacked experts "experts.gate_up.weight"
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;
};

/// The content of a group on one rank. `layer` is -1 for embedding and head.
struct GroupLayout {
  Group group = Group::none;
  std::vector<ParameterInfo> parameters;
  std::vector<LeafInfo> leaves;
  std::int64_t elements = 0;        ///< of the flat sequence
  std::int64_t shard_elements = 0;  ///< padded share of one rank
  std::int64_t shard_ranks = 1;
  std::int64_t shard_index = 0;
  std::int64_t state_elements = 0;  ///< part of the share whose optimizer state this rank keeps
  std::int64_t state_index = 0;     ///< index of that part
  bool copied = false;              ///< every rank keeps an identical copy of all of it; rank 0 saves it
  std::int64_t padded() const { return shard_elements * shard_ranks; }
  /// First element of the flat sequence whose state this rank keeps; state_elements follow, padding included.
  std::int64_t state_begin() const { return shard_index * shard_elements + state_index * state_elements; }
  /// Calls visit(parameter, its first element, count, position in this rank's state) for every part of a parameter
  /// whose state this rank keeps.
  template <typename Visit>
  void for_state_parts(Visit&& visit) const {
    const std::int64_t begin = state_begin(), end = begin + state_elements;
    for (const ParameterInfo& p : parameters) {
      const std::int64_t first = std::max(begin, p.offset), last = std::min(end, p.offset + p.elements());
      if (first < last) visit(p, first - p.offset, last - first, first - begin);
    }
  }
};

/// Order of the parameters. dense: for a module of multi-token prediction first enorm, hnorm, eh_proj (d_model, 2
/// d_model; the embedding's columns first) and shared_head.norm; then attention_norm, attention.*, ffn_norm, router,
/// then ffn.* (dense layers) or shared_experts.*. expert: gate_up (E_local, 2 ffn, d_model), down (E_local, d_model,
/// ffn). embedding: learned positions (positions, d_model), then (vocab, d_model); nothing where it is tied. head:
/// learned positions where it is tied, norm, output (vocab, d_model). Biases follow their weights. The bias of the
/// router's product is router.logit_bias; router.bias is that of loss-free balancing. An FFN or expert without a gate
/// has `up` instead of `gate_up`. attention.sinks is (heads).
GroupLayout group_layout(const ModelSpec& model, const Layout& layout, Group group, std::int64_t layer,
                         std::int64_t rank);

/// The slices of one group on this rank.
struct ShardedGroup {
  GroupLayout layout;
  at::Tensor master, exp_avg, exp_avg_sq;  ///< (state_elements,) fp32; exp_avg_sq is undefined with one moment, both
                                           ///< moments are undefined in a frozen group
  at::Tensor gradient;                     ///< (shard_elements,) fp32; undefined in a frozen group
  at::Tensor
      weights;  ///< (shard_elements,) compute type, gathered from masters; undefined where this rank has all masters
  /// Whether nothing in it is trained.
  bool frozen() const { return !gradient.defined(); }
  /// The part of the gradient that matches the state; undefined in a frozen group.
  at::Tensor state_gradient() const;
  /// Master and moments that are defined.
  std::vector<at::Tensor> states() const;
};

/// The moments that the optimizer keeps for a group.
enum class Moments { none, one, two };

/// Fills the master slice so that every parameter has the same values in every layout: value i is a function of (seed,
/// name, i). Without moments the group is frozen.
ShardedGroup make_group(GroupLayout layout, std::uint64_t seed, at::Device device = at::kCPU,
                        Moments moments = Moments::two);

/// Full-size gradients of a group, zero at first.
struct GradientBuffer {
  at::Tensor flat;                 ///< (padded,) fp32
  std::vector<at::Tensor> leaves;  ///< views in the shapes of the group's leaves
  /// Uses the first elements of `storage` (fp32), or if that is undefined, its own memory.
  static GradientBuffer make(const GroupLayout& layout, at::Device device = at::kCPU, const at::Tensor& storage = {});
};

/// Low-rank factors for a product: scale * B A is added to its weight's rows from `first` on.
struct FactorPair {
  std::string product;  ///< as Slot's names, without ".weight": "attention.qkv"
  at::Tensor a, b;      ///< (r, in), (out, r)
  std::int64_t first = 0;
  double scale = 1;
};

/// Gathered weights in the compute type.
struct Slot {
  at::Tensor flat;  ///< (padded,) compute type
  std::vector<at::Tensor> leaves;
  std::vector<std::string> names;    ///< of the leaves
  std::vector<FactorPair> adapters;  ///< leaves of another slot
  /// The leaf of that name; throws Error{runtime} when there is none.
  const at::Tensor& operator[](std::string_view name) const;
  /// The same, undefined when there is none.
  at::Tensor find(std::string_view name) const;
  /// Uses the first elements of `storage`, or if that is undefined, its own memory with those options. Unless
  /// `learned`, autograd computes no gradients of the leaves.
  static Slot make(const GroupLayout& layout, at::TensorOptions options, const at::Tensor& storage = {},
                   bool learned = true);
  /// Makes autograd add the leaves' gradients to this buffer.
  void accumulate_into(const GradientBuffer& gradient);
};

}  // namespace wt
