#include "sim/program/compose/activation_copies.hpp"

#include <algorithm>

#include "sim/program/walk.hpp"

namespace wt {

ActivationCopies::ActivationCopies(const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                                   int layer, std::int64_t expert_rank, const LayerRecompute& recompute)
    : OpFactory(model, layout, options, layer, expert_rank),
      block_(model, layout, options, layer, expert_rank),
      recompute_(recompute) {}

std::vector<Buffer> ActivationCopies::kept() const {
  Nodes block;
  block_.add_block(block, Direction::forward, recompute_);
  std::vector<Buffer> kept;
  for (const Op& o : ops_of(block)) {
    for (const Buffer& made : o.allocates)
      if (made.name != "block.output") kept.push_back(made);
    for (const Ref& freed : o.frees)
      std::erase_if(kept, [&](const Buffer& b) { return freed.layer_delta == 0 && b.name == freed.name; });
  }
  return kept;
}

std::vector<Buffer> ActivationCopies::input() const { return {{"block.output", fixed(sizes_.x)}}; }

Op ActivationCopies::copy(const std::string& name, Action action, Direction direction,
                          const std::vector<Buffer>& buffers, int layer_delta, std::vector<Ref> waits) const {
  Op o = op(name, action, direction);
  o.kind = OpKind::copy;
  o.lane = Lane::copy;
  o.layer_delta = layer_delta;
  Amount bytes;
  for (const Buffer& each : buffers) bytes = sum(bytes, each.bytes);
  o.work = {make_item(Kernel::host_copy, Pass::forward, Precision::fp32, bytes)};
  o.waits = std::move(waits);
  if (direction == Direction::backward)
    o.allocates = buffers;
  else
    for (const Buffer& each : buffers) o.frees.push_back({each.name, layer_delta});
  return o;
}

void ActivationCopies::add_to_host(Nodes& out) const {
  const std::vector<Ref> done{{block_.last(Direction::forward)}};
  out.push_back(copy(kOut, Action::offload_kept, Direction::forward, kept(), 0, done));
  out.push_back(copy(kInputOut, Action::offload_input, Direction::forward, input(), -1, done));
}

void ActivationCopies::add_from_host(Nodes& out, std::vector<Ref> waits) const {
  waits.insert(waits.end(), {{kOut, -1}, {kInputOut, -2}});
  out.push_back(copy(kBack, Action::offload_kept, Direction::backward, kept(), -1, waits));
  out.push_back(copy(kInputBack, Action::offload_input, Direction::backward, input(), -2, waits));
}

}  // namespace wt
