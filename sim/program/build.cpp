#include "sim/program/build.hpp"

#include "configs/spec/error.hpp"
#include "sim/program/block_ops.hpp"
#include "sim/program/group_ops.hpp"

namespace wt {
namespace {

/// Builds the program of one rank class. Layer loops are peeled at the ends because the first and the last layer have
/// one neighbour less to prefetch.
class Builder : private OpFactory {
 public:
  Builder(const ModelSpec& model, const Layout& layout, const ProgramOptions& options)
      : OpFactory(model, layout, options), groups_(model, layout, options), blocks_(model, layout, options) {}

  Program build() {
    program_.layers = static_cast<int>(model_.layers);
    program_.microbatches = static_cast<int>(options_.microbatches);
    add_resident();
    const int last = program_.microbatches - 1, alike = state_sharded() ? 1 : 0;  // the first one gathers what replicas updated
    const auto add = [&](int from, int to, bool is_first, bool is_last) {
      if (from <= to) program_.nodes.push_back(loop(Loop::Index::microbatch, from, to, microbatch(is_first, is_last)));
    };
    if (last > 0) add(0, alike - 1, true, false);
    add(alike, last - 1, false, false);
    add(last, last, state_sharded() && last == 0, true);
    epilogue();
    return std::move(program_);
  }

 private:
  static Loop loop(Loop::Index index, int first, int last, Nodes body) {
    return {index, first, last, first > last, std::move(body)};
  }

  /// Neighbouring layers with the same recompute: one loop.
  struct Alike {
    int first, last;
    LayerRecompute again;
  };
  LayerRecompute again(int layer) const { return layout_.recompute.of(layer, model_.layers); }
  std::vector<Alike> alike(int first, int last) const {
    std::vector<Alike> out;
    for (int layer = first; layer <= last; ++layer) {
      const LayerRecompute here = again(layer);
      if (!out.empty() && out.back().again == here) out.back().last = layer;
      else out.push_back({layer, layer, here});
    }
    return out;
  }

  // ---- memory held all the time ----
  void add_resident() {
    const double states = over_groups(state_elements), shards = over_groups(shard_elements);
    program_.resident.push_back({"masters", fixed(4 * states)});
    program_.resident.push_back({"moments", fixed(8 * states)});
    program_.resident.push_back({"gradient shards", fixed(4 * shards)});
    if (state_sharded()) program_.resident.push_back({"weight shards", fixed(sizes_.word * shards)});
    const double block = padded(Group::dense) + padded(Group::expert);
    program_.resident.push_back({"gathered slots", fixed(as_double(weight_slots(model_, layout_)) * block * sizes_.word)});
    program_.resident.push_back({"gradient slots", fixed(as_double(gradient_slots(model_, layout_)) * block * 4)});
    if (!layout_.reduce_every_microbatch)
      program_.resident.push_back({"outer gradients", fixed((padded(Group::embedding) + padded(Group::head)) * 4)});
    program_.resident.push_back({"rope table", fixed(as_double(options_.seq * model_.head_dim) * 4)});
  }

  /// Sum of a size over all groups of this rank.
  double over_groups(std::int64_t (*elements)(const ModelSpec&, const Layout&, Group)) const {
    return as_double(elements(model_, layout_, Group::embedding) + elements(model_, layout_, Group::head) +
                     model_.layers * (elements(model_, layout_, Group::dense) + elements(model_, layout_, Group::expert)));
  }

  /// Layer loop body of the forward pass; prefetches the next layer, or the head from the last one.
  Nodes forward_layer(bool is_last, bool first_microbatch, const LayerRecompute& again) const {
    Nodes out;
    if (!is_last) {
      for (Group group : {Group::dense, Group::expert})
        out.push_back(groups_.unshard(group, Direction::forward, {{"combine.fwd", -1}}, 1, first_microbatch));
      if (first_microbatch)
        for (Group group : {Group::dense, Group::expert}) groups_.add_refresh(out, group, 2);
    } else {
      groups_.add_head_unshard(out, first_microbatch);
    }
    blocks_.add_block(out, Direction::forward, again);
    return out;
  }

  /// Layer loop body of the backward pass. The last layer still has its weights from the forward pass.
  Nodes backward_layer(bool is_last, bool is_first, bool last_microbatch, const LayerRecompute& again) const {
    Nodes out;
    const bool local = layout_.expert == 1, reduces = layout_.reduce_every_microbatch || last_microbatch;
    const bool gathers = layout_.reshard_after_forward;
    if (is_last || !gathers)  // names the gathered weights as the backward ops know them; nothing moves
      for (Group group : {Group::dense, Group::expert}) {
        Op kept = op(unshard_name(group, Direction::backward), Action::unshard, Direction::backward, group);
        kept.kind = OpKind::host;
        kept.lane = Lane::host;
        kept.waits = {{unshard_name(group, Direction::forward)}};
        out.push_back(kept);
      }
    if (!is_first && gathers)
      for (Group group : {Group::dense, Group::expert})
        out.push_back(groups_.unshard(group, Direction::backward, {{is_last ? "combine.fwd" : "attn.bwd", is_last ? 0 : 1}}, -1));
    if (again.block) blocks_.add_block(out, Direction::recompute, again);
    out.push_back(blocks_.combine(Direction::backward, again));
    if (!local) {
      Op collect = blocks_.all_to_all("collect", Action::collect, Direction::backward, fixed(sizes_.routed), {{"combine.bwd"}});
      collect.allocates = {{"gco", sizes_.row_block}};
      collect.frees = {{"go"}};
      out.push_back(collect);
    }
    if (again.experts) out.push_back(blocks_.experts(Direction::recompute, again));
    out.push_back(blocks_.experts(Direction::backward, again));
    if (reduces) {
      if (is_last) groups_.add_accumulate(out, Group::head, 0, last_microbatch);
      else groups_.add_accumulate(out, Group::expert, 1, last_microbatch);
      groups_.add_reduce(out, Group::expert, {{"experts.bwd"}});
    }
    if (!local) {
      Op dispatch = blocks_.all_to_all("dispatch", Action::dispatch, Direction::backward, sizes_.row_block, {{"experts.bwd"}});
      dispatch.allocates = {{"gy", fixed(sizes_.routed)}};
      dispatch.frees = {{"gre"}};
      out.push_back(dispatch);
    }
    if (again.attention) out.push_back(blocks_.attention(Direction::recompute, again));
    out.push_back(blocks_.attention(Direction::backward, again));
    if (!reduces) return out;
    if (!is_last) groups_.add_accumulate(out, Group::dense, 1, last_microbatch);
    groups_.add_reduce(out, Group::dense, {{"attn.bwd"}});
    return out;
  }

  Nodes microbatch(bool first_microbatch, bool last_microbatch) const {
    Nodes out;
    const int last = program_.layers - 1;
    const bool reduces = layout_.reduce_every_microbatch || last_microbatch;
    Op load = op("data", Action::load_batch);
    load.kind = OpKind::host;
    load.lane = Lane::host;
    out.push_back(load);
    if (first_microbatch) groups_.add_first_refresh(out);
    // A later microbatch gathers into slots that the one before has read to its end.
    Op embedding = groups_.unshard(Group::embedding, Direction::forward, {{"embed.bwd", 0, -1, -1}}, 0, first_microbatch);
    embedding.allocates.push_back({"embedding.weights", fixed(padded(Group::embedding) * sizes_.word)});
    out.push_back(embedding);
    const std::vector<Ref> free{{"attn.bwd", 0, 0, -1}};
    Nodes first{groups_.unshard(Group::dense, Direction::forward, free, 0, first_microbatch),
                groups_.unshard(Group::expert, Direction::forward, free, 0, first_microbatch)};
    out.push_back(loop(Loop::Index::layer, 0, 0, first));
    out.push_back(blocks_.embed_forward());

    for (const Alike& run : alike(0, last - 1)) out.push_back(loop(Loop::Index::layer, run.first, run.last, forward_layer(false, first_microbatch, run.again)));
    out.push_back(loop(Loop::Index::layer, last, last, forward_layer(true, first_microbatch, again(last))));
    out.push_back(blocks_.head());
    if (reduces) groups_.add_reduce(out, Group::head, {{"head"}});
    out.push_back(loop(Loop::Index::layer, last, last, backward_layer(true, last == 0, last_microbatch, again(last))));
    const std::vector<Alike> middle = alike(1, last - 1);
    for (auto run = middle.rbegin(); run != middle.rend(); ++run)
      out.push_back(loop(Loop::Index::layer, run->last, run->first, backward_layer(false, false, last_microbatch, run->again)));
    if (last > 0) out.push_back(loop(Loop::Index::layer, 0, 0, backward_layer(false, true, last_microbatch, again(0))));

    out.push_back(blocks_.embed_backward());
    if (!reduces) return out;
    groups_.add_reduce(out, Group::embedding, {{"embed.bwd"}});
    Nodes rest;
    groups_.add_accumulate(rest, Group::expert, 0, last_microbatch);
    groups_.add_accumulate(rest, Group::dense, 0, last_microbatch);
    out.push_back(loop(Loop::Index::layer, 0, 0, rest));
    groups_.add_accumulate(out, Group::embedding, 0, last_microbatch);
    return out;
  }

  void epilogue() {
    const double states = over_groups(state_elements);
    Op norm = op("norm", Action::gradient_norm);
    norm.work = {make_item(Kernel::copy, Pass::forward, Precision::fp32, fixed(states))};
    norm.waits = {{groups_.last_gradient(Group::embedding)}};
    for (int layer = 0; layer < program_.layers; ++layer)
      for (Group group : {Group::dense, Group::expert}) norm.waits.push_back({groups_.last_gradient(group), 0, layer});
    norm.waits.push_back({groups_.last_gradient(Group::head)});
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
    if (layout_.world() > 1) {
      Op loss = op("loss.reduce", Action::reduce_loss);
      collective(loss, OpKind::all_reduce, Axis::world, fixed(12));
      loss.waits = {{"optimizer"}};
      program_.nodes.push_back(loss);
    }
  }
  GroupOps groups_;
  BlockOps blocks_;
  Program program_;
};

}  // namespace

ProgramOptions program_options(const RunSpec& run) {
  ProgramOptions options;
  options.seq = run.seq;
  options.microbatches = run.microbatches();
  options.precision = run.precision;
  options.transport_scratch = true;
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

std::int64_t group_elements(const ModelSpec& model, const Layout& layout, Group group) {
  switch (group) {
    case Group::dense: return model.dense_parameters(0);
    case Group::expert: return layout.slots_per_rank(model) * model.expert_parameters();
    case Group::embedding: return model.embedding_parameters();
    case Group::head: return model.head_parameters();
    case Group::none: return 0;
  }
  return 0;
}

std::int64_t shard_elements(const ModelSpec& model, const Layout& layout, Group group) {
  return state_elements(model, layout, group) * layout.optimizer_shard;
}

std::int64_t state_elements(const ModelSpec& model, const Layout& layout, Group group) {
  const std::int64_t ranks = Mesh(layout).size(shard_axis(group)) * layout.optimizer_shard;
  return (group_elements(model, layout, group) + ranks - 1) / ranks;
}

ProgramSet build_program_set(const ModelSpec& model, const Layout& layout, const ProgramOptions& options) {
  layout.check(model, "layout " + layout.name());
  if (model.experts == 0 || model.dense_layers > 0 || model.shared_ffn > 0 || model.tied || model.attention.mla.on())
    throw_error(Code::usage, "model {}: a step program needs experts in every layer, and neither shared experts, tied embeddings nor latent attention",
                model.name);
  ProgramSet set;
  set.programs.push_back(Builder(model, layout, options).build());
  set.class_of_rank.assign(static_cast<std::size_t>(layout.world()), 0);
  return set;
}

}  // namespace wt
