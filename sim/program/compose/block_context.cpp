// Context parallelism of a block: keys and values of whole sequences, gathered before attention or passed around a ring
// during it.
#include "sim/program/compose/block_ops.hpp"

namespace wt {

Op BlockOps::gather_kv(Direction direction) const {
  Op o = op("kv.gather" + suffix(direction), Action::gather_kv, direction);
  collective(o, OpKind::all_gather, Axis::context, fixed(sizes_.kv_gathered));
  o.waits = {{"project" + suffix(direction)}};
  o.allocates = {{"kv.gathered", fixed(sizes_.kv_held)}};
  o.frees = {{"kv"}};
  if (options_.transport_scratch)
    o.allocates.push_back({"kv.scratch", fixed(sizes_.kv_gathered)}), o.frees.push_back({"kv.scratch"});
  return o;
}

Op BlockOps::reduce_kv() const {
  Op o = op("kv.reduce.bwd", Action::gather_kv, Direction::backward);
  collective(o, OpKind::reduce_scatter, Axis::context, fixed(sizes_.kv_gathered));
  o.waits = {{"attn.bwd"}};
  o.allocates = {{"kv.gradient", fixed(sizes_.kv)}};
  o.frees = {{"gathered.kv.gradient"}};
  if (options_.transport_scratch)
    o.allocates.push_back({"kv.scratch", fixed(sizes_.kv_gathered)}), o.frees.push_back({"kv.scratch"});
  return o;
}

/// The ring's messages equal a gather's: each rank's keys and values pass all hops but one. In backward they pass once
/// more, together with their gradients.
void BlockOps::add_ring_backward(Nodes& out, const std::vector<Ref>& waits) const {
  Op gather = gather_kv(Direction::backward), reduce = reduce_kv();
  gather.waits = reduce.waits = waits;
  gather.frees = {{"kv.gathered"}};
  out.push_back(gather);
  out.push_back(reduce);
}

Op BlockOps::ring_end(Direction direction) const {
  Op o = op("kv.ring" + suffix(direction), Action::gather_kv, direction);
  o.kind = OpKind::host;
  o.waits = {{"kv.gather" + suffix(direction)}};
  if (direction == Direction::backward) o.waits.push_back({"kv.reduce.bwd"});
  return o;
}

}  // namespace wt
