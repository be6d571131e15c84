#include "sim/program/group_ops.hpp"

namespace wt {
namespace {

std::string gradient_source(Group group) {
  switch (group) {
    case Group::embedding: return "embed.bwd";
    case Group::head: return "head";
    case Group::dense: return "attn.bwd";
    default: return "experts.bwd";
  }
}

}  // namespace

std::string unshard_name(Group group, Direction direction) {
  const bool backward = direction != Direction::forward;
  return to_string(group) + ".unshard" + (backward ? ".bwd" : ".fwd");
}

Op GroupOps::unshard(Group group, Direction direction, std::vector<Ref> waits, int layer_delta) const {
  Op o = op(to_string(group) + ".unshard" + suffix(direction), Action::unshard, direction, group);
  o.kind = OpKind::copy;
  if (sharded(group)) {
    collective(o, OpKind::all_gather, shard_axis(group), fixed(padded(group) * sizes_.word));
    if (options_.transport_scratch) {
      o.allocates = {{o.name + ".scratch", o.collective.bytes}};
      o.frees = {{o.name + ".scratch", layer_delta}};
    }
  }
  o.work = {make_item(Kernel::copy, Pass::forward, options_.precision, fixed(as_double(shard_elements(model_, layout_, group))))};
  o.waits = std::move(waits);
  o.layer_delta = layer_delta;
  return o;
}

void GroupOps::add_reduce(Nodes& out, Group group, std::vector<Ref> waits) const {
  if (!sharded(group)) return;
  Op o = op(to_string(group) + ".reduce", Action::reduce_gradients, Direction::backward, group);
  collective(o, OpKind::reduce_scatter, shard_axis(group), fixed(padded(group) * 4));
  o.waits = std::move(waits);
  o.allocates = {{to_string(group) + ".reduced", fixed(4 * as_double(shard_elements(model_, layout_, group)))}};
  if (options_.transport_scratch) o.allocates.push_back({to_string(group) + ".scratch", fixed(padded(group) * 4)});
  out.push_back(o);
}

void GroupOps::add_accumulate(Nodes& out, Group group, int layer_delta, bool last_microbatch) const {
  const std::string name = to_string(group);
  Op o = op(name + ".accumulate", Action::accumulate, Direction::backward, group);
  o.layer_delta = layer_delta;
  o.work = {make_item(Kernel::add, Pass::forward, Precision::fp32, fixed(as_double(shard_elements(model_, layout_, group))), {1})};
  o.waits = {{sharded(group) ? name + ".reduce" : gradient_source(group), layer_delta}};
  if (sharded(group)) o.frees = {{name + ".reduced", layer_delta}, {name + ".scratch", layer_delta}};
  if (group == Group::embedding || group == Group::head) o.frees.push_back({name + ".gradient"});
  out.push_back(o);
  if (!last_microbatch || layout_.replicate == 1) return;
  Op r = op(name + ".replicas", Action::reduce_replicas, Direction::backward, group);
  r.layer_delta = layer_delta;
  collective(r, OpKind::all_reduce, Axis::replicate, fixed(4 * as_double(shard_elements(model_, layout_, group))));
  r.waits = {{name + ".accumulate", layer_delta}};
  out.push_back(r);
}

void GroupOps::add_head_unshard(Nodes& out) const {
  Op o = unshard(Group::head, Direction::forward, {});
  o.allocates.push_back({"head.weights", fixed(padded(Group::head) * sizes_.word)});
  out.push_back(o);
}

std::string GroupOps::last_gradient(Group group) const {
  return to_string(group) + (layout_.replicate > 1 ? ".replicas" : ".accumulate");
}

}  // namespace wt
