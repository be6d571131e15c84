#include "sim/program/build.hpp"

#include "sim/program/sizes.hpp"

namespace wt {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }
Amount fixed(double bytes) { return {bytes, 0}; }
Amount sum(const Amount& a, const Amount& b) { return {a.fixed + b.fixed, a.per_row + b.per_row}; }
Amount difference(const Amount& a, const Amount& b) { return {a.fixed - b.fixed, a.per_row - b.per_row}; }

std::string suffix(Direction direction) {
  return direction == Direction::forward ? ".fwd" : direction == Direction::recompute ? ".rec" : ".bwd";
}

/// Builds the program of one rank class. Layer loops are peeled at the ends because the first and the last layer have
/// one neighbour less to prefetch.
class Builder {
 public:
  Builder(const ModelSpec& model, const Layout& layout, const ProgramOptions& options)
      : model_(model), layout_(layout), options_(options), sizes_(model, layout, options) {}

  Program build() {
    program_.layers = static_cast<int>(model_.layers);
    program_.microbatches = static_cast<int>(options_.microbatches);
    add_resident();
    const int last = program_.microbatches - 1;
    if (last > 0) program_.nodes.push_back(loop(Loop::Index::microbatch, 0, last - 1, microbatch(false)));
    program_.nodes.push_back(loop(Loop::Index::microbatch, last, last, microbatch(true)));
    epilogue();
    return std::move(program_);
  }

 private:
  using Nodes = std::vector<Node>;

  static Loop loop(Loop::Index index, int first, int last, Nodes body) {
    return {index, first, last, first > last, std::move(body)};
  }

  // ---- memory held all the time ----
  void add_resident() {
    double states = 0;
    for (Group group : {Group::embedding, Group::head}) states += as_double(shard_elements(model_, layout_, group));
    for (Group group : {Group::dense, Group::expert})
      states += as_double(model_.layers * shard_elements(model_, layout_, group));
    program_.resident.push_back({"masters", fixed(4 * states)});
    program_.resident.push_back({"moments", fixed(8 * states)});
    program_.resident.push_back({"gradient shards", fixed(4 * states)});
    const int slots = model_.layers > 1 ? 2 : 1;
    const double block = padded(Group::dense) + padded(Group::expert);
    program_.resident.push_back({"gathered slots", fixed(slots * block * sizes_.word)});
    program_.resident.push_back({"gradient slots", fixed(slots * block * 4)});
    program_.resident.push_back({"rope table", fixed(as_double(options_.seq * model_.head_dim) * 4)});
  }

  double padded(Group group) const {
    return as_double(shard_elements(model_, layout_, group) * Mesh(layout_).size(shard_axis(group)));
  }
  bool sharded(Group group) const { return Mesh(layout_).size(shard_axis(group)) > 1; }

  // ---- op helpers ----
  Op op(std::string name, Action action, Direction direction = Direction::forward, Group group = Group::none) const {
    Op o;
    o.name = std::move(name);
    o.action = action;
    o.direction = direction;
    o.group = group;
    return o;
  }
  WorkItem item(Kernel kernel, Direction direction, Amount rows, std::array<std::int64_t, 4> dims = {}) const {
    return make_item(kernel, direction == Direction::backward ? Pass::backward : Pass::forward, options_.precision, rows, dims);
  }
  static void collective(Op& o, OpKind kind, Axis axis, Amount bytes) {
    o.kind = kind;
    o.lane = kind == OpKind::all_gather       ? Lane::all_gather
             : kind == OpKind::reduce_scatter ? Lane::reduce_scatter
             : kind == OpKind::all_reduce     ? Lane::all_reduce
                                              : Lane::all_to_all;
    o.collective = {axis, bytes};
  }

  /// Gather of a group's weights: an all-gather over its shard axis, or a local cast where that axis has one rank. Both
  /// begin with the cast of the own shard into the buffer.
  Op unshard(Group group, Direction direction, std::vector<Ref> waits, int layer_delta = 0) const {
    Op o = op(to_string(group) + ".unshard" + suffix(direction), Action::unshard, direction, group);
    o.kind = OpKind::copy;
    if (sharded(group)) {
      collective(o, OpKind::all_gather, shard_axis(group), fixed(padded(group) * sizes_.word));
      if (options_.transport_scratch) {
        o.allocates = {{o.name + ".scratch", o.collective.bytes}};
        o.frees = {{o.name + ".scratch", layer_delta}};
      }
    }
    o.work = {make_item(Kernel::copy, Pass::forward, options_.precision, fixed(as_double(shard_elements(model_, layout_, group))))};
    o.waits = std::move(waits);
    o.layer_delta = layer_delta;
    return o;
  }
  void add_reduce(Nodes& out, Group group, std::vector<Ref> waits) const {
    if (!sharded(group)) return;
    Op o = op(to_string(group) + ".reduce", Action::reduce_gradients, Direction::backward, group);
    collective(o, OpKind::reduce_scatter, shard_axis(group), fixed(padded(group) * 4));
    o.waits = std::move(waits);
    o.allocates = {{to_string(group) + ".reduced", fixed(4 * as_double(shard_elements(model_, layout_, group)))}};
    if (options_.transport_scratch) o.allocates.push_back({to_string(group) + ".scratch", fixed(padded(group) * 4)});
    out.push_back(o);
  }
  /// Reduced gradients of `layer_delta` layers away into their shard; then, once a step, the sum over replicas.
  void add_accumulate(Nodes& out, Group group, int layer_delta, bool last_microbatch, int layer = -1) const {
    const std::string name = to_string(group);
    Op o = op(name + ".accumulate", Action::accumulate, Direction::backward, group);
    o.layer_delta = layer_delta;
    o.work = {make_item(Kernel::add, Pass::forward, Precision::fp32, fixed(as_double(shard_elements(model_, layout_, group))), {1})};
    o.waits = {{sharded(group) ? name + ".reduce" : gradient_source(group), layer_delta, layer}};
    if (sharded(group)) o.frees = {{name + ".reduced", layer_delta}, {name + ".scratch", layer_delta}};
    if (group == Group::embedding || group == Group::head) o.frees.push_back({name + ".gradient"});
    out.push_back(o);
    if (!last_microbatch || layout_.replicate == 1) return;
    Op r = op(name + ".replicas", Action::reduce_replicas, Direction::backward, group);
    r.layer_delta = layer_delta;
    collective(r, OpKind::all_reduce, Axis::replicate, fixed(4 * as_double(shard_elements(model_, layout_, group))));
    r.waits = {{name + ".accumulate", layer_delta, layer}};
    out.push_back(r);
  }
  static std::string gradient_source(Group group) {
    switch (group) {
      case Group::embedding: return "embed.bwd";
      case Group::head: return "head";
      case Group::dense: return "attn.bwd";
      default: return "experts.bwd";
    }
  }

  // ---- segments ----
  Op attention(Direction direction) const {
    const auto& m = model_;
    const Amount tokens = fixed(sizes_.tokens);
    Op o = op("attn" + suffix(direction), Action::attention, direction, Group::dense);
    o.work = {item(Kernel::rmsnorm, direction, tokens, {m.d_model}),
              item(Kernel::gemm, direction, tokens, {(m.heads + 2 * m.kv_heads) * m.head_dim, m.d_model}),
              item(Kernel::rope, direction, tokens, {(m.heads + m.kv_heads) * m.head_dim}),
              item(Kernel::attention, direction, fixed(as_double(layout_.microbatch)), {options_.seq, m.heads, m.kv_heads, m.head_dim}),
              item(Kernel::gemm, direction, tokens, {m.d_model, m.heads * m.head_dim}),
              item(Kernel::add, direction, tokens, {m.d_model}),
              item(Kernel::rmsnorm, direction, tokens, {m.d_model}),
              make_item(Kernel::gemm, direction == Direction::backward ? Pass::backward : Pass::forward, Precision::fp32, tokens, {m.experts, m.d_model}),
              item(Kernel::router, direction, tokens, {m.experts, m.top_k}),
              item(Kernel::permute, direction, fixed(sizes_.tokens * as_double(m.top_k)), {m.d_model})};
    const bool local = layout_.expert == 1;
    if (direction == Direction::backward) {
      o.waits = {{local ? "experts.bwd" : "dispatch.bwd"}, {unshard_name(Group::dense, direction)}};
      o.allocates = {{"gx", fixed(sizes_.x)}};
      o.transient = {fixed(2 * sizes_.x + sizes_.qkv + sizes_.largest_dense_weight)};
      // Layer 0's input is the embedding's output: a buffer without a layer, found where "out" of layer -1 is not.
      o.frees = {{"attn.saved"}, {"routing"}, {"row.orders"}, {"y"}, {"gy"}, {"gx", 1}, {"out", -1}};
    } else {
      o.waits = {{unshard_name(Group::dense, direction)}};
      o.allocates = {{"attn.saved", fixed(sizes_.attention)}, {"y", fixed(sizes_.routed)}};
      if (direction == Direction::forward) o.allocates.push_back({"routing", fixed(sizes_.routing)});
      o.transient = {fixed(sizes_.qkv - sizes_.routed)};
    }
    return o;
  }

  Op experts(Direction direction) const {
    const auto& m = model_;
    const std::int64_t local_experts = m.experts / layout_.expert;
    const Amount rows = sizes_.rows;
    Op o = op("experts" + suffix(direction), Action::experts, direction, Group::expert);
    o.work = {item(Kernel::grouped_gemm, direction, rows, {2 * m.ffn, m.d_model, local_experts}),
              item(Kernel::swiglu, direction, rows, {m.ffn}),
              item(Kernel::grouped_gemm, direction, rows, {m.d_model, m.ffn, local_experts})};
    const bool local = layout_.expert == 1;
    if (!local) {
      o.work.push_back(item(Kernel::permute, direction, rows, {m.d_model}));
      o.work.push_back(item(Kernel::permute, direction, rows, {m.d_model}));
    }
    o.waits = {{unshard_name(Group::expert, direction)}};
    if (direction == Direction::backward) {
      o.waits.push_back({local ? "combine.bwd" : "collect.bwd"});
      o.allocates = {{"gre", sizes_.row_block}};
      // Through the down projection, through SwiGLU, through gate and up; what each has used is given back after it.
      // The CPU's bf16 product copies both of its inputs first (measured; transport_scratch marks that machine).
      const bool copies = options_.transport_scratch && options_.precision == Precision::bf16;
      const Amount inputs = copies ? sum(sizes_.activated, sizes_.row_block) : Amount{};
      o.transient = {difference(sum(sum(sizes_.activated, inputs), fixed(sizes_.expert_down_weight)), sizes_.row_block),
                     difference(sizes_.gate_up, sizes_.row_block),
                     difference(fixed(sizes_.expert_gate_up_weight), sizes_.activated)};
      o.frees = {{"experts.saved"}, {"expert.rows"}, {"go"}, {"gco"}};
    } else {
      o.waits.push_back({(local ? "attn" : "dispatch") + suffix(direction)});
      o.allocates = {{"experts.saved", sum(sizes_.row_block, sum(sizes_.gate_up, sizes_.activated))}};
      if (!local) {  // rows sorted by expert, and outputs sorted back for sending
        o.allocates.push_back({"expert.rows", sizes_.row_block});
        o.allocates.push_back({"eo", sizes_.row_block});
      }
      o.frees = {{"recv"}};
    }
    return o;
  }

  Op combine(Direction direction) const {
    const Amount routed_rows = fixed(sizes_.tokens * as_double(model_.top_k));
    Op o = op("combine" + suffix(direction), Action::combine, direction);
    o.work = {item(Kernel::permute, direction, routed_rows, {model_.d_model}),
              item(Kernel::add, direction, fixed(sizes_.tokens), {model_.d_model})};
    if (direction == Direction::backward) {
      o.allocates = {{"go", fixed(sizes_.routed)}};
      o.frees = {{"co"}};
    } else {
      o.waits = {{(layout_.expert == 1 ? "experts" : "collect") + suffix(direction)}};
      if (direction == Direction::forward) o.allocates = {{"out", fixed(sizes_.x)}};
    }
    return o;
  }

  Op all_to_all(const std::string& name, Action action, Direction direction, Amount sent, std::vector<Ref> waits) const {
    Op o = op(name + suffix(direction), action, direction);
    collective(o, OpKind::all_to_all, Axis::expert, sent);
    o.waits = std::move(waits);
    return o;
  }

  /// attention .. combine of one layer, with the exchanges where experts live elsewhere.
  void add_block(Nodes& out, Direction direction) const {
    const bool local = layout_.expert == 1;
    const std::string s = suffix(direction);
    out.push_back(attention(direction));
    if (!local) {
      if (direction == Direction::forward)
        out.push_back(all_to_all("counts", Action::exchange_counts, direction, fixed(8 * as_double(model_.experts)), {{"attn" + s}}));
      Op dispatch = all_to_all("dispatch", Action::dispatch, direction, fixed(sizes_.routed),
                               {{direction == Direction::forward ? "counts" + s : "attn" + s}});
      dispatch.allocates = {{"recv", sizes_.row_block}};
      if (direction == Direction::forward) dispatch.allocates.push_back({"row.orders", sizes_.row_orders});
      out.push_back(dispatch);
    }
    out.push_back(experts(direction));
    if (!local) {
      Op collect = all_to_all("collect", Action::collect, direction, sizes_.row_block, {{"experts" + s}});
      collect.allocates = {{"co", fixed(sizes_.routed)}};
      collect.frees = {{"eo"}};
      out.push_back(collect);
    }
    out.push_back(combine(direction));
  }

  std::string unshard_name(Group group, Direction direction) const {
    const bool backward = direction != Direction::forward;
    return to_string(group) + ".unshard" + (backward ? ".bwd" : ".fwd");
  }

  /// Layer loop body of the forward pass; prefetches the next layer, or the head from the last one.
  Nodes forward_layer(bool is_last) const {
    Nodes out;
    if (!is_last) {
      out.push_back(unshard(Group::dense, Direction::forward, {{"combine.fwd", -1}}, 1));
      out.push_back(unshard(Group::expert, Direction::forward, {{"combine.fwd", -1}}, 1));
    } else {
      add_head_unshard(out);
    }
    add_block(out, Direction::forward);
    if (layout_.recompute == Recompute::block)
      std::get<Op>(out.back()).frees = {{"attn.saved"}, {"y"}, {"experts.saved"}, {"expert.rows"}, {"co"}};
    return out;
  }

  /// Layer loop body of the backward pass. The last layer still has its weights from the forward pass.
  Nodes backward_layer(bool is_last, bool is_first, bool last_microbatch) const {
    Nodes out;
    const bool local = layout_.expert == 1;
    if (is_last)  // names the gathered weights as the backward ops know them; nothing moves
      for (Group group : {Group::dense, Group::expert}) {
        Op kept = op(unshard_name(group, Direction::backward), Action::unshard, Direction::backward, group);
        kept.kind = OpKind::host;
        kept.lane = Lane::host;
        kept.waits = {{unshard_name(group, Direction::forward)}};
        out.push_back(kept);
      }
    if (!is_first)
      for (Group group : {Group::dense, Group::expert})
        out.push_back(unshard(group, Direction::backward, {{is_last ? "combine.fwd" : "attn.bwd", is_last ? 0 : 1}}, -1));
    if (layout_.recompute == Recompute::block) add_block(out, Direction::recompute);
    out.push_back(combine(Direction::backward));
    if (!local) {
      Op collect = all_to_all("collect", Action::collect, Direction::backward, fixed(sizes_.routed), {{"combine.bwd"}});
      collect.allocates = {{"gco", sizes_.row_block}};
      collect.frees = {{"go"}};
      out.push_back(collect);
    }
    out.push_back(experts(Direction::backward));
    if (is_last) add_accumulate(out, Group::head, 0, last_microbatch);
    else add_accumulate(out, Group::expert, 1, last_microbatch);
    add_reduce(out, Group::expert, {{"experts.bwd"}});
    if (!local) {
      Op dispatch = all_to_all("dispatch", Action::dispatch, Direction::backward, sizes_.row_block, {{"experts.bwd"}});
      dispatch.allocates = {{"gy", fixed(sizes_.routed)}};
      dispatch.frees = {{"gre"}};
      out.push_back(dispatch);
    }
    Op attn = attention(Direction::backward);
    if (local) attn.frees.push_back({"gre"});
    out.push_back(attn);
    if (!is_last) add_accumulate(out, Group::dense, 1, last_microbatch);
    add_reduce(out, Group::dense, {{"attn.bwd"}});
    return out;
  }

  void add_head_unshard(Nodes& out) const {
    Op o = unshard(Group::head, Direction::forward, {});
    o.allocates.push_back({"head.weights", fixed(padded(Group::head) * sizes_.word)});
    out.push_back(o);
  }

  Nodes microbatch(bool last_microbatch) const {
    Nodes out;
    const int last = program_.layers - 1;
    Op load = op("data", Action::load_batch);
    load.kind = OpKind::host;
    load.lane = Lane::host;
    out.push_back(load);
    // A later microbatch gathers into slots that the one before has read to its end.
    Op embedding = unshard(Group::embedding, Direction::forward, {{"embed.bwd", 0, -1, -1}});
    embedding.allocates.push_back({"embedding.weights", fixed(padded(Group::embedding) * sizes_.word)});
    out.push_back(embedding);
    const std::vector<Ref> free{{"attn.bwd", 0, 0, -1}};
    Nodes first{unshard(Group::dense, Direction::forward, free), unshard(Group::expert, Direction::forward, free)};
    out.push_back(loop(Loop::Index::layer, 0, 0, first));
    Op embed = op("embed.fwd", Action::embed, Direction::forward, Group::embedding);
    embed.work = {item(Kernel::embedding, Direction::forward, fixed(sizes_.tokens), {model_.d_model})};
    embed.waits = {{"embedding.unshard.fwd"}, {"data"}};
    embed.allocates = {{"out", fixed(sizes_.x)}};
    embed.frees = {{"embedding.weights"}};
    out.push_back(embed);

    if (last > 0) out.push_back(loop(Loop::Index::layer, 0, last - 1, forward_layer(false)));
    out.push_back(loop(Loop::Index::layer, last, last, forward_layer(true)));
    out.push_back(head());
    add_reduce(out, Group::head, {{"head"}});
    out.push_back(loop(Loop::Index::layer, last, last, backward_layer(true, last == 0, last_microbatch)));
    if (last > 1) out.push_back(loop(Loop::Index::layer, last - 1, 1, backward_layer(false, false, last_microbatch)));
    if (last > 0) out.push_back(loop(Loop::Index::layer, 0, 0, backward_layer(false, true, last_microbatch)));

    Op back = op("embed.bwd", Action::embed, Direction::backward, Group::embedding);
    back.work = {item(Kernel::embedding, Direction::backward, fixed(sizes_.tokens), {model_.d_model})};
    back.waits = {{"attn.bwd", 0, 0}};
    back.allocates = {{"embedding.gradient", fixed(padded(Group::embedding) * 4)}};
    back.frees = {{"gx", 0, 0}};
    out.push_back(back);
    add_reduce(out, Group::embedding, {{"embed.bwd"}});
    Nodes rest;
    add_accumulate(rest, Group::expert, 0, last_microbatch);
    add_accumulate(rest, Group::dense, 0, last_microbatch);
    out.push_back(loop(Loop::Index::layer, 0, 0, rest));
    add_accumulate(out, Group::embedding, 0, last_microbatch);
    return out;
  }

  Op head() const {
    const auto& m = model_;
    const Amount tokens = fixed(sizes_.tokens);
    Op o = op("head", Action::head_loss, Direction::forward, Group::head);
    for (Direction direction : {Direction::forward, Direction::backward}) {
      o.work.push_back(item(Kernel::rmsnorm, direction, tokens, {m.d_model}));
      o.work.push_back(item(Kernel::gemm, direction, tokens, {m.vocab, m.d_model}));
      o.work.push_back(item(Kernel::cross_entropy, direction, tokens, {m.vocab}));
    }
    o.waits = {{"head.unshard.fwd"}, {"data"}};
    o.allocates = {{"gx", fixed(sizes_.x)}, {"head.gradient", fixed(padded(Group::head) * 4)}};
    // Product, loss and gradient share one buffer of logits; then the gradients of weight and input.
    o.transient = {fixed(sizes_.logits + sizes_.x + std::max(sizes_.x, sizes_.head_weight))};
    o.frees = {{"head.weights"}, {"out", 0, program_.layers - 1}};
    return o;
  }

  void epilogue() {
    double states = 0;
    for (const Buffer& buffer : program_.resident)
      if (buffer.name == "masters") states = buffer.bytes.fixed / 4;
    Op norm = op("norm", Action::gradient_norm);
    norm.work = {make_item(Kernel::copy, Pass::forward, Precision::fp32, fixed(states))};
    norm.waits = {{last_gradient(Group::embedding)}};
    for (int layer = 0; layer < program_.layers; ++layer)
      for (Group group : {Group::dense, Group::expert}) norm.waits.push_back({last_gradient(group), 0, layer});
    norm.waits.push_back({last_gradient(Group::head)});
    program_.nodes.push_back(norm);
    if (layout_.shard > 1) {
      Op reduce = op("norm.reduce", Action::reduce_norm);
      collective(reduce, OpKind::all_reduce, Axis::shard, fixed(4));
      reduce.waits = {{"norm"}};
      program_.nodes.push_back(reduce);
    }
    Op optimizer = op("optimizer", Action::optimizer);
    optimizer.work = {make_item(Kernel::adamw, Pass::forward, Precision::fp32, fixed(states))};
    optimizer.waits = {{layout_.shard > 1 ? "norm.reduce" : "norm"}};
    program_.nodes.push_back(optimizer);
    if (layout_.world() > 1) {
      Op loss = op("loss.reduce", Action::reduce_loss);
      collective(loss, OpKind::all_reduce, Axis::world, fixed(12));
      loss.waits = {{"optimizer"}};
      program_.nodes.push_back(loss);
    }
  }
  std::string last_gradient(Group group) const {
    return to_string(group) + (layout_.replicate > 1 ? ".replicas" : ".accumulate");
  }

  const ModelSpec& model_;
  const Layout& layout_;
  const ProgramOptions& options_;
  Sizes sizes_;
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

Axis shard_axis(Group group) { return group == Group::expert ? Axis::expert_shard : Axis::shard; }

std::int64_t group_elements(const ModelSpec& model, const Layout& layout, Group group) {
  switch (group) {
    case Group::dense: return model.dense_parameters();
    case Group::expert: return model.experts / layout.expert * model.expert_parameters();
    case Group::embedding: return model.embedding_parameters();
    case Group::head: return model.head_parameters();
    case Group::none: return 0;
  }
  return 0;
}

std::int64_t shard_elements(const ModelSpec& model, const Layout& layout, Group group) {
  const std::int64_t ranks = Mesh(layout).size(shard_axis(group));
  return (group_elements(model, layout, group) + ranks - 1) / ranks;
}

ProgramSet build_program_set(const ModelSpec& model, const Layout& layout, const ProgramOptions& options) {
  layout.check(model, "layout " + layout.name());
  ProgramSet set;
  set.programs.push_back(Builder(model, layout, options).build());
  set.class_of_rank.assign(static_cast<std::size_t>(layout.world()), 0);
  return set;
}

}  // namespace wt
