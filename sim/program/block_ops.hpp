// Ops of one block and of what stands around the blocks: the segments between collectives, with their work and memory, and
// the exchanges of rows between ranks that hold different experts.
#pragma once
#include "sim/program/op_factory.hpp"

namespace wt {

class BlockOps : public OpFactory {
 public:
  using OpFactory::OpFactory;

  Op attention(Direction direction) const;
  Op experts(Direction direction) const;
  Op combine(Direction direction) const;
  Op all_to_all(const std::string& name, Action action, Direction direction, Amount sent, std::vector<Ref> waits) const;
  /// attention .. combine of one layer, with the exchanges where experts live elsewhere; forward or recompute.
  void add_block(Nodes& out, Direction direction) const;
  Op embed_forward() const;
  Op embed_backward() const;
  Op head() const;
};

}  // namespace wt
