// Ops of a parameter group: gather its weights, sum its gradients over the ranks that share it, keep the sum.
#pragma once
#include "sim/program/compose/op_factory.hpp"

namespace wt {

/// Of the layers, whose weights and gradients are in turn in the same buffers.
bool layered(Group group);
/// "dense.unshard.fwd": recompute and backward use the weights that one gather brought.
std::string unshard_name(Group group, Direction direction);

class GroupOps : public OpFactory {
 public:
  using OpFactory::OpFactory;

  /// Gather of a group's weights: an all-gather over its shard axis, or a local cast where that axis has one rank. Both
  /// begin with the cast of the own shard into the buffer. `refreshed`: after the group's refresh in this microbatch.
  Op unshard(Group group, Direction direction, std::vector<Ref> waits, int layer_delta = 0,
             bool refreshed = false) const;
  void add_head_unshard(Nodes& out, bool refreshed) const;
  /// Weight shards of the layer `layer_delta` away from the replicas that updated them (optimizer_shard > 1); and those
  /// that a step needs first: embedding, layers 0 and 1, head.
  void add_refresh(Nodes& out, Group group, int layer_delta) const;
  void add_first_refresh(Nodes& out) const;
  /// Where experts have copies: their gradients to and from the ranks that hold them too; then the sum.
  void add_copy_exchange(Nodes& out, const std::string& after = "experts.bwd") const;
  void add_copy_sum(Nodes& out, const std::string& after = "experts.bwd") const;
  void add_reduce(Nodes& out, Group group, std::vector<Ref> waits) const;
  /// A microbatch's gradients of the group, in the compute type, added to the step's.
  WorkItem sum_of_gradients(Group group) const {
    return move(padded(group), sizes_.word + 2 * options_.memory.gradient_bytes);
  }
  /// Reduced gradients of `layer_delta` layers away into their shard; then, once a step, the sum over replicas.
  void add_accumulate(Nodes& out, Group group, int layer_delta, bool last_microbatch) const;
  /// The op after which a group's gradient shard of this step is whole.
  std::string last_gradient(Group group) const;

 private:
  void add_replicas(Nodes& out, Group group, int layer_delta) const;
  /// A full-size copy that the transport holds while the collective is under way.
  void add_scratch(Op& o) const;
};

}  // namespace wt
