#include "sim/program/compose/op_factory.hpp"

namespace wt {

Amount fixed(double bytes) { return {bytes, 0}; }
Amount sum(const Amount& a, const Amount& b) { return {a.fixed + b.fixed, a.per_row + b.per_row}; }
Amount difference(const Amount& a, const Amount& b) { return {a.fixed - b.fixed, a.per_row - b.per_row}; }

std::string suffix(Direction direction) {
  return direction == Direction::forward ? ".fwd" : direction == Direction::recompute ? ".rec" : ".bwd";
}

OpFactory::OpFactory(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t layer,
                     std::int64_t expert_rank)
    : model_(model),
      layout_(layout),
      options_(options),
      layer_(layer),
      expert_rank_(expert_rank),
      sizes_(model, layout, options, layer) {}

Op OpFactory::op(std::string name, Action action, Direction direction, Group group) const {
  Op o;
  o.name = std::move(name);
  o.action = action;
  o.direction = direction;
  o.group = group;
  return o;
}
WorkItem OpFactory::item(Kernel kernel, Direction direction, Amount rows, std::array<std::int64_t, 4> dims) const {
  const bool backward = direction == Direction::backward;
  WorkItem out = make_item(kernel, backward ? Pass::backward : Pass::forward, options_.precision, rows, dims);
  return frozen() && has_two_gradients(out) ? gradient_of_input(out) : out;
}
void OpFactory::add_bias(std::vector<WorkItem>& work, Direction direction, Amount rows, std::int64_t width) const {
  if (direction == Direction::backward && frozen()) return;
  work.push_back(item(Kernel::bias, direction, rows, {width}));
}
WorkItem OpFactory::move(double elements, double bytes) const {
  return item(Kernel::copy, Direction::forward, fixed(elements * bytes / (2 * sizes_.word)));
}
void OpFactory::collective(Op& o, OpKind kind, Axis axis, Amount bytes) {
  o.kind = kind;
  o.lane = lane_of(kind, axis);
  o.collective = {axis, bytes};
}

double OpFactory::padded(Group group) const { return as_double(shard(group) * Mesh(layout_).size(shard_axis(group))); }
bool OpFactory::sharded(Group group) const { return Mesh(layout_).size(shard_axis(group)) > 1; }

}  // namespace wt
