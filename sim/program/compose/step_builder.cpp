#include "sim/program/compose/step_builder.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace wt {

StepBuilder::StepBuilder(const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                         std::int64_t expert_rank, Part part)
    : OpFactory(model, layout, options, 0, expert_rank),
      part_(std::move(part)),
      chunk_layers_(layout.layers_of_chunks(model.layers)) {
  program_.layers = static_cast<int>(model_.blocks());
  program_.microbatches = static_cast<int>(options_.microbatches);
}

StepBuilder::Part StepBuilder::whole(const ModelSpec& model) {
  Part part;
  part.layers.resize(static_cast<std::size_t>(model.blocks()));
  std::iota(part.layers.begin(), part.layers.end(), 0);
  return part;
}

std::vector<Group> StepBuilder::block_groups(int layer) const {
  if (model_.moe(layer)) return {Group::dense, Group::expert};
  return {Group::dense};
}

LayerRecompute StepBuilder::recompute_of(int layer) const {
  LayerRecompute out = layout_.recompute.of(layer, model_.layers, chunk_layers_);
  const bool moe = model_.moe(layer), shared = moe && model_.shared_ffn > 0;
  out.mlp = out.mlp && !moe && model_.feeds_forward(layer);
  for (bool LayerRecompute::*flag : {&LayerRecompute::core, &LayerRecompute::mla_up_proj})  // only softmax attention
    out.*flag = out.*flag && !model_.linear_mixer(layer);
  out.shared_experts = out.shared_experts && shared;
  for (bool LayerRecompute::*flag : {&LayerRecompute::experts, &LayerRecompute::moe, &LayerRecompute::moe_act})
    out.*flag = out.*flag && moe;
  return out;
}

bool StepBuilder::same_copies(int a, int b) const {
  return !copies() || copy_exchange(model_, layout_, a, expert_rank_).rows() ==
                          copy_exchange(model_, layout_, b, expert_rank_).rows();
}

std::vector<StepBuilder::LayerRange> StepBuilder::equal_layers(int first, int last) const {
  // Layers differ in: experts or none, the kind of mixer, a mixer without FFN, and whether the layer is one of the
  // model's, the first module of multi-token prediction or a later module.
  const auto kind = [this](int layer) {
    const int at = std::clamp(layer, 0, program_.layers - 1);
    return std::tuple(model_.moe(at), model_.linear_mixer(at), model_.feeds_forward(at),
                      std::clamp<std::int64_t>(at - model_.layers, -1, 1));
  };
  const auto same = [&](int a, int b) {
    for (int delta = -1; delta <= 2; ++delta)
      if (kind(a + delta) != kind(b + delta)) return false;
    if (frozen() && ((a == 0) != (b == 0) || !options_.lora->alike(a, b))) return false;  // backward ends at layer 0
    if (model_.local_attention(a) != model_.local_attention(b)) return false;
    return recompute_of(a) == recompute_of(b) && same_copies(a, b);
  };
  std::vector<LayerRange> out;
  for (int layer = first; layer <= last; ++layer)
    if (!out.empty() && same(out.back().first, layer)) {
      out.back().last = layer;
    } else {
      const auto like = std::ranges::find_if(
          out, [&](const LayerRange& run) { return run.like == run.first && same(run.first, layer); });
      out.push_back({layer, layer, like == out.end() ? layer : like->first});
    }
  return out;
}

double StepBuilder::over_groups(std::int64_t (*elements)(const ModelSpec&, const Layout&, Group, std::int64_t)) const {
  std::int64_t sum = 0;
  if (has_embedding()) sum += elements(model_, layout_, Group::embedding, 0);
  if (has_head()) sum += elements(model_, layout_, Group::head, 0);
  for (const int layer : part_.layers)
    for (Group group : {Group::dense, Group::expert}) sum += elements(model_, layout_, group, layer);
  return as_double(sum);
}

double StepBuilder::kept_elements() const {
  return over_groups(options_.memory.whole_states ? group_elements : state_elements);
}

void StepBuilder::add_states() {
  const double base = kept_elements(), adapters = adapter_elements(), trained = trained_elements(),
               here = 1 - options_.offload_fraction, moment = bytes_of(options_.precisions.moments) / 4,
               two_moments = (options_.memory.optimizer_bytes - 4) * moment;
  program_.resident.push_back(
      {"masters", fixed(bytes_of(options_.precisions.master_weights) * (base + adapters) * here)});
  // Muon and Lion have one momentum, AdamW two moments.
  const double single = options_.optimizer == OptimizerKind::lionw ? trained : muon_states();
  program_.resident.push_back({"moments", fixed(two_moments * (trained - single / 2) * here)});
  if (!frozen()) return;
  program_.resident.push_back({"adapters", fixed(sizes_.word * adapters)});
  program_.resident.push_back({"adapter gradients", fixed(4 * adapters)});
}

void StepBuilder::add_framework_buffers() {
  const MemoryFacts& facts = options_.memory;
  if (facts.weight_gradients == WeightGradients::dummy && !frozen()) {
    double elements = has_head() ? as_double(model_.vocab * model_.d_model) : 0;
    if (!part_.layers.empty())
      for (Group group : {Group::dense, Group::expert})
        elements += as_double(group_elements(model_, layout_, group, part_.layers.front()));
    program_.resident.push_back({"dummy gradients", fixed(elements * sizes_.word), true});
  }
  if (facts.product_workspace_bytes > 0) {
    constexpr double kMoreForGrouped = 4;
    const bool grouped = model_.experts > 0 && facts.grouped_products;
    program_.resident.push_back(
        {"product workspaces", fixed(facts.product_workspace_bytes * (grouped ? 1 + kMoreForGrouped : 1))});
  }
  if (facts.late_reuse && sequence() && layout_.pipeline == 1) {
    // A layer gathers the inputs of two products. The allocator reuses such a buffer only when the GPU is done with the
    // buffer. The host runs far ahead, so after some microbatches every layer has buffers of its own. In a pipeline,
    // the host waits for transfers and does not run ahead.
    constexpr double kGathersOfLayer = 2;
    const double ahead = std::min(
        1.0, as_double(std::max(options_.microbatches, options_.step_microbatches)) / MemoryFacts::kMicrobatchesAhead);
    program_.resident.push_back(
        {"late gathers", fixed(kGathersOfLayer * sizes_.whole_x * as_double(model_.blocks()) * ahead), true});
  }
}

void StepBuilder::add_tables() {
  program_.resident.push_back({"rope table", fixed(as_double(options_.seq / layout_.context * model_.rope_dim()) * 4)});
  // Additive masks. With linear biases: for all positions. Under context parallelism: for each of the rank's two pieces
  // (of 2C), up to the piece's end.
  const double length = as_double(options_.seq) / as_double(2 * layout_.context),
               pieces = as_double(2 * layout_.context + 1);
  const double elements = context_parallel()       ? pieces * length * length
                          : model_.attention.alibi ? as_double(options_.seq * options_.seq)
                                                   : 0;
  if (elements > 0 && options_.memory.attention_masks)
    program_.resident.push_back(
        {"attention masks", fixed(elements * (model_.attention.alibi ? as_double(model_.heads) : 1) * 4)});
  if (biased()) {  // including loads and unused moments
    const double parts = options_.optimizer == OptimizerKind::lionw ? 4 : 5;
    program_.resident.push_back({"router bias", fixed(as_double(router_loads()) * 4 * parts)});
  }
}

std::string StepBuilder::add_norm_sum(const std::string& name, Axis axis, const std::string& after) {
  if (Mesh(layout_).size(axis) == 1) return after;
  Op reduce = op(name, Action::reduce_norm);
  collective(reduce, OpKind::all_reduce, axis, fixed(4));
  reduce.waits = {{after}};
  program_.nodes.push_back(reduce);
  return name;
}

std::vector<Ref> StepBuilder::last_gradients() const {
  std::vector<Ref> out;
  if (frozen()) {
    if (const std::string last = last_adapter_gradient(); !last.empty()) out.push_back({last});
    return out;
  }
  if (has_embedding()) out.push_back({groups().last_gradient(Group::embedding)});
  for (const int layer : part_.layers)
    for (Group group : block_groups(layer)) out.push_back({groups().last_gradient(group), 0, layer});
  if (has_head()) out.push_back({groups().last_gradient(Group::head)});
  return out;
}

void StepBuilder::add_epilogue() {
  add_adapter_reduce();
  Op norm = op("norm", Action::gradient_norm);
  norm.work = {make_item(Kernel::copy, Pass::forward, Precision::fp32, fixed(trained_elements()))};
  norm.waits = last_gradients();
  program_.nodes.push_back(norm);
  // All ranks of a stage have the same adapter gradients, so that no sum over them is needed.
  const std::string own = frozen() ? "norm" : add_norm_sum("norm.reduce", Axis::state, "norm");
  const std::string summed = add_norm_sum("norm.stages", Axis::pipeline, own);
  add_optimizer(summed);
  if (biased() && !frozen()) add_bias_update();
  if (layout_.world() > 1) {
    Op loss = op("loss.reduce", Action::reduce_loss);
    collective(loss, OpKind::all_reduce, Axis::world, fixed(4 * as_double(kStepTerms + model_.mtp_layers)));
    loss.waits = {{"optimizer"}};
    program_.nodes.push_back(loss);
  }
}

/// Loss-free balancing: after the step, biases move against the loads of all its microbatches on all ranks.
void StepBuilder::add_bias_update() {
  Op update = op("router_bias", Action::update_bias, Direction::forward, Group::router_bias);
  update.work = {make_item(Kernel::add, Pass::forward, Precision::fp32, fixed(as_double(router_loads())), {1})};
  update.waits = {{"optimizer"}};
  if (layout_.world() > 1) {
    Op loads = op("router_loads.reduce", Action::reduce_loads, Direction::forward, Group::router_bias);
    collective(loads, OpKind::all_reduce, Axis::world, fixed(4 * as_double(router_loads())));
    loads.waits = {{"optimizer"}};
    program_.nodes.push_back(loads);
    update.waits = {{"router_loads.reduce"}};
  }
  program_.nodes.push_back(update);
}

}  // namespace wt
