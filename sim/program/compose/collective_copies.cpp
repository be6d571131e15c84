#include "sim/program/compose/collective_copies.hpp"

#include <algorithm>
#include <set>

#include "sim/program/compose/group_ops.hpp"
#include "sim/program/walk.hpp"

namespace wt {
namespace {

/// Copies in one body: the ops of one layer, or those outside layers.
class Copies : OpFactory {
 public:
  using OpFactory::OpFactory;

  void add_to(Nodes& body, bool in_layer) const {
    std::set<std::string> kept;  // gathered by an earlier pass
    for (const Op& o : ops_of(body))
      if (o.action == Action::unshard && o.kind == OpKind::host) kept.insert(o.name);
    const bool weights = options_.memory.collective_copies == CollectiveCopies::both;
    for (const Group group : {Group::embedding, Group::head, Group::dense, Group::expert}) {
      if (layered(group) != in_layer || !sharded(group) || !present(group)) continue;
      for (const Direction direction : {Direction::forward, Direction::backward})
        if (const std::string gathered = unshard_name(group, direction); weights && !kept.contains(gathered))
          add(find(body, [&](const Op& o) { return o.lane == Lane::compute && waits_for(o, gathered); }), group,
              2 * sizes_.word);
      const Op* reduce = find(
          body, [&](const Op& o) { return o.action == Action::reduce_gradients && o.group == group && in_body(o); });
      if (reduce)
        add(find(body, [&](const Op& o) { return o.name == reduce->waits.front().name; }), group,
            sizes_.word + (weights ? options_.gradient_bytes : sizes_.word));
    }
  }

 private:
  static bool in_body(const Op& o) { return o.waits.front().layer_delta == 0; }
  static bool waits_for(const Op& o, const std::string& name) {
    return std::ranges::any_of(o.waits, [&](const Ref& r) { return r.name == name && r.layer_delta == 0; });
  }
  template <class Is>
  static Op* find(Nodes& body, Is is) {
    for (Op& o : ops_of(body))
      if (is(o)) return &o;
    return nullptr;
  }
  /// `bytes`: read and written per element.
  void add(Op* o, Group group, double bytes) const {
    if (o) o->work.push_back(move(padded(group), bytes));
  }
};

}  // namespace

void add_collective_copies(Nodes& nodes, const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                           std::int64_t expert_rank) {
  for_each_list(nodes, [&](Nodes& list, const LoopsAround& around) {
    const std::int64_t layer = around.layers ? around.layers->first : 0;
    Copies(model, layout, options, layer, expert_rank).add_to(list, around.layers != nullptr);
  });
}

}  // namespace wt
