#include "sim/program/compose/split_backward.hpp"

#include <algorithm>

#include "sim/program/walk.hpp"

namespace wt {
namespace {

/// Whether forward saved the buffer, so that weight gradients need it again. Gradients are passed on to the next op,
/// and gathered inputs are counted in "weights.kept".
bool saved(const Ref& buffer) {
  return !buffer.name.ends_with(".gradient") && !buffer.name.ends_with(".gradients") &&
         !buffer.name.ends_with(".gathered");
}

}  // namespace

void split_backward(Nodes& layer, const Sizes& s) {
  Op* last = nullptr;
  for (Op& o : ops_of(layer)) {
    if (o.direction != Direction::backward || o.kind != OpKind::segment) continue;
    for (WorkItem& item : o.work)
      if (has_two_gradients(item)) item = gradient_of_input(item);
    std::erase_if(o.frees, saved);
    last = &o;
  }
  // Output gradients of q, k and v, of the output projection, and of the two products of FFN and experts.
  last->allocates.push_back(
      {"weights.kept", fixed(s.qkv + s.whole_x + s.ffn_gate_up + (s.ffn_gate_up > 0 ? s.whole_x : 0))});
  if (s.gate_up.fixed > 0 || s.gate_up.per_row > 0)
    last->allocates.push_back({"weights.rows.kept", sum(s.gate_up, s.row_block)});
}

Op weight_gradients(const Nodes& layer) {
  Op out;
  out.name = kWeightGradients;
  out.action = Action::attention;
  out.direction = Direction::backward;
  out.group = Group::dense;
  for (const Op& o : ops_of(layer)) {
    if (o.direction != Direction::backward || o.kind != OpKind::segment) continue;
    for (const WorkItem& item : o.work)
      if (has_two_gradients(item)) out.work.push_back(gradient_of_weight(item));
    std::ranges::copy_if(o.frees, std::back_inserter(out.frees), saved);
  }
  out.frees.push_back({"weights.kept"});
  out.frees.push_back({"weights.rows.kept"});
  return out;
}

}  // namespace wt
