// Ops of a parameter group: gathering its weights, reducing its gradients, and accumulating the result.
#pragma once
#include "sim/program/compose/op_factory.hpp"

namespace wt {

/// Whether the group belongs to layers, whose weights and gradients take turns in the same buffers.
bool layered(Group group);
/// "dense.unshard.fwd". Recompute and backward share one gather.
std::string unshard_name(Group group, Direction direction);

class GroupOps : public OpFactory {
 public:
  using OpFactory::OpFactory;

  /// Gathers a group's weights: an all-gather over its shard axis, or a local cast if that axis has one rank. Both
  /// begin by casting the rank's own shard into the buffer. `refreshed`: waits for the group's refresh in this
  /// microbatch.
  Op unshard(Group group, Direction direction, std::vector<Ref> waits, int layer_delta = 0,
             bool refreshed = false) const;
  void add_head_unshard(Nodes& out, bool refreshed) const;
  /// Fetches weight shards, of the layer `layer_delta` away, from the replicas that updated them (optimizer_shard > 1).
  /// add_first_refresh: for the weights that a step needs first: embedding, layers 0 and 1, and head.
  void add_refresh(Nodes& out, Group group, int layer_delta) const;
  void add_first_refresh(Nodes& out) const;
  /// Copies of experts: exchanges their gradients between the ranks that have copies, then sums them.
  void add_copy_exchange(Nodes& out, const std::string& after = "experts.bwd") const;
  void add_copy_sum(Nodes& out, const std::string& after = "experts.bwd") const;
  void add_reduce(Nodes& out, Group group, std::vector<Ref> waits) const;
  /// Adds a microbatch's gradients of the group, in the compute type, to the step's sum.
  WorkItem sum_of_gradients(Group group) const {
    return move(padded(group), sizes_.word + 2 * options_.memory.gradient_bytes);
  }
  /// Adds reduced gradients, of the layer `layer_delta` away, to their shard; after the last microbatch, sums replicas.
  void add_accumulate(Nodes& out, Group group, int layer_delta, bool last_microbatch) const;
  /// The op after which a group's gradient shard of this step is complete.
  std::string last_gradient(Group group) const;

 private:
  void add_replicas(Nodes& out, Group group, int layer_delta) const;
  /// Adds the full-size copy that the transport holds during the collective.
  void add_scratch(Op& o) const;
};

}  // namespace wt
