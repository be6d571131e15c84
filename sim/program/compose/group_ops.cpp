#include "sim/program/compose/group_ops.hpp"

#include <algorithm>

namespace wt {
namespace {

std::string gradient_source(Group group, bool tied, const std::string& layer_end) {
  switch (group) {
    case Group::embedding:
      return "embed.bwd";
    case Group::head:
      return tied ? "embed.bwd" : "head";
    case Group::dense:
      return layer_end;
    default:
      return "experts.bwd";
  }
}

}  // namespace

bool layered(Group group) { return group == Group::dense || group == Group::expert; }

std::string unshard_name(Group group, Direction direction) {
  const bool backward = direction != Direction::forward;
  return to_string(group) + ".unshard" + (backward ? ".bwd" : ".fwd");
}

void GroupOps::add_scratch(Op& o) const {
  if (!options_.transport_scratch) return;
  o.allocates.push_back({o.name + ".scratch", o.collective.bytes});
  o.frees.push_back({o.name + ".scratch", o.layer_delta});
}

Op GroupOps::unshard(Group group, Direction direction, std::vector<Ref> waits, int layer_delta, bool refreshed) const {
  Op o = op(to_string(group) + ".unshard" + suffix(direction), Action::unshard, direction, group);
  o.kind = OpKind::copy;
  o.layer_delta = layer_delta;
  if (sharded(group)) {
    collective(o, OpKind::all_gather, shard_axis(group), fixed(padded(group) * sizes_.word));
    add_scratch(o);
  }
  o.work = {make_item(Kernel::copy, Pass::forward, options_.precision, fixed(as_double(shard(group))))};
  o.waits = std::move(waits);
  if (refreshed) o.waits.push_back({to_string(group) + ".refresh", layer_delta});
  return o;
}

void GroupOps::add_copy_exchange(Nodes& out, const std::string& after) const {
  if (frozen() || !copies() || !remote()) return;
  const CopyExchange exchange = copy_exchange(model_, layout_, layer_, expert_rank_);
  const double each = 4 * as_double(model_.expert_parameters()), total = each * as_double(exchange.total());
  Op o = op("copies.exchange", Action::exchange_copies, Direction::backward, Group::expert);
  collective(o, OpKind::all_to_all, Axis::expert, fixed(total));
  for (const std::int64_t rows : exchange.rows()) o.collective.sent.push_back(each * as_double(rows));
  o.waits = {{after}};
  o.allocates = {{"expert.copies", fixed(2 * total)}};
  out.push_back(o);
}

void GroupOps::add_copy_sum(Nodes& out, const std::string& after) const {
  if (frozen() || !copies() || !moe()) return;
  const double held = as_double(layout_.slots_per_rank(model_) * model_.expert_parameters());
  Op o = op("copies.sum", Action::add_copies, Direction::backward, Group::expert);
  o.work = {make_item(Kernel::add, Pass::forward, Precision::fp32, fixed(held), {1})};
  o.waits = {{layout_.expert == 1 ? after : "copies.exchange"}};
  o.frees = {{"expert.copies"}};
  o.transient = {fixed(8 * as_double(model_.expert_parameters()))};
  out.push_back(o);
}

void GroupOps::add_reduce(Nodes& out, Group group, std::vector<Ref> waits) const {
  if (frozen() || !sharded(group) || !present(group)) return;
  Op o = op(to_string(group) + ".reduce", Action::reduce_gradients, Direction::backward, group);
  collective(o, OpKind::reduce_scatter, shard_axis(group), fixed(padded(group) * 4));
  o.waits = std::move(waits);
  o.allocates = {{to_string(group) + ".reduced", fixed(4 * as_double(shard(group)))}};
  if (options_.transport_scratch) o.allocates.push_back({to_string(group) + ".scratch", fixed(padded(group) * 4)});
  out.push_back(o);
}

void GroupOps::add_accumulate(Nodes& out, Group group, int layer_delta, bool last_microbatch) const {
  if (frozen() || !present(group)) return;
  const std::string name = to_string(group);
  Op o = op(name + ".accumulate", Action::accumulate, Direction::backward, group);
  o.layer_delta = layer_delta;
  o.work = {make_item(Kernel::add, Pass::forward, Precision::fp32, fixed(as_double(shard(group))), {1})};
  const std::string source =
      group == Group::expert && copies() ? "copies.sum" : gradient_source(group, model_.tied, layer_end());
  o.waits = {{sharded(group) ? name + ".reduce" : source, layer_delta}};
  if (sharded(group)) o.frees = {{name + ".reduced", layer_delta}, {name + ".scratch", layer_delta}};
  if (!layered(group) && layout_.reduce_every_microbatch) o.frees.push_back({name + ".gradient"});
  out.push_back(o);
  if (last_microbatch && layout_.replicate > 1) add_replicas(out, group, layer_delta);
}

void GroupOps::add_replicas(Nodes& out, Group group, int layer_delta) const {
  const std::string name = to_string(group) + ".replicas";
  const auto add = [&](const std::string& called, OpKind kind, Axis axis, std::int64_t elements,
                       const std::string& after) {
    Op o = op(called, Action::reduce_replicas, Direction::backward, group);
    o.layer_delta = layer_delta;
    collective(o, kind, axis, fixed(4 * as_double(elements)));
    o.waits = {{after, layer_delta}};
    if (kind == OpKind::reduce_scatter) add_scratch(o);
    out.push_back(o);
  };
  const std::int64_t shard = this->shard(group), state = this->state(group);
  const std::string before = to_string(group) + ".accumulate";
  const Axis copies = state_copies_axis(layout_);
  if (!state_sharded()) return add(name, OpKind::all_reduce, copies, shard, before);
  add(name, OpKind::reduce_scatter, Axis::optimizer_shard, shard, before);
  if (last_gradient(group) != name) add(last_gradient(group), OpKind::all_reduce, copies, state, name);
}

void GroupOps::add_refresh(Nodes& out, Group group, int layer_delta) const {
  if (!present(group)) return;
  Op o = op(to_string(group) + ".refresh", Action::refresh, Direction::forward, group);
  o.layer_delta = layer_delta;
  collective(o, OpKind::all_gather, Axis::optimizer_shard, fixed(sizes_.word * as_double(shard(group))));
  o.work = {make_item(Kernel::copy, Pass::forward, options_.precision, fixed(as_double(state(group))))};
  add_scratch(o);
  out.push_back(o);
}

void GroupOps::add_first_refresh(Nodes& out) const {
  add_refresh(out, Group::embedding, 0);
  for (int layer = 0; layer < std::min<int>(2, static_cast<int>(model_.blocks())); ++layer) {
    Nodes body;
    for (Group group : {Group::dense, Group::expert})
      GroupOps(model_, layout_, options_, layer).add_refresh(body, group, 0);
    out.push_back(Loop{Loop::Index::layer, layer, layer, false, body});
  }
  add_refresh(out, Group::head, 0);
}

void GroupOps::add_head_unshard(Nodes& out, bool refreshed) const {
  Op o = unshard(Group::head, Direction::forward, {}, 0, refreshed);
  o.allocates.push_back({"head.weights", fixed(padded(Group::head) * sizes_.word)});
  out.push_back(o);
}

std::string GroupOps::last_gradient(Group group) const {
  if (layout_.replicate == 1) return to_string(group) + ".accumulate";
  return to_string(group) +
         (state_sharded() && layout_.optimizer_shard < layout_.replicate ? ".replicas.sum" : ".replicas");
}

}  // namespace wt
