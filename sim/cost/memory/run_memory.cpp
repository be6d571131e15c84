#include "sim/cost/memory/run_memory.hpp"

#include <algorithm>
#include <numeric>

#include "sim/cost/memory/layer_activations.hpp"

namespace wt {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

constexpr double kElement = 2;      // bf16 or fp16
constexpr double kHeadTensors = 3;  // of the width of the residual stream: final norm's input and output, a gradient
constexpr double kGathered = 2;     // whole copies under sequence parallelism: a product's input and its gradient
constexpr double kMicrobatchesAhead = 8;  // nanotron's runs with fewer reserve less, those with more no more

/// Stage by stage, by bytes on one rank.
class Stages {
 public:
  Stages(const RunRow& row, const StackSpec& stack)
      : r_(row), facts_(stack.memory), layers_(layers_of_stages(row, stack)) {}

  /// Of the stage's layers, and of embedding and head where it has them.
  double states(std::int64_t stage, bool layers_alone) const {
    return bytes(dense(stage) + (layers_alone ? 0 : ends(stage)), as_double(r_.shard_group)) +
           bytes(experts(stage), std::max(1.0, as_double(r_.shard_group * r_.tp) / as_double(expert_ranks())));
  }

  double activations(std::int64_t stage) const {
    double a_token = 0;
    for (std::int64_t layer = first(stage); layer < first(stage + 1); ++layer)
      a_token += layer_activations(r_, layer, facts_).split(r_.tp, r_.sequence_parallel);
    return a_token * tokens() * in_flight(r_, stage);
  }

  double scratch(std::int64_t stage) const {
    const double layer = layers(stage) > 0 ? layer_parameters(first(stage)) + expert_parameters(first(stage)) : 0;
    // FSDP: parameters of this unit and the next and a gradient; a pipeline keeps its stage gathered, and its gradients
    // in fp32 until the last microbatch (torchtitan).
    if (r_.zero_stage == 3 && r_.pp > 1) return (kElement + 4) * parameters(stage);
    if (r_.zero_stage == 3) return kElement * 3 * std::max(layer, head_parameters());
    if (facts_.late_reuse && r_.sequence_parallel && r_.pp == 1) return late_gathers();
    if (!facts_.weight_scratch) return 0;
    return kElement * (layer + (last(stage) ? head_parameters() : 0));
  }

  double working(std::int64_t stage) const {
    const ModelSpec& m = r_.model;
    const double tensor = as_double(r_.tp), width = kElement * as_double(m.d_model);
    const double narrow = width / (r_.sequence_parallel ? tensor : 1);
    const double whole = r_.sequence_parallel ? kGathered * width : 0;
    const std::int64_t ffn = m.ffn_width(m.layers - 1) + m.top_k * (m.moe(m.layers - 1) ? m.ffn : 0);
    double a_token = kElement * as_double(m.ffn_rows(ffn)) / tensor + narrow + whole;  // gradients in the FFN
    if (r_.recompute == RunRow::Recompute::full)
      a_token += whole_layer_activations(r_, m.layers - 1, facts_).split(r_.tp, r_.sequence_parallel);
    if (last(stage))
      a_token = std::max(a_token, facts_.logit_bytes * as_double(m.vocab) / tensor + kHeadTensors * narrow + whole);
    return a_token * tokens();
  }

  std::int64_t count() const { return r_.pp; }

 private:
  double tokens() const { return as_double(r_.microbatch * r_.seq) / as_double(r_.cp); }
  std::int64_t layers(std::int64_t stage) const { return layers_[static_cast<std::size_t>(stage)]; }
  std::int64_t first(std::int64_t stage) const {
    return std::accumulate(layers_.begin(), layers_.begin() + stage, std::int64_t{0});
  }
  bool last(std::int64_t stage) const { return stage == r_.pp - 1; }

  /// A layer gathers the inputs of two products. The allocator gives such a buffer out again once the GPU is done with
  /// it, and the host is far ahead: after some microbatches all layers have their own. A pipeline's transfers make it
  /// wait.
  double late_gathers() const {
    const double ahead = std::min(1.0, as_double(r_.accumulation) / kMicrobatchesAhead);
    return kGathered * kElement * as_double(r_.model.d_model * r_.model.layers) * tokens() * ahead;
  }
  double dense(std::int64_t stage) const {
    double sum = 0;
    for (std::int64_t layer = first(stage); layer < first(stage + 1); ++layer) sum += layer_parameters(layer);
    return sum;
  }
  double experts(std::int64_t stage) const {
    double sum = 0;
    for (std::int64_t layer = first(stage); layer < first(stage + 1); ++layer) sum += expert_parameters(layer);
    return sum;
  }
  double parameters(std::int64_t stage) const { return dense(stage) + experts(stage) + ends(stage); }
  /// Norms are whole on every rank of a tensor group.
  double layer_parameters(std::int64_t layer) const {
    const double norms = 2 * as_double(r_.model.norm_parameters());
    return (as_double(r_.model.dense_parameters(layer)) - norms) / as_double(r_.tp) + norms;
  }
  double expert_parameters(std::int64_t layer) const {
    if (!r_.model.moe(layer)) return 0;
    return as_double(r_.model.expert_parameters() * r_.model.experts) / as_double(expert_ranks());
  }
  /// Ranks that together hold a layer's experts once.
  std::int64_t expert_ranks() const { return r_.ep * (r_.whole_experts ? 1 : r_.tp); }
  double head_parameters() const { return as_double(r_.model.vocab * r_.model.d_model) / as_double(r_.tp); }
  double ends(std::int64_t stage) const {
    const bool embedding = stage == 0, shared = r_.model.tied && r_.pp == 1;
    return (embedding && !(shared && last(stage)) ? head_parameters() : 0) +
           (last(stage) ? head_parameters() + as_double(r_.model.norm_parameters()) : 0);
  }
  double bytes(double parameters, double shards) const {
    const double replicated = facts_.parameter_bytes + facts_.gradient_bytes;
    if (r_.zero_stage == 3) return parameters * (4 + 4 + 8) / shards;  // fp32: parameters, gradients, two moments
    return parameters * (replicated + facts_.optimizer_bytes / (r_.zero_stage > 0 ? shards : 1));
  }

  const RunRow& r_;
  const MemoryFacts& facts_;
  std::vector<std::int64_t> layers_;
};

}  // namespace

std::vector<std::int64_t> layers_of_stages(const RunRow& row, const StackSpec& stack) {
  const std::int64_t layers = row.model.layers, stages = row.pp;
  std::vector<std::int64_t> out(static_cast<std::size_t>(stages), layers / stages);
  for (std::int64_t i = 0; i < layers % stages; ++i) ++out[static_cast<std::size_t>(i)];
  if (!stack.balanced_stages) return out;
  // nanotron: blocks in order, a cost is a block's weights without norms; the next stage begins behind the block that
  // passes the stage's share.
  std::fill(out.begin(), out.end(), 0);
  const ModelSpec& m = row.model;
  const double layer = as_double(m.attention_parameters() + m.d_model * (m.ffn_rows(m.ffn) + m.ffn));
  const double share = (layer * as_double(layers) + as_double(m.vocab * m.d_model)) / as_double(stages);
  std::size_t stage = 0;
  for (std::int64_t i = 0; i < layers; ++i) {
    ++out[stage];
    if (layer * as_double(i + 1) > share * as_double(static_cast<std::int64_t>(stage) + 1) && stage + 1 < out.size())
      ++stage;
  }
  return out;
}

double in_flight(const RunRow& row, std::int64_t stage) {
  const double chunks = as_double(row.vp == 1 ? row.pp - stage : 2 * (row.pp - stage - 1) + (row.vp - 1) * row.pp + 1);
  return std::min(chunks / as_double(row.vp), as_double(row.accumulation));
}

RunMemory run_memory(const RunRow& row, const StackSpec& stack) {
  const Stages stages(row, stack);
  RunMemory most;
  for (std::int64_t stage = 0; stage < (stack.memory.first_rank_only ? 1 : stages.count()); ++stage) {
    const RunMemory here = {stages.states(stage, false), stages.activations(stage), stages.scratch(stage),
                            stages.working(stage)};
    if (here.peak() > most.peak()) most = here;
  }
  return most;
}

RunMemory layer_memory(const RunRow& row, const StackSpec& stack) {
  const Stages stages(row, stack);
  return {stages.states(0, true), stages.activations(0), 0, 0};
}

}  // namespace wt
