#include "sim/program/build/restore.hpp"

#include "configs/spec/support/error.hpp"
#include "sim/program/build/step_builder.hpp"

namespace wt {
namespace {

class RestoreBuilder : private StepBuilder {
 public:
  RestoreBuilder(const ModelSpec& model, const Layout& layout, const ProgramOptions& options)
      : StepBuilder(model, layout, options, 0, whole(model)) {}

  Program build(double bytes_per_parameter) {
    bytes_ = bytes_per_parameter / 3;
    add(program_.nodes, Group::embedding, 0);
    for (const LayerRange& run : equal_layers(0, program_.layers - 1)) {
      Nodes body;
      for (Group group : block_groups(run.first)) add(body, group, run.first);
      program_.nodes.push_back(loop(Loop::Index::layer, run.first, run.last, body));
    }
    add(program_.nodes, Group::head, 0);
    return std::move(program_);
  }

 private:
  void add(Nodes& out, Group group, int layer) const {
    const Axis copies = state_copies_axis(layout_);
    const double elements = as_double(state_elements(model_, layout_, group, layer));
    if (elements == 0 || Mesh(layout_).size(copies) == 1) return;
    for (const char* tensor : {"master", "exp_avg", "exp_avg_sq"}) {
      Op o = op(to_string(group) + ".restore." + tensor, Action::restore, Direction::forward, group);
      collective(o, OpKind::broadcast, copies, fixed(bytes_ * elements));
      out.push_back(o);
    }
  }

  double bytes_ = 0;
};

}  // namespace

ProgramSet restore_programs(const ModelSpec& model, const Layout& layout, double bytes_per_parameter) {
  layout.check(model, "layout " + layout.name());
  if (layout.pipeline > 1)
    throw_error(Code::usage, "layout {}: found {} pipeline stages, needs 1 to restore a checkpoint", layout.name(),
                layout.pipeline);
  const ProgramOptions options{.seq = 1};
  return {{RestoreBuilder(model, layout, options).build(bytes_per_parameter)},
          std::vector<int>(static_cast<std::size_t>(layout.world()), 0)};
}

}  // namespace wt
