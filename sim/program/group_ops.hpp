// Ops of a parameter group: gather its weights, sum its gradients over the ranks that share it, keep the sum.
#pragma once
#include "sim/program/op_factory.hpp"

namespace wt {

/// "dense.unshard.fwd": recompute and backward use the weights that one gather brought.
std::string unshard_name(Group group, Direction direction);

class GroupOps : public OpFactory {
 public:
  using OpFactory::OpFactory;

  /// Gather of a group's weights: an all-gather over its shard axis, or a local cast where that axis has one rank. Both
  /// begin with the cast of the own shard into the buffer.
  Op unshard(Group group, Direction direction, std::vector<Ref> waits, int layer_delta = 0) const;
  void add_head_unshard(Nodes& out) const;
  void add_reduce(Nodes& out, Group group, std::vector<Ref> waits) const;
  /// Reduced gradients of `layer_delta` layers away into their shard; then, once a step, the sum over replicas.
  void add_accumulate(Nodes& out, Group group, int layer_delta, bool last_microbatch) const;
  /// The op after which a group's gradient shard of this step is whole.
  std::string last_gradient(Group group) const;
};

}  // namespace wt
