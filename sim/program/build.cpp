#include "sim/program/build.hpp"

#include <algorithm>

#include "configs/spec/error.hpp"
#include "sim/program/block_ops.hpp"
#include "sim/program/group_ops.hpp"
#include "sim/program/tensor_slice.hpp"

namespace wt {
namespace {

/// Builds the program of one rank class. Layer loops are peeled at the ends because the first and the last layer have
/// one neighbour less to prefetch.
class Builder : private OpFactory {
 public:
  Builder(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t expert_rank)
      : OpFactory(model, layout, options, 0, expert_rank) {
    program_.layers = static_cast<int>(model_.layers);
    program_.microbatches = static_cast<int>(options_.microbatches);
  }

  Program build() {
    add_resident();
    const int last = program_.microbatches - 1, alike = state_sharded() ? 1 : 0;  // the first one gathers what replicas updated
    const auto add = [&](int from, int to, bool is_first, bool is_last) {
      if (from <= to) program_.nodes.push_back(loop(Loop::Index::microbatch, from, to, microbatch(is_first, is_last)));
    };
    if (last > 0) add(0, alike - 1, true, false);
    add(alike, last - 1, false, false);
    program_.nodes.push_back(last_loop(state_sharded() && last == 0));
    epilogue();
    return std::move(program_);
  }

 private:
  /// The last microbatch, which may have fewer sequences: its ops are those of a layout with that microbatch.
  Loop last_loop(bool is_first) const {
    Layout smaller = layout_;
    if (options_.last_microbatch > 0) smaller.microbatch = options_.last_microbatch;
    const int last = program_.microbatches - 1;
    return loop(Loop::Index::microbatch, last, last, Builder(model_, smaller, options_, expert_rank_).microbatch(is_first, true));
  }

  static Loop loop(Loop::Index index, int first, int last, Nodes body) {
    return {index, first, last, first > last, std::move(body)};
  }

  GroupOps groups(int layer = 0) const { return {model_, layout_, options_, layer, expert_rank_}; }
  BlockOps blocks(int layer) const { return {model_, layout_, options_, layer, expert_rank_}; }
  /// Those of the block's groups that this layer has.
  std::vector<Group> block_groups(int layer) const {
    if (model_.moe(layer)) return {Group::dense, Group::expert};
    return {Group::dense};
  }

  LayerRecompute again(int layer) const { return layout_.recompute.of(layer, model_.layers); }
  /// Neighbouring layers whose bodies are the same: one loop. What comes before and after a layer counts, because its body
  /// gathers for a neighbour.
  struct Alike {
    int first, last;
  };
  bool same_copies(int a, int b) const {
    return !copies() || copy_exchange(model_, layout_, a, expert_rank_).rows() == copy_exchange(model_, layout_, b, expert_rank_).rows();
  }
  std::vector<Alike> alike(int first, int last) const {
    const auto kind = [this](int layer) { return model_.moe(std::clamp(layer, 0, program_.layers - 1)); };
    const auto same = [&](int a, int b) {
      for (int delta = -1; delta <= 2; ++delta)
        if (kind(a + delta) != kind(b + delta)) return false;
      return again(a) == again(b) && same_copies(a, b);
    };
    std::vector<Alike> out;
    for (int layer = first; layer <= last; ++layer)
      if (!out.empty() && same(out.back().first, layer)) out.back().last = layer;
      else out.push_back({layer, layer});
    return out;
  }

  // ---- memory held all the time ----
  void add_resident() {
    const double states = over_groups(state_elements), shards = over_groups(shard_elements);
    program_.resident.push_back({"masters", fixed(4 * states)});
    program_.resident.push_back({"moments", fixed(8 * states)});
    program_.resident.push_back({"gradient shards", fixed(4 * shards)});
    if (state_sharded()) program_.resident.push_back({"weight shards", fixed(sizes_.word * shards)});
    program_.resident.push_back({"gathered slots", fixed(slots(weight_slots(model_, layout_)) * sizes_.word)});
    program_.resident.push_back({"gradient slots", fixed(slots(gradient_slots(model_, layout_)) * 4)});
    if (!layout_.reduce_every_microbatch)
      program_.resident.push_back({"outer gradients", fixed((padded(Group::embedding) + padded(Group::head)) * 4)});
    program_.resident.push_back({"rope table", fixed(as_double(options_.seq / layout_.context * model_.rope_dim()) * 4)});
    // Additive masks: of all positions with linear biases; under context parallelism of the rank's two pieces (of 2C), up
    // to their ends.
    const double length = as_double(options_.seq) / as_double(2 * layout_.context), pieces = as_double(2 * layout_.context + 1);
    const double elements = cut() ? pieces * length * length : model_.attention.alibi ? as_double(options_.seq * options_.seq) : 0;
    if (elements > 0)
      program_.resident.push_back({"attention masks", fixed(elements * (model_.attention.alibi ? as_double(model_.heads) : 1) * 4)});
    if (biased()) program_.resident.push_back({"router bias", fixed(as_double(router_loads()) * 4 * 5)});  // with loads, and unused moments
  }

  bool biased() const { return model_.moe_layers() > 0 && model_.router.bias_update_rate > 0; }
  std::int64_t router_loads() const { return group_elements(model_, layout_, Group::router_bias, 0); }

  /// Elements of all slots of a kind.
  double slots(std::int64_t count) const {
    double sum = 0;
    for (Group group : {Group::dense, Group::expert})
      for (std::int64_t slot = 0; slot < count; ++slot) sum += as_double(slot_elements(model_, layout_, group, slot, count));
    return sum;
  }

  /// Sum of a size over all groups of this rank.
  double over_groups(std::int64_t (*elements)(const ModelSpec&, const Layout&, Group, std::int64_t)) const {
    std::int64_t sum = elements(model_, layout_, Group::embedding, 0) + elements(model_, layout_, Group::head, 0);
    for (std::int64_t layer = 0; layer < model_.layers; ++layer)
      sum += elements(model_, layout_, Group::dense, layer) + elements(model_, layout_, Group::expert, layer);
    return as_double(sum);
  }

  /// Layer loop body of the forward pass; prefetches the next layer, or the head from the last one.
  Nodes forward_layer(int layer, bool first_microbatch) const {
    Nodes out;
    if (layer < program_.layers - 1) {
      const std::string before = blocks(std::max(0, layer - 1)).last(Direction::forward);
      for (Group group : block_groups(layer + 1))
        out.push_back(groups(layer + 1).unshard(group, Direction::forward, {{before, -1}}, 1, first_microbatch));
      if (first_microbatch)
        for (Group group : {Group::dense, Group::expert}) groups(std::min(layer + 2, program_.layers - 1)).add_refresh(out, group, 2);
    } else if (!model_.tied) {
      groups().add_head_unshard(out, first_microbatch);
    }
    blocks(layer).add_block(out, Direction::forward, again(layer));
    return out;
  }

  /// Layer loop body of the backward pass. The last layer still has its weights from the forward pass.
  Nodes backward_layer(int layer, bool last_microbatch) const {
    Nodes out;
    const bool is_last = layer == program_.layers - 1;
    const bool reduces = layout_.reduce_every_microbatch || last_microbatch, gathers = layout_.reshard_after_forward;
    const LayerRecompute again = this->again(layer);
    const BlockOps block = blocks(layer);
    if (is_last || !gathers)  // names the gathered weights as the backward ops know them; nothing moves
      for (Group group : block_groups(layer)) {
        Op kept = op(unshard_name(group, Direction::backward), Action::unshard, Direction::backward, group);
        kept.kind = OpKind::host;
        kept.lane = Lane::host;
        kept.waits = {{unshard_name(group, Direction::forward)}};
        out.push_back(kept);
      }
    if (layer > 0 && gathers)
      for (Group group : block_groups(layer - 1))
        out.push_back(groups(layer - 1).unshard(group, Direction::backward, {is_last ? Ref{block.last(Direction::forward)} : Ref{layer_end(), 1}}, -1));
    if (again.block) block.add_block(out, Direction::recompute, again);
    if (model_.moe(layer)) add_experts_backward(out, layer);
    else block.add_ffn(out, Direction::backward, again);
    if (reduces) {
      if (!is_last) groups(layer + 1).add_accumulate(out, Group::expert, 1, last_microbatch);
      else if (!model_.tied) groups().add_accumulate(out, Group::head, 0, last_microbatch);
      if (!copies()) groups(layer).add_reduce(out, Group::expert, {{"experts.bwd"}});
    }
    if (model_.moe(layer) && layout_.expert > 1) {
      Op dispatch = block.all_to_all("dispatch", Action::dispatch, Direction::backward, block.sent_rows(), {{block.rows_ready(Direction::backward)}});
      dispatch.allocates = {{"gy", fixed(block.sizes().routed)}};
      dispatch.frees = {{layout_.sequence_parallel ? "gre.own" : "gre"}};
      out.push_back(dispatch);
    }
    if (reduces) groups(layer).add_copy_exchange(out);  // behind the rows, which attention waits for
    if (again.attention) block.add_attention(out, Direction::recompute, again);
    block.add_attention(out, Direction::backward, again);
    if (!reduces) return out;
    groups(layer).add_copy_sum(out);
    if (copies()) groups(layer).add_reduce(out, Group::expert, {{"copies.sum"}});
    if (!is_last) groups(layer + 1).add_accumulate(out, Group::dense, 1, last_microbatch);
    groups(layer).add_reduce(out, Group::dense, {{layer_end()}});
    return out;
  }

  /// combine .. experts; shared experts while gradients travel.
  void add_experts_backward(Nodes& out, int layer) const {
    const LayerRecompute again = this->again(layer);
    const BlockOps block = blocks(layer);
    out.push_back(block.combine(Direction::backward, again));
    if (layout_.expert > 1) {
      Op collect = block.all_to_all("collect", Action::collect, Direction::backward, fixed(block.sizes().routed), {{"combine.bwd"}});
      collect.allocates = {{"gco", block.sent_rows()}};
      collect.frees = {{"go"}};
      out.push_back(collect);
    }
    if (model_.ffn_width(layer) > 0) block.add_ffn(out, Direction::backward, again);
    if (again.experts) block.add_experts(out, Direction::recompute, again);
    block.add_experts(out, Direction::backward, again);
  }

  Nodes microbatch(bool first_microbatch, bool last_microbatch) const {
    Nodes out;
    const int last = program_.layers - 1;
    const bool reduces = layout_.reduce_every_microbatch || last_microbatch;
    Op load = op("data", Action::load_batch);
    load.kind = OpKind::host;
    load.lane = Lane::host;
    out.push_back(load);
    if (first_microbatch) groups().add_first_refresh(out);
    if (model_.tied) {  // embedding and output projection are one: gathered once, kept from end to end
      groups().add_head_unshard(out, first_microbatch);
    } else {
      // A later microbatch gathers into slots that the one before has read to its end.
      Op embedding = groups().unshard(Group::embedding, Direction::forward, {{"embed.bwd", 0, -1, -1}}, 0, first_microbatch);
      embedding.allocates.push_back({"embedding.weights", fixed(padded(Group::embedding) * sizes_.word)});
      out.push_back(embedding);
    }
    const std::vector<Ref> free{{layer_end(), 0, 0, -1}};
    Nodes first;
    for (Group group : block_groups(0)) first.push_back(groups().unshard(group, Direction::forward, free, 0, first_microbatch));
    out.push_back(loop(Loop::Index::layer, 0, 0, first));
    blocks(0).add_embed(out, Direction::forward);

    for (const Alike& run : alike(0, last - 1)) out.push_back(loop(Loop::Index::layer, run.first, run.last, forward_layer(run.first, first_microbatch)));
    out.push_back(loop(Loop::Index::layer, last, last, forward_layer(last, first_microbatch)));
    blocks(last).add_head(out);
    if (reduces && !model_.tied) groups().add_reduce(out, Group::head, {{"head"}});
    out.push_back(loop(Loop::Index::layer, last, last, backward_layer(last, last_microbatch)));
    const std::vector<Alike> middle = alike(1, last - 1);
    for (auto run = middle.rbegin(); run != middle.rend(); ++run)
      out.push_back(loop(Loop::Index::layer, run->last, run->first, backward_layer(run->first, last_microbatch)));
    if (last > 0) out.push_back(loop(Loop::Index::layer, 0, 0, backward_layer(0, last_microbatch)));

    const Group outermost = model_.tied ? Group::head : Group::embedding;
    blocks(0).add_embed(out, Direction::backward);
    if (!reduces) return out;
    groups().add_reduce(out, outermost, {{"embed.bwd"}});
    Nodes rest;
    groups().add_accumulate(rest, Group::expert, 0, last_microbatch);
    groups().add_accumulate(rest, Group::dense, 0, last_microbatch);
    out.push_back(loop(Loop::Index::layer, 0, 0, rest));
    groups().add_accumulate(out, outermost, 0, last_microbatch);
    return out;
  }

  void epilogue() {
    const double states = over_groups(state_elements);
    Op norm = op("norm", Action::gradient_norm);
    norm.work = {make_item(Kernel::copy, Pass::forward, Precision::fp32, fixed(states))};
    if (!model_.tied) norm.waits = {{groups().last_gradient(Group::embedding)}};
    for (int layer = 0; layer < program_.layers; ++layer)
      for (Group group : block_groups(layer)) norm.waits.push_back({groups().last_gradient(group), 0, layer});
    norm.waits.push_back({groups().last_gradient(Group::head)});
    program_.nodes.push_back(norm);
    const bool summed = Mesh(layout_).size(Axis::state) > 1;
    if (summed) {
      Op reduce = op("norm.reduce", Action::reduce_norm);
      collective(reduce, OpKind::all_reduce, Axis::state, fixed(4));
      reduce.waits = {{"norm"}};
      program_.nodes.push_back(reduce);
    }
    Op optimizer = op("optimizer", Action::optimizer);
    optimizer.work = {make_item(Kernel::adamw, Pass::forward, Precision::fp32, fixed(states))};
    optimizer.waits = {{summed ? "norm.reduce" : "norm"}};
    program_.nodes.push_back(optimizer);
    if (biased()) add_bias_update();
    if (layout_.world() > 1) {
      Op loss = op("loss.reduce", Action::reduce_loss);
      collective(loss, OpKind::all_reduce, Axis::world, fixed(12));
      loss.waits = {{"optimizer"}};
      program_.nodes.push_back(loss);
    }
  }

  /// Loss-free balancing: after the step the biases move against the loads of all its microbatches on all ranks.
  void add_bias_update() {
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

  Program program_;
};

}  // namespace

ProgramOptions program_options(const RunSpec& run) {
  ProgramOptions options;
  options.seq = run.seq;
  options.microbatches = run.microbatches();
  options.last_microbatch = run.sequences().last;
  options.precision = run.precision;
  options.transport_scratch = run.device == DeviceKind::cpu;  // Gloo; NCCL reduces in place
  return options;
}

std::int64_t weight_slots(const ModelSpec& model, const Layout& layout) {
  return layout.reshard_after_forward ? std::min<std::int64_t>(2, model.layers) : model.layers;
}

std::int64_t gradient_slots(const ModelSpec& model, const Layout& layout) {
  return layout.reduce_every_microbatch ? std::min<std::int64_t>(2, model.layers) : model.layers;
}

Axis state_copies_axis(const Layout& layout) {
  return layout.optimizer_shard == 1 ? Axis::replicate : Axis::optimizer_replicate;
}

Axis shard_axis(Group group) { return group == Group::expert ? Axis::expert_shard : Axis::shard; }

std::int64_t group_elements(const ModelSpec& model, const Layout& layout, Group group, std::int64_t layer) {
  switch (group) {
    case Group::dense: return model.dense_parameters(layer);
    case Group::expert: return model.moe(layer) ? layout.slots_per_rank(model) * model.expert_parameters() : 0;
    case Group::embedding: return model.embedding_parameters();
    case Group::head: return model.head_parameters();
    case Group::router_bias: return model.moe_layers() * model.experts;
    case Group::none: return 0;
  }
  return 0;
}

std::int64_t shard_elements(const ModelSpec& model, const Layout& layout, Group group, std::int64_t layer) {
  return state_elements(model, layout, group, layer) * layout.optimizer_shard;
}

std::int64_t state_elements(const ModelSpec& model, const Layout& layout, Group group, std::int64_t layer) {
  const std::int64_t ranks = Mesh(layout).size(shard_axis(group)) * layout.optimizer_shard;
  return (group_elements(model, layout, group, layer) + ranks - 1) / ranks;
}

std::int64_t slot_elements(const ModelSpec& model, const Layout& layout, Group group, std::int64_t slot, std::int64_t slots) {
  std::int64_t most = 0;
  for (std::int64_t layer = slot; layer < model.layers; layer += slots)
    most = std::max(most, shard_elements(model, layout, group, layer) * Mesh(layout).size(shard_axis(group)));
  return most;
}

ProgramSet build_program_set(const ModelSpec& model, const Layout& layout, const ProgramOptions& options) {
  layout.check(model, "layout " + layout.name());
  if (options.last_microbatch < 0 || options.last_microbatch > layout.microbatch)
    throw_error(Code::usage, "layout {}: found a last microbatch of {} sequences, needs 1 to {} as the others have, or 0 for as many", layout.name(),
                options.last_microbatch, layout.microbatch);
  ProgramSet set;
  const ModelSpec slice = tensor_slice(model, layout.tensor);
  // Copies of experts make expert ranks differ in what they exchange; without them all ranks are one class.
  const std::int64_t classes = has_copies(model, layout) ? layout.expert : 1;
  for (std::int64_t expert_rank = 0; expert_rank < classes; ++expert_rank)
    set.programs.push_back(Builder(slice, layout, options, expert_rank).build());
  for (std::int64_t rank = 0; rank < layout.world(); ++rank)
    set.class_of_rank.push_back(static_cast<int>(layout.data_rank(rank) % classes));
  return set;
}

}  // namespace wt
