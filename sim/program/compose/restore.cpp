#include "sim/program/compose/restore.hpp"

#include "sim/program/compose/step_builder.hpp"
#include "sim/program/compose/tensor_slice.hpp"

namespace wt {
namespace {

class RestoreBuilder : private StepBuilder {
 public:
  RestoreBuilder(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t stage)
      : StepBuilder(model, layout, options, 0, part(model, layout, stage)) {}

  Program build(double bytes_per_parameter) {
    bytes_ = bytes_per_parameter / 3;
    if (has_embedding()) add(program_.nodes, Group::embedding, 0);
    for (const int layer : part_.layers) {
      Nodes body;
      for (Group group : block_groups(layer)) add(body, group, layer);
      program_.nodes.push_back(loop(Loop::Index::layer, layer, layer, body));
    }
    if (has_head()) add(program_.nodes, Group::head, 0);
    return std::move(program_);
  }

  double elements() const { return over_groups(state_elements); }

 private:
  static Part part(const ModelSpec& model, const Layout& layout, std::int64_t stage) {
    if (layout.pipeline == 1) return whole(model);
    std::vector<std::int64_t> chunks = layout.layers_of_chunks(model.layers);
    chunks.at(chunks.size() - (layout.modules_before_head ? 2 : 1)) += model.mtp_layers;
    const std::int64_t last = static_cast<std::int64_t>(chunks.size()) - 1;
    Part out{{}, layout.stage_of(0) == stage, layout.stage_of(last) == stage};
    int layer = 0;
    for (std::int64_t chunk = 0; chunk <= last; ++chunk)
      for (std::int64_t i = 0; i < chunks[static_cast<std::size_t>(chunk)]; ++i, ++layer)
        if (layout.stage_of(chunk) == stage) out.layers.push_back(layer);
    return out;
  }

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

template <typename Take>
void for_stages(const ModelSpec& model, const Layout& layout, const Take& take) {
  layout.check(model, "layout " + layout.name());
  const ProgramOptions options{.seq = 1};
  const ModelSpec slice = tensor_slice(model, layout.tensor, layout.whole_experts);
  for (std::int64_t stage = 0; stage < layout.pipeline; ++stage) {
    RestoreBuilder builder(slice, layout, options, stage);
    take(builder);
  }
}

}  // namespace

std::vector<double> state_elements_of_stages(const ModelSpec& model, const Layout& layout) {
  std::vector<double> out;
  for_stages(model, layout, [&](const RestoreBuilder& builder) { out.push_back(builder.elements()); });
  return out;
}

ProgramSet restore_programs(const ModelSpec& model, const Layout& layout, double bytes_per_parameter) {
  ProgramSet set;
  for_stages(model, layout,
             [&](RestoreBuilder& builder) { set.programs.push_back(builder.build(bytes_per_parameter)); });
  for (std::int64_t rank = 0; rank < layout.world(); ++rank)
    set.class_of_rank.push_back(static_cast<int>(rank / layout.stage_ranks()));
  return set;
}

}  // namespace wt
