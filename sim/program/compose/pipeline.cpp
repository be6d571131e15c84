#include "sim/program/compose/pipeline.hpp"

#include <algorithm>
#include <compare>
#include <map>

#include "sim/program/compose/overlapped_passes.hpp"
#include "sim/program/compose/split_backward.hpp"
#include "sim/program/compose/stage_messages.hpp"
#include "sim/program/walk.hpp"

namespace wt {
namespace {

class StageBuilder : private StageMessages {
 public:
  /// `copy_stage`: the stage with a copy of the first stage's embedding, for multi-token prediction modules or as the
  /// head's matrix; 0 = none.
  StageBuilder(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t stage,
               std::int64_t expert_rank, std::int64_t copy_stage)
      : StageMessages(model, layout, options, expert_rank, part(model, stage_chunks(model, layout, stage))),
        stage_(stage),
        chunks_(stage_chunks(model, layout, stage)),
        copy_stage_(copy_stage) {}

  std::vector<Buffer> resident() {
    add_resident();
    return std::move(program_.resident);
  }

  Program build() {
    add_resident();
    add_adapter_weights();
    add_weights();
    const std::vector<StageWork> schedule = stage_schedule(layout_, stage_, options_.microbatches);
    for (std::size_t i = 0; i < schedule.size(); ++i)
      if (schedule[i].overlapped)
        add_overlapped(schedule[i], schedule[i + 1]), ++i;
      else
        program_.nodes.emplace_back(of_microbatch(schedule[i], pass_of(schedule[i]).body));
    add_sent();
    if (!frozen() && copy_stage_ > 0 && (stage_ == 0 || stage_ == copy_stage_)) add_copy_sum();
    add_epilogue();
    return std::move(program_);
  }

 private:
  static Part part(const ModelSpec& model, const std::vector<Chunk>& chunks) {
    Part out{{}, false, false};
    for (const Chunk& chunk : chunks) {
      for (int layer = chunk.first; layer <= chunk.last; ++layer) out.layers.push_back(layer);
      out.embedding = out.embedding || chunk.embedding || reads_tokens(model, chunk);
      out.head = out.head || chunk.head;
    }
    return out;
  }
  /// Whether the chunk has modules of multi-token prediction, which look up embeddings.
  static bool reads_tokens(const ModelSpec& model, const Chunk& chunk) {
    return chunk.blocks() && chunk.last >= model.layers;
  }
  bool ends(int microbatch) const { return microbatch + 1 == program_.microbatches; }

  /// Microbatches with equal keys share the ops of a chunk's pass. The key also tells the last microbatch, which
  /// reduces gradients, and the preceding message.
  struct Alike {
    StageWork::Pass pass;
    int chunk;
    bool reduces;
    Behind behind;
    auto operator<=>(const Alike&) const = default;
  };
  struct Made {
    Body body;
    std::vector<Body> pieces;  ///< of `body`, for interleaving with another pass
  };

  Made& pass_of(const StageWork& work) {
    const Chunk& chunk = chunks_[static_cast<std::size_t>(work.chunk)];
    const bool reduces = work.pass != StageWork::Pass::forward && ends(work.microbatch);
    const Alike alike{work.pass, work.chunk, reduces, behind(work, chunk)};
    const auto [made, fresh] = made_.try_emplace(alike);
    if (fresh) made->second.body = made_pass(work, chunk, alike.behind);
    note_sent(work, chunk);
    return made->second;
  }

  Nodes made_pass(const StageWork& work, const Chunk& chunk, const Behind& behind) {
    Nodes body;
    switch (work.pass) {
      case StageWork::Pass::forward:
        add_forward(body, chunk, behind);
        break;
      case StageWork::Pass::backward:
      case StageWork::Pass::inputs:
        add_backward(body, work.microbatch, chunk, work.pass == StageWork::Pass::inputs, behind);
        break;
      case StageWork::Pass::weights:
        add_weight_gradients(body, work.microbatch, chunk);
        break;
    }
    return body;
  }

  static Loop of_microbatch(const StageWork& work, Body body) {
    return {Loop::Index::microbatch, work.microbatch, work.microbatch, false, std::move(body)};
  }

  /// The ops of both passes, each in its own order: alternately one piece of each.
  void add_overlapped(const StageWork& one, const StageWork& other) {
    const auto pieces = [&](const StageWork& work) -> const std::vector<Body>& {
      Made& made = pass_of(work);
      if (made.pieces.empty()) made.pieces = pieces_of(made.body);
      return made.pieces;
    };
    const std::vector<Body>&first = pieces(one), &second = pieces(other);
    for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
      if (i < first.size()) program_.nodes.emplace_back(of_microbatch(one, first[i]));
      if (i < second.size()) program_.nodes.emplace_back(of_microbatch(other, second[i]));
    }
  }

  void add_resident() {
    const auto gathered = [](const ModelSpec& m, const Layout& l, Group group, std::int64_t layer) {
      return shard_elements(m, l, group, layer) * Mesh(l).size(shard_axis(group));
    };
    add_states();
    const bool gathered_anew = !options_.memory.resident_weights;  // as in FSDP, which frees both after the step
    program_.resident.push_back({"weights", fixed(sizes_.word * over_groups(gathered)), gathered_anew});
    if (!frozen())
      program_.resident.push_back(
          {"gradients", fixed(options_.memory.gradient_bytes * over_groups(gathered)), gathered_anew});
    add_framework_buffers();
    add_tables();
  }

  /// Before the first microbatch: gathers weights from the ranks that updated them, layer by layer.
  void add_weights() {
    const auto add = [&](Nodes& out, const GroupOps& ops, Group group) {
      if (state_sharded()) ops.add_refresh(out, group, 0);
      out.push_back(ops.unshard(group, Direction::forward, {}, 0, state_sharded()));
    };
    if (has_embedding()) add(program_.nodes, groups(), Group::embedding);
    for (const int layer : part_.layers) {
      Nodes body;
      for (Group group : block_groups(layer)) {
        add(body, groups(layer), group);
        // The same weights under the name that backward ops use.
        Op kept = op(unshard_name(group, Direction::backward), Action::unshard, Direction::backward, group);
        kept.kind = OpKind::host;
        kept.lane = Lane::host;
        body.push_back(kept);
      }
      at(program_.nodes, layer, std::move(body));
    }
    if (has_head()) add(program_.nodes, groups(), Group::head);
  }

  void add_forward(Nodes& out, const Chunk& chunk, const Behind& behind) const {
    // Once per microbatch, for all chunks of the stage that need it.
    if (chunk.embedding || (!chunks_.front().embedding && (chunk.head || reads_tokens(model_, chunk)))) {
      Op load = op("data", Action::load_batch);
      load.kind = OpKind::host;
      load.lane = Lane::host;
      out.push_back(load);
    }
    if (chunk.embedding)
      blocks(0).add_embed(out, Direction::forward);
    else
      add_receive(out, Direction::forward, chunk);
    add_loops(out, equal_layers(chunk.first, chunk.last), false, [&](int layer) {
      Nodes body;
      blocks(layer).add_block(body, Direction::forward, recompute_of(layer));
      return body;
    });
    if (chunk.head) return;
    const std::string last =
        chunk.blocks() ? blocks(chunk.last).last(Direction::forward) : std::get<Op>(out.back()).name;
    add_send(out, Direction::forward, chunk, last, behind);
  }

  /// `split`: without the gradients of the blocks' weights.
  void add_backward(Nodes& out, int microbatch, const Chunk& chunk, bool split, const Behind& behind) const {
    const bool last_microbatch = ends(microbatch);
    std::string last = layer_end();
    if (chunk.head) {
      blocks(program_.layers - 1).add_head(out);
      add_sum(out, groups(), Group::head, "head");
      if (!chunk.blocks()) last = std::get<Op>(out.back()).name;
      if (last_microbatch && !model_.tied) add_reduced(out, groups(), Group::head, "head");
    } else {
      add_receive(out, Direction::backward, chunk);
    }
    add_loops(out, equal_layers(chunk.first, chunk.last), true, [&](int layer) {
      const LayerRecompute recompute = recompute_of(layer);
      Nodes body;
      if (recompute.block) blocks(layer).add_block(body, Direction::recompute, recompute);
      blocks(layer).add_ffn_backward(body, recompute);
      blocks(layer).add_dispatch_backward(body);
      if (recompute.attention) blocks(layer).add_attention(body, Direction::recompute, recompute);
      blocks(layer).add_attention(body, Direction::backward, recompute);
      if (split) {
        split_backward(body, blocks(layer).sizes());
      } else {
        add_sums(body, layer, split);
        if (last_microbatch) add_layer_reduced(body, layer, split);
      }
      return body;
    });
    if (!chunk.embedding) return add_send(out, Direction::backward, chunk, last, behind);
    if (frozen()) {  // the message must be received, but its gradient is not used
      Op read = op("embed.bwd", Action::embed, Direction::backward, Group::embedding);
      read.kind = OpKind::host;
      read.frees = {{"block.input.gradient", 0, 0}};
      if (!chunk.blocks()) read.waits = {{"arrived.bwd", 0, 0}}, out.push_back(read);
      return;
    }
    blocks(0).add_embed(out, Direction::backward, chunk.blocks() ? layer_end() : "arrived.bwd");
    if (!model_.tied || !has_head()) add_sum(out, groups(), model_.tied ? Group::head : Group::embedding, "embed.bwd");
    if (last_microbatch) add_reduced(out, groups(), model_.tied ? Group::head : Group::embedding, "embed.bwd");
  }

  void add_weight_gradients(Nodes& out, int microbatch, const Chunk& chunk) const {
    add_loops(out, equal_layers(chunk.first, chunk.last), true, [&](int layer) {
      const LayerRecompute recompute = recompute_of(layer);
      Nodes body;
      blocks(layer).add_ffn_backward(body, recompute);
      blocks(layer).add_attention(body, Direction::backward, recompute);
      body = {weight_gradients(body)};
      add_sums(body, layer, true);
      if (ends(microbatch)) add_layer_reduced(body, layer, true);
      return body;
    });
  }

  /// If products do not accumulate gradients themselves, a kernel adds these after the op `after`. It reads the
  /// gradient and the sum, and writes the sum.
  void add_sum(Nodes& out, const GroupOps& ops, Group group, const std::string& after) const {
    if (frozen() || options_.memory.weight_gradients != WeightGradients::added) return;
    for (Op& o : ops_of(out))
      if (o.name == after) o.work.push_back(ops.sum_of_gradients(group));
  }

  /// Whether a multi-token prediction module on this stage has an embedding gradient of its own. On the first stage, it
  /// is part of the embedding's gradient.
  bool embeds_again(int layer) const { return layer == model_.layers && stage_ > 0; }

  void add_sums(Nodes& out, int layer, bool split) const {
    const std::string end = split ? kWeightGradients : layer_end();
    for (Group group : block_groups(layer))
      add_sum(out, groups(layer), group, group == Group::expert && !split ? "experts.bwd" : end);
    if (embeds_again(layer)) add_sum(out, groups(layer), Group::embedding, end);
  }

  void add_layer_reduced(Nodes& out, int layer, bool split) const {
    const GroupOps ops = groups(layer);
    if (model_.moe(layer)) {
      const std::string experts = split ? kWeightGradients : "experts.bwd";
      ops.add_copy_exchange(out, experts);
      ops.add_copy_sum(out, experts);
      add_reduced(out, ops, Group::expert, copies() ? "copies.sum" : experts);
    }
    const std::string end = split ? kWeightGradients : layer_end();
    add_reduced(out, ops, Group::dense, end);
    if (embeds_again(layer)) add_reduced(out, ops, Group::embedding, end);
  }

  /// Reduces a group's gradients over shards and replicas, in place in the step's buffer.
  void add_reduced(Nodes& out, const GroupOps& ops, Group group, const std::string& after) const {
    Nodes added;
    ops.add_reduce(added, group, {{after}});
    ops.add_accumulate(added, group, 0, true);
    for (Op& o : ops_of(added)) {
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

  /// Both stages with a copy of the shared matrix end with the sum of both gradients.
  void add_copy_sum() {
    const Group group = has_embedding() ? Group::embedding : Group::head;
    const Amount matrix = fixed(as_double(state(Group::embedding)));  // the head's group without its norm
    for (const OpKind kind : {OpKind::send, OpKind::receive}) {
      const std::int64_t around = layout_.pipeline - copy_stage_;
      Op o = message(kind, Direction::recompute, 4 * matrix.fixed,  // `recompute` selects a channel of its own
                     static_cast<int>(stage_ == 0 ? -around : around));
      o.name = kind == OpKind::send ? "tied.send" : "tied.receive";
      o.group = group;
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

  std::int64_t stage_;
  std::vector<Chunk> chunks_;
  std::int64_t copy_stage_;
  std::map<Alike, Made> made_;
};

/// Calls `make` with the stage's builder.
template <class Make>
auto on_stage(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t stage,
              std::int64_t expert_rank, const Make& make) {
  // Embedding and head are on one stage without a pipeline and with dualpipe_v.
  if (layout.stage_of(0) == layout.stage_of(layout.pipeline * layout.virtual_stages - 1))
    return make(StageBuilder(model, layout, options, stage, expert_rank, 0));
  ModelSpec own = model;  // a tied embedding has copies on the first and the last stage
  own.tied = false;
  const std::int64_t last = layout.pipeline - 1, copy = layout.modules_before_head           ? last - 1
                                                        : model.tied || model.mtp_layers > 0 ? last
                                                                                             : 0;
  return make(StageBuilder(own, layout, options, stage, expert_rank, copy));
}

}  // namespace

Program stage_program(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t stage,
                      std::int64_t expert_rank) {
  return on_stage(model, layout, options, stage, expert_rank, [](StageBuilder builder) { return builder.build(); });
}

std::vector<Buffer> stage_resident(const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                                   std::int64_t stage) {
  return on_stage(model, layout, options, stage, 0, [](StageBuilder builder) { return builder.resident(); });
}

}  // namespace wt
