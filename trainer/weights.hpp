// Sharded parameters. A parameter group is one flat sequence of named tensors; every rank of its shard axis owns an equal
// slice of it in fp32 (master, AdamW moments, gradient). To compute, the slices are gathered into a slot: a flat buffer in
// the compute type with leaf views over it, whose .grad are views over one flat fp32 gradient buffer, so that autograd
// accumulates in place. Layers share two slots per group; layer l always uses slot l % 2, so that tensors saved by
// autograd find the same weights again after the backward gather.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "sim/program/build.hpp"

namespace wt {

/// A logical tensor inside a group's flat sequence. Experts have one entry each, contiguous in the stacked leaf.
struct ParameterInfo {
  std::string name;  ///< fully qualified: "layers.3.experts.7.gate_up"
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;  ///< elements from the start of the flat sequence
  double init_std = 0;      ///< normal(0, std); 0 = ones (norm gains)
  std::int64_t elements() const;
};

/// A leaf tensor of a slot: one parameter, or the stacked experts of a rank.
struct LeafInfo {
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;
};

/// What a group consists of on one rank. `layer` -1 for embedding and head.
struct GroupLayout {
  Group group = Group::none;
  std::vector<ParameterInfo> parameters;
  std::vector<LeafInfo> leaves;
  std::int64_t elements = 0;        ///< of the flat sequence
  std::int64_t shard_elements = 0;  ///< padded share of one rank
  std::int64_t shard_ranks = 1;
  std::int64_t shard_index = 0;
  std::int64_t padded() const { return shard_elements * shard_ranks; }
};

/// Leaves, in order: dense = attention norm, qkv, output, ffn norm, router; expert = gate_up (E_local, 2 ffn, d_model),
/// down (E_local, d_model, ffn); embedding = (vocab, d_model); head = norm, output (vocab, d_model).
GroupLayout group_layout(const ModelSpec& model, const Layout& layout, Group group, std::int64_t layer, std::int64_t rank);

/// The fp32 slices of one group on this rank.
struct ShardedGroup {
  GroupLayout layout;
  at::Tensor master, exp_avg, exp_avg_sq, gradient;  ///< (shard_elements,) fp32
};

/// Fills the master slice so that every parameter has the same values in every layout: each is drawn whole from a
/// generator seeded by (seed, name).
ShardedGroup make_group(GroupLayout layout, std::uint64_t seed);

/// Gathered weights in the compute type and their full-size fp32 gradients.
struct Slot {
  at::Tensor flat;      ///< (padded,) compute type
  at::Tensor gradient;  ///< (padded,) fp32
  std::vector<at::Tensor> leaves;
  /// With `with_gradient` the gradient buffer is there and zero.
  static Slot make(const GroupLayout& layout, at::ScalarType type, bool with_gradient);
  void add_gradient(const GroupLayout& layout);
  /// The gradient buffer alone, for a group whose weights backward does not read (embedding).
  static Slot gradient_only(const GroupLayout& layout);
};

}  // namespace wt
