#include "sim/program/compose/compose.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "configs/files/microbatches.hpp"
#include "configs/files/run.hpp"
#include "sim/program/compose/activation_copies.hpp"
#include "sim/program/compose/collective_copies.hpp"
#include "sim/program/compose/pipeline.hpp"
#include "sim/program/compose/schedule_microbatches.hpp"
#include "sim/program/compose/step_builder.hpp"
#include "sim/program/compose/tensor_slice.hpp"
#include "sim/program/walk.hpp"

namespace wt {
namespace {

/// Builds the program of one rank class. The first and the last layer are outside the layer loops, because they
/// prefetch one neighbour fewer.
class Builder : private StepBuilder {
 public:
  Builder(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t expert_rank)
      : StepBuilder(model, layout, options, expert_rank, whole(model)) {}

  std::vector<Buffer> resident() {
    add_resident();
    return std::move(program_.resident);
  }

  Program build() {
    add_resident();
    add_adapter_weights();
    const int last = program_.microbatches - 1,
              refreshed = state_sharded() ? 1 : 0;  // the first microbatch gathers what replicas updated
    const auto add = [&](int from, int to, bool is_first, bool is_last) {
      if (from <= to) program_.nodes.push_back(loop(Loop::Index::microbatch, from, to, microbatch(is_first, is_last)));
    };
    if (last > 0) add(0, refreshed - 1, true, false);
    add(refreshed, last - 1, false, false);
    program_.nodes.push_back(last_loop(state_sharded() && last == 0));
    add_epilogue();
    return std::move(program_);
  }

 private:
  /// The last microbatch may have fewer sequences: its ops are those of a layout with that microbatch size.
  Loop last_loop(bool is_first) const {
    Layout smaller = layout_;
    if (options_.last_microbatch > 0) smaller.microbatch = options_.last_microbatch;
    const int last = program_.microbatches - 1;
    return loop(Loop::Index::microbatch, last, last,
                Builder(model_, smaller, options_, expert_rank_).microbatch(is_first, true));
  }

  // Memory held throughout the step.
  void add_resident() {
    const double shards = over_groups(shard_elements);
    add_states();
    if (!frozen()) program_.resident.push_back({"gradient shards", fixed(4 * shards)});
    // Weights whose masters are on other replicas or in host memory.
    if (const double apart = state_sharded() ? 1 : options_.offload_fraction; apart > 0)
      program_.resident.push_back({"weight shards", fixed(sizes_.word * shards * apart)});
    program_.resident.push_back(
        {"gathered slots",
         fixed(slots(layout_.reshard_after_forward && !overlap() ? 1 : weight_slots(model_, layout_)) * sizes_.word *
               share_of_compute(options_.precisions.gathered_weights)),
         layout_.reshard_after_forward});
    if (!frozen())
      program_.resident.push_back(
          {"gradient slots", fixed(slots(gradient_slots(model_, layout_)) * 4), layout_.reduce_every_microbatch});
    if (!frozen() && !layout_.reduce_every_microbatch)
      program_.resident.push_back({"outer gradients", fixed((padded(Group::embedding) + padded(Group::head)) * 4)});
    add_framework_buffers();
    add_tables();
  }

  /// Elements of all slots of the group.
  double slots(std::int64_t count) const {
    double sum = 0;
    for (Group group : {Group::dense, Group::expert})
      for (std::int64_t slot = 0; slot < count; ++slot)
        sum += as_double(slot_elements(model_, layout_, group, slot, count));
    return sum;
  }

  /// MemoryFacts::gathers_overlap.
  bool overlap() const { return options_.memory.gathers_overlap; }
  /// The layer's groups in the order of their gathers. If computation waits for all, it waits for the last one.
  std::vector<Group> gathered_groups(int layer) const {
    std::vector<Group> out = block_groups(layer);
    if (!overlap()) std::ranges::reverse(out);
    return out;
  }

  /// Body of the forward layer loop. It gathers the next layer, or from the last layer the head.
  Nodes forward_layer(int layer, bool first_microbatch) const {
    Nodes out;
    if (!overlap()) blocks(layer).add_block(out, Direction::forward, recompute_of(layer));
    if (layer < program_.layers - 1) {
      const Ref free{blocks(std::max(0, layer - (overlap() ? 1 : 0))).last(Direction::forward), overlap() ? -1 : 0};
      for (Group group : gathered_groups(layer + 1))
        out.push_back(groups(layer + 1).unshard(group, Direction::forward, {free}, 1, first_microbatch));
      if (first_microbatch)
        for (Group group : {Group::dense, Group::expert})
          groups(std::min(layer + 2, program_.layers - 1)).add_refresh(out, group, 2);
    } else if (!model_.tied) {
      groups().add_head_unshard(out, first_microbatch);
    }
    if (overlap()) blocks(layer).add_block(out, Direction::forward, recompute_of(layer));
    if (offloads(layer)) activation_copies(layer).add_to_host(out);
    if (layout_.offload_activations) wait_in(out, ActivationCopies::before_forward());
    return out;
  }

  /// The last layer's activations stay, because backward begins with them.
  bool offloads(int layer) const { return layout_.offload_activations && layer >= 0 && layer < program_.layers - 1; }
  ActivationCopies activation_copies(int layer) const {
    return {model_, layout_, options_, layer, expert_rank_, recompute_of(layer)};
  }

  /// The body's first computation waits for these, too.
  static void wait_in(Nodes& body, const std::vector<Ref>& more) {
    for (Op& o : ops_of(body))
      if (o.lane == Lane::compute) {
        o.waits.insert(o.waits.end(), more.begin(), more.end());
        return;
      }
  }

  /// Body of the backward layer loop. The last layer still has its weights from the forward pass.
  Nodes backward_layer(int layer, bool last_microbatch) const {
    Nodes out;
    const bool is_last = layer == program_.layers - 1;
    const bool reduces = layout_.reduce_every_microbatch || last_microbatch, gathers = layout_.reshard_after_forward;
    const LayerRecompute recompute = recompute_of(layer);
    const BlockOps block = blocks(layer);
    if (is_last || !gathers)  // only renames the gathered weights for the backward ops
      for (Group group : block_groups(layer)) {
        Op kept = op(unshard_name(group, Direction::backward), Action::unshard, Direction::backward, group);
        kept.kind = OpKind::host;
        kept.lane = Lane::host;
        kept.waits = {{unshard_name(group, Direction::forward)}};
        out.push_back(kept);
      }
    const auto gather_next = [&](const std::vector<Ref>& waits) {
      if (layer > 0 && gathers)
        for (Group group : gathered_groups(layer - 1))
          out.push_back(groups(layer - 1).unshard(group, Direction::backward, waits, -1));
    };
    if (offloads(layer - 1))
      activation_copies(layer - 1).add_from_host(out,
                                                 is_last ? std::vector<Ref>{} : std::vector<Ref>{{layer_end(), 1}});
    if (overlap()) gather_next({is_last ? Ref{block.last(Direction::forward)} : Ref{layer_end(), 1}});
    if (recompute.block) block.add_block(out, Direction::recompute, recompute);
    block.add_ffn_backward(out, recompute);
    if (reduces) {
      if (!is_last)
        groups(layer + 1).add_accumulate(out, Group::expert, 1, last_microbatch);
      else if (!model_.tied)
        groups().add_accumulate(out, Group::head, 0, last_microbatch);
      if (!copies() && overlap()) groups(layer).add_reduce(out, Group::expert, {{"experts.bwd"}});
    }
    block.add_dispatch_backward(out);
    if (reduces) groups(layer).add_copy_exchange(out);  // after the experts' rows, because attention waits for these
    if (recompute.attention) block.add_attention(out, Direction::recompute, recompute);
    block.add_attention(out, Direction::backward, recompute);
    if (reduces) {
      groups(layer).add_copy_sum(out);
      if (copies()) groups(layer).add_reduce(out, Group::expert, {{"copies.sum"}});
      if (!copies() && !overlap()) groups(layer).add_reduce(out, Group::expert, {{layer_end()}});
      if (!is_last) groups(layer + 1).add_accumulate(out, Group::dense, 1, last_microbatch);
      groups(layer).add_reduce(out, Group::dense, {{layer_end()}});
      if (!overlap() && !is_last && !frozen())
        for (const Group group : block_groups(layer + 1))
          if (sharded(group)) wait_in(out, {{to_string(group) + ".reduce", 1}});
    }
    if (!overlap()) gather_next({{layer_end()}});
    if (offloads(layer)) wait_in(out, ActivationCopies::before_backward());
    return out;
  }

  /// The previous microbatch's last op that reads the embedding's weights.
  std::vector<Ref> embedding_free() const { return {{frozen() ? "embed.fwd" : "embed.bwd", 0, -1, -1}}; }

  Nodes microbatch(bool first_microbatch, bool last_microbatch) const {
    Nodes out;
    const int last = program_.layers - 1;
    const bool reduces = layout_.reduce_every_microbatch || last_microbatch;
    Op load = op("data", Action::load_batch);
    load.kind = OpKind::host;
    load.lane = Lane::host;
    out.push_back(load);
    if (first_microbatch) groups().add_first_refresh(out);
    if (model_.tied) {  // embedding and output projection share one matrix: gathered once and kept for the microbatch
      groups().add_head_unshard(out, first_microbatch);
    } else {
      // A later microbatch reuses the buffers after the previous one has read them.
      Op embedding = groups().unshard(Group::embedding, Direction::forward, embedding_free(), 0, first_microbatch);
      embedding.allocates.push_back({"embedding.weights", fixed(padded(Group::embedding) * sizes_.word)});
      out.push_back(embedding);
    }
    const std::vector<Ref> free{{layer_end(), 0, 0, -1}};
    Nodes first;
    for (Group group : gathered_groups(0))
      first.push_back(groups().unshard(group, Direction::forward, free, 0, first_microbatch));
    out.push_back(loop(Loop::Index::layer, 0, 0, first));
    blocks(0).add_embed(out, Direction::forward);

    add_loops(out, equal_layers(0, last - 1), false, [&](int layer) { return forward_layer(layer, first_microbatch); });
    out.push_back(loop(Loop::Index::layer, last, last, forward_layer(last, first_microbatch)));
    blocks(last).add_head(out);
    if (reduces && !model_.tied) groups().add_reduce(out, Group::head, {{"head"}});
    out.push_back(loop(Loop::Index::layer, last, last, backward_layer(last, last_microbatch)));
    add_loops(out, equal_layers(1, last - 1), true, [&](int layer) { return backward_layer(layer, last_microbatch); });
    if (last > 0) out.push_back(loop(Loop::Index::layer, 0, 0, backward_layer(0, last_microbatch)));

    const Group outermost = model_.tied ? Group::head : Group::embedding;
    if (frozen()) return out;
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
};

}  // namespace

ProgramOptions program_options(std::int64_t seq, const Microbatches& sequences, Precision precision, bool gloo) {
  return {.seq = seq,
          .microbatches = sequences.count,
          .precision = precision,
          .transport_scratch = gloo,
          .last_microbatch = sequences.last};
}

ProgramOptions program_options(const RunSpec& run, const Microbatches& sequences) {
  ProgramOptions options = program_options(run.seq, sequences, run.precision, run.device == DeviceKind::cpu);
  options.precisions = run.precisions;
  if (run.pure_reduction) options.gradient_bytes = 2;
  options.loss_chunks = run.loss_chunks;
  options.optimizer = run.optimizer.kind;
  options.orthogonalize_everywhere = run.optimizer.orthogonalize_everywhere;
  options.offload_fraction = run.optimizer.offload_fraction;
  if (run.lora) options.lora = adapter_shape(run.model, *run.lora);
  return options;
}

ProgramOptions program_options(const RunSpec& run) { return program_options(run, run.sequences()); }

std::int64_t weight_slots(const ModelSpec& model, const Layout& layout) {
  return layout.reshard_after_forward ? std::min<std::int64_t>(2, model.blocks()) : model.blocks();
}

std::int64_t gradient_slots(const ModelSpec& model, const Layout& layout) {
  return layout.reduce_every_microbatch ? std::min<std::int64_t>(2, model.blocks()) : model.blocks();
}

Axis state_copies_axis(const Layout& layout) {
  return layout.optimizer_shard == 1 ? Axis::replicate : Axis::optimizer_replicate;
}

Axis shard_axis(Group group) { return group == Group::expert ? Axis::expert_shard : Axis::shard; }

std::int64_t group_elements(const ModelSpec& model, const Layout& layout, Group group, std::int64_t layer) {
  switch (group) {
    case Group::dense:
      return model.dense_parameters(layer);
    case Group::expert:
      return model.moe(layer) ? layout.slots_per_rank(model) * model.expert_parameters() : 0;
    case Group::embedding:
      return model.embedding_parameters();
    case Group::head:
      return model.head_parameters();
    case Group::router_bias:
      return model.moe_layers() * model.experts;
    case Group::adapter:
    case Group::none:
      return 0;
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

std::int64_t slot_elements(const ModelSpec& model, const Layout& layout, Group group, std::int64_t slot,
                           std::int64_t slots) {
  std::int64_t most = 0;
  for (std::int64_t layer = slot; layer < model.blocks(); layer += slots)
    most = std::max(most, shard_elements(model, layout, group, layer) * Mesh(layout).size(shard_axis(group)));
  return most;
}

namespace {

bool resident_weights(const Layout& layout, const ProgramOptions& options) {
  return layout.resident_weights() ||
         (options.memory.resident_weights && !layout.reshard_after_forward && !layout.reduce_every_microbatch);
}

void check_resident(const Layout& layout, const ProgramOptions& options) {
  if (options.last_microbatch > 0 && options.last_microbatch != layout.microbatch)
    throw_usage("layout {}: found a last microbatch of {} sequences, needs {} as the others have where weights stay",
                layout.name(), options.last_microbatch, layout.microbatch);
  if (const std::string refused = schedule_refuses(layout, options.microbatches); !refused.empty())
    throw_usage("layout {}: found {} microbatches for {}", layout.name(), options.microbatches, refused);
}

/// Applies what a stack, or a run, sends less than our trainer.
void scale_traffic(Op& op, const ProgramOptions& options) {
  const Precisions& formats = options.precisions;
  double share = op.collective.axis == Axis::tensor ? options.tensor_traffic : 1;
  if (op.action == Action::dispatch && op.direction != Direction::backward)
    share *= share_of_compute(formats.dispatch), op.collective.row_bytes *= share_of_compute(formats.dispatch);
  if ((op.action == Action::unshard || op.action == Action::refresh) && layered(op.group))
    share *= share_of_compute(formats.gathered_weights);
  if (op.action == Action::reduce_gradients || op.action == Action::reduce_replicas)
    share *= options.gradient_bytes / 4;
  op.collective.bytes.fixed *= share;
  op.collective.bytes.per_row *= share;
  op.collective.kept_row_bytes *= share;
}

}  // namespace

ProgramSet build_program_set(const ModelSpec& model, const Layout& layout, const ProgramOptions& options) {
  ProgramSet set{build_stages(model, layout, options, 0, layout.pipeline), {}};
  const std::int64_t classes = std::ssize(set.programs) / layout.pipeline;
  for (std::int64_t rank = 0; rank < layout.world(); ++rank)
    set.class_of_rank.push_back(
        static_cast<int>(rank / layout.stage_ranks() * classes + layout.data_rank(rank) % classes));
  return set;
}

std::vector<Buffer> resident_buffers(const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                                     std::int64_t stage) {
  const ModelSpec slice = tensor_slice(model, layout.tensor, layout.whole_experts);
  return resident_weights(layout, options) ? stage_resident(slice, layout, options, stage)
                                           : Builder(slice, layout, options, 0).resident();
}

std::vector<Program> build_stages(const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                                  std::int64_t first, std::int64_t end) {
  layout.check(model, "layout " + layout.name());
  if (options.last_microbatch < 0 || options.last_microbatch > layout.microbatch)
    throw_usage(
        "layout {}: found a last microbatch of {} sequences, needs 1 to {} as the others have, or 0 for as many",
        layout.name(), options.last_microbatch, layout.microbatch);
  const bool resident = resident_weights(layout, options);
  if (resident) check_resident(layout, options);
  if (layout.offload_activations && resident)
    throw_usage(
        "layout {}: found activation_cpu_offload where weights stay, needs reshard_after_forward or gradients "
        "reduced every microbatch",
        layout.name());
  if (layout.exchange_overlap && !resident)
    throw_usage(
        "layout {}: overlap_expert_exchange where the stack gathers weights anew; needs a stack that keeps them "
        "(resident_weights), as Megatron-Core does",
        layout.name());
  std::vector<Program> programs;
  const ModelSpec slice = tensor_slice(model, layout.tensor, layout.whole_experts);
  // Stages differ. With copies of experts, expert ranks differ in what they exchange; without copies, all ranks of a
  // stage are one class.
  const std::int64_t classes = has_copies(model, layout) ? layout.expert : 1;
  for (std::int64_t stage = first; stage < end; ++stage)
    for (std::int64_t expert_rank = 0; expert_rank < classes; ++expert_rank)
      programs.push_back(resident ? stage_program(slice, layout, options, stage, expert_rank)
                                  : Builder(slice, layout, options, expert_rank).build());
  if (options.memory.collective_copies != CollectiveCopies::none && !resident)
    for (std::int64_t expert_rank = 0; expert_rank < classes; ++expert_rank)
      add_collective_copies(programs[static_cast<std::size_t>(expert_rank)].nodes, slice, layout, options, expert_rank);
  if (options.tensor_traffic != 1 || options.gradient_bytes != 4 || options.precisions != Precisions{})
    for (Program& program : programs)
      for_each_list(program.nodes, [&](Nodes& nodes, const LoopsAround&) {
        for (Op& op : ops_of(nodes)) scale_traffic(op, options);
      });
  return programs;
}

}  // namespace wt
