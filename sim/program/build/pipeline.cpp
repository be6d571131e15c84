#include "sim/program/build/pipeline.hpp"

#include <map>

#include "sim/program/build/overlapped_passes.hpp"
#include "sim/program/build/schedule.hpp"
#include "sim/program/build/split_backward.hpp"
#include "sim/program/build/step_builder.hpp"

namespace wt {
namespace {

struct Chunk {
  int first, last;
};

/// The stage's chunks, in the model's order.
std::vector<Chunk> stage_chunks(const ModelSpec& model, const Layout& layout, std::int64_t stage) {
  std::vector<Chunk> out;
  std::vector<std::int64_t> layers = layout.layers_of_chunks(model.layers);
  layers.back() += model.mtp_layers;  // behind the last chunk
  std::int64_t chunk = -1, layer = 0;
  for (const std::int64_t count : layers) {
    ++chunk;
    if (chunk % layout.pipeline == stage) out.push_back({static_cast<int>(layer), static_cast<int>(layer + count) - 1});
    layer += count;
  }
  return out;
}

std::vector<int> layers_of(const std::vector<Chunk>& chunks) {
  std::vector<int> out;
  for (const auto& [first, last] : chunks)
    for (int layer = first; layer <= last; ++layer) out.push_back(layer);
  return out;
}

class StageBuilder : private StepBuilder {
 public:
  /// `copied`: the first stage's embedding and the last one's head are one matrix, or modules of multi-token prediction
  /// have a copy of the embedding.
  StageBuilder(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t stage,
               std::int64_t expert_rank, bool copied)
      : StepBuilder(model, layout, options, expert_rank, layers_of(stage_chunks(model, layout, stage))),
        stage_(stage),
        chunks_(stage_chunks(model, layout, stage)),
        copied_(copied) {}

  Program build() {
    add_resident();
    add_weights();
    const std::vector<StageWork> schedule = stage_schedule(layout_, stage_, options_.microbatches);
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      Loop pass = pass_of(schedule[i]);
      if (schedule[i].overlapped) {
        for (Node& piece : overlapped(pass, pass_of(schedule[++i]))) program_.nodes.push_back(std::move(piece));
      } else {
        program_.nodes.emplace_back(std::move(pass));
      }
    }
    add_sent();
    if (copied_ && (has_embedding() || has_head())) add_copy_sum();
    add_epilogue();
    return std::move(program_);
  }

 private:
  bool ends(int microbatch) const { return microbatch + 1 == program_.microbatches; }
  bool split() const { return layout_.schedule == Schedule::zero_bubble; }
  Loop pass_of(const StageWork& work) {
    Nodes body;
    const auto [first, last] = chunks_[static_cast<std::size_t>(work.chunk)];
    switch (work.pass) {
      case StageWork::Pass::forward:
        add_forward(body, work.microbatch, first, last);
        break;
      case StageWork::Pass::backward:
        add_backward(body, work.microbatch, first, last);
        break;
      case StageWork::Pass::weights:
        add_weight_gradients(body, work.microbatch, first, last);
        break;
    }
    return loop(Loop::Index::microbatch, work.microbatch, work.microbatch, std::move(body));
  }

  /// Ops of one layer.
  void at(Nodes& out, int layer, Nodes body) const {
    out.push_back(loop(Loop::Index::layer, layer, layer, std::move(body)));
  }

  void add_resident() {
    const auto gathered = [](const ModelSpec& m, const Layout& l, Group group, std::int64_t layer) {
      return shard_elements(m, l, group, layer) * Mesh(l).size(shard_axis(group));
    };
    add_states(over_groups(state_elements));
    const bool gathered_anew = !options_.memory.resident_weights;  // FSDP's: given back at the end of the step
    program_.resident.push_back({"weights", fixed(sizes_.word * over_groups(gathered)), gathered_anew});
    program_.resident.push_back(
        {"gradients", fixed(options_.memory.gradient_bytes * over_groups(gathered)), gathered_anew});
    add_framework_buffers();
    add_tables();
  }

  /// Before the first microbatch: weights from the ranks that updated them, layer after layer.
  void add_weights() {
    const auto add = [&](Nodes& out, const GroupOps& ops, Group group) {
      if (state_sharded()) ops.add_refresh(out, group, 0);
      out.push_back(ops.unshard(group, Direction::forward, {}, 0, state_sharded()));
    };
    if (has_embedding()) add(program_.nodes, groups(), Group::embedding);
    for (const int layer : layers_) {
      Nodes body;
      for (Group group : block_groups(layer)) {
        add(body, groups(layer), group);
        // The same weights, under the name by which backward ops know them.
        Op kept = op(unshard_name(group, Direction::backward), Action::unshard, Direction::backward, group);
        kept.kind = OpKind::host;
        kept.lane = Lane::host;
        body.push_back(kept);
      }
      at(program_.nodes, layer, std::move(body));
    }
    if (has_head()) add(program_.nodes, groups(), Group::head);
  }

  /// A message between neighbouring stages.
  Op message(OpKind kind, Direction direction) const {
    const bool sends = kind == OpKind::send, forward = direction == Direction::forward;
    Op o = op((sends ? "send" : "receive") + suffix(direction), Action::exchange_stages, direction);
    o.kind = kind;
    o.lane = sends ? (forward ? Lane::send_activations : Lane::send_gradients)
                   : (forward ? Lane::receive_activations : Lane::receive_gradients);
    o.collective = {Axis::pipeline, fixed(sizes_.x), {}, sends == forward ? 1 : -1};
    return o;
  }

  /// Receives, and lets the compute lane wait for it.
  void add_receive(Nodes& out, Direction direction, int layer) const {
    const bool forward = direction == Direction::forward;
    Op receive = message(OpKind::receive, direction);
    receive.layer_delta = forward ? -1 : 1;
    receive.allocates = {{forward ? "block.output" : "block.input.gradient", fixed(sizes_.x)}};
    Op arrived = op("arrived" + suffix(direction), Action::exchange_stages, direction);
    arrived.kind = OpKind::host;
    arrived.waits = {{receive.name, receive.layer_delta}};
    at(out, layer, {receive, arrived});
  }

  /// Behind the message before, which thereby gives its buffer back.
  void add_send(Nodes& out, Direction direction, int microbatch, int layer) {
    const bool forward = direction == Direction::forward;
    Op send = message(OpKind::send, direction);
    send.waits = {{forward ? blocks(layer).last(direction) : layer_end()}};
    if (const auto before = sent_.find(direction); before != sent_.end())
      send.waits.push_back({send.name, 0, before->second.layer, before->second.microbatch - microbatch});
    sent_[direction] = {microbatch, layer};
    send.frees = {{forward ? "block.output" : "block.input.gradient"}};
    at(out, layer, {send});
  }

  /// The last messages, of the last microbatch, have left.
  void add_sent() {
    for (const auto& [direction, message] : sent_) {
      Op sent = op("sent" + suffix(direction), Action::exchange_stages, direction);
      sent.kind = OpKind::host;
      sent.lane = Lane::host;
      sent.waits = {{"send" + suffix(direction), 0, message.layer}};
      program_.nodes.push_back(sent);
    }
  }

  void add_forward(Nodes& out, int microbatch, int first, int last) {
    if (first == 0 || last == program_.layers - 1) {
      Op load = op("data", Action::load_batch);
      load.kind = OpKind::host;
      load.lane = Lane::host;
      out.push_back(load);
    }
    if (first == 0)
      blocks(0).add_embed(out, Direction::forward);
    else
      add_receive(out, Direction::forward, first);
    for (const LayerRange& run : equal_layers(first, last)) {
      Nodes body;
      blocks(run.first).add_block(body, Direction::forward, recompute_of(run.first));
      out.push_back(loop(Loop::Index::layer, run.first, run.last, std::move(body)));
    }
    if (last < program_.layers - 1) add_send(out, Direction::forward, microbatch, last);
  }

  void add_backward(Nodes& out, int microbatch, int first, int last) {
    const bool last_microbatch = ends(microbatch);
    if (last < program_.layers - 1) {
      add_receive(out, Direction::backward, last);
    } else {
      blocks(last).add_head(out);
      if (last_microbatch && !model_.tied) add_reduced(out, groups(), Group::head, "head");
    }
    const std::vector<LayerRange> runs = equal_layers(first, last);
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      const int layer = run->last;
      const LayerRecompute recompute = recompute_of(layer);
      Nodes body;
      if (recompute.block) blocks(layer).add_block(body, Direction::recompute, recompute);
      blocks(layer).add_ffn_backward(body, recompute);
      blocks(layer).add_dispatch_backward(body);
      if (recompute.attention) blocks(layer).add_attention(body, Direction::recompute, recompute);
      blocks(layer).add_attention(body, Direction::backward, recompute);
      if (split())
        split_backward(body, blocks(layer).sizes());
      else if (last_microbatch)
        add_layer_reduced(body, layer);
      out.push_back(loop(Loop::Index::layer, layer, run->first, std::move(body)));
    }
    if (first > 0) return add_send(out, Direction::backward, microbatch, first);
    blocks(0).add_embed(out, Direction::backward);
    if (last_microbatch) add_reduced(out, groups(), model_.tied ? Group::head : Group::embedding, "embed.bwd");
  }

  void add_weight_gradients(Nodes& out, int microbatch, int first, int last) const {
    const std::vector<LayerRange> runs = equal_layers(first, last);
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      const LayerRecompute recompute = recompute_of(run->last);
      Nodes body;
      blocks(run->last).add_ffn_backward(body, recompute);
      blocks(run->last).add_attention(body, Direction::backward, recompute);
      body = {weight_gradients(body)};
      if (ends(microbatch)) add_layer_reduced(body, run->last);
      out.push_back(loop(Loop::Index::layer, run->last, run->first, std::move(body)));
    }
  }

  void add_layer_reduced(Nodes& out, int layer) const {
    const GroupOps ops = groups(layer);
    const std::string weights = split() ? kWeightGradients : "";
    if (model_.moe(layer)) {
      ops.add_copy_exchange(out);
      ops.add_copy_sum(out);
      add_reduced(out, ops, Group::expert, copies() ? "copies.sum" : split() ? weights : "experts.bwd");
    }
    add_reduced(out, ops, Group::dense, split() ? weights : layer_end());
    if (layer == model_.layers && layers_.front() > 0 && has_embedding())
      add_reduced(out, ops, Group::embedding, split() ? weights : layer_end());
  }

  /// A group's gradients over shards and replicas. They lie in one buffer of the step and are summed in place.
  void add_reduced(Nodes& out, const GroupOps& ops, Group group, const std::string& after) const {
    Nodes added;
    ops.add_reduce(added, group, {{after}});
    ops.add_accumulate(added, group, 0, true);
    for (Node& node : added) {
      Op& o = std::get<Op>(node);
      o.allocates.clear();
      if (o.action == Action::accumulate) {
        o.work.clear();
        o.kind = OpKind::host;
        o.waits = {{sharded(group) ? to_string(group) + ".reduce" : after}};
        o.lane = Lane::host;
      }
      out.push_back(std::move(o));
    }
  }

  /// Both stages end with the sum of their gradients of that matrix.
  void add_copy_sum() {
    const Group group = has_embedding() ? Group::embedding : Group::head;
    const Amount matrix = fixed(as_double(state(Group::embedding)));  // without the head's norm
    for (const OpKind kind : {OpKind::send, OpKind::receive}) {
      Op o = message(kind, Direction::recompute);  // a channel of its own
      o.name = kind == OpKind::send ? "tied.send" : "tied.receive";
      o.group = group;
      o.collective = {Axis::pipeline, {4 * matrix.fixed, 0}, {}, layers_.front() == 0 ? -1 : 1};
      if (kind == OpKind::send)
        o.waits = {{groups().last_gradient(group)}};
      else
        o.allocates = {{"tied.gradient", o.collective.bytes}};
      program_.nodes.push_back(o);
    }
    Op add = op("tied.sum", Action::accumulate, Direction::backward, group);
    add.work = {make_item(Kernel::add, Pass::forward, Precision::fp32, matrix, {1})};
    add.waits = {{"tied.send"}, {"tied.receive"}};
    add.frees = {{"tied.gradient"}};
    program_.nodes.push_back(add);
  }

  struct Sent {
    int microbatch, layer;
  };
  std::int64_t stage_;
  std::vector<Chunk> chunks_;
  bool copied_;
  std::map<Direction, Sent> sent_;  ///< the last message each way
};

}  // namespace

Program stage_program(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t stage,
                      std::int64_t expert_rank) {
  if (layout.pipeline == 1) return StageBuilder(model, layout, options, stage, expert_rank, false).build();
  ModelSpec own = model;  // a tied embedding has a copy on the first stage
  own.tied = false;
  return StageBuilder(own, layout, options, stage, expert_rank, model.tied || model.mtp_layers > 0).build();
}

}  // namespace wt
