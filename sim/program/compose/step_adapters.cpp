// Adapters on frozen weights: every rank has all adapters of its layers, and reduces their gradients once a step.
#include "sim/program/compose/step_builder.hpp"

namespace wt {

double StepBuilder::adapter_elements() const {
  std::int64_t sum = 0;
  if (frozen())
    for (const int layer : part_.layers) sum += options_.lora->elements(layer);
  return as_double(sum);
}

void StepBuilder::add_adapter_weights() {
  if (!frozen()) return;
  Op o = op(unshard_name(Group::adapter, Direction::forward), Action::unshard, Direction::forward, Group::adapter);
  o.kind = OpKind::copy;
  o.work = {make_item(Kernel::copy, Pass::forward, options_.precision, fixed(adapter_elements()))};
  program_.nodes.push_back(o);
}

void StepBuilder::add_adapter_reduce() {
  if (!frozen() || adapter_elements() == 0) return;
  const auto add = [&](const std::string& name, Axis axis, std::vector<Ref> waits) {
    if (Mesh(layout_).size(axis) == 1) return;
    Op o = op(name, Action::reduce_gradients, Direction::backward, Group::adapter);
    collective(o, OpKind::all_reduce, axis, fixed(4 * adapter_elements()));
    o.waits = std::move(waits);
    program_.nodes.push_back(o);
  };
  if (layout_.pipeline == 1) return add("adapter.reduce", Axis::world, {{layer_end(), 0, part_.layers.front()}});
  // Only over the ranks of this stage (its shards and their replicas), because other stages have other adapters.
  add("adapter.reduce", Axis::shard, {{layer_end(), 0, part_.layers.front()}});
  add("adapter.replicas", Axis::replicate,
      {{layout_.shard > 1 ? "adapter.reduce" : layer_end(), 0, layout_.shard > 1 ? -1 : part_.layers.front()}});
}

std::string StepBuilder::last_adapter_gradient() const {
  if (adapter_elements() == 0) return "";
  if (layout_.pipeline == 1) return layout_.world() > 1 ? "adapter.reduce" : "";
  return layout_.replicate > 1 ? "adapter.replicas" : layout_.shard > 1 ? "adapter.reduce" : "";
}

}  // namespace wt
