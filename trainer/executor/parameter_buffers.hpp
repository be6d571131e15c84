// What a rank holds of the parameters: its shards (groups), the weights gathered from them (slots), and the gradients
// that backward adds up before they are reduced.
#pragma once
#include <cstdint>
#include <vector>

#include "configs/files/run.hpp"
#include "sim/program/program.hpp"
#include "trainer/parameters/weights.hpp"

namespace wt {

class ParameterBuffers {
 public:
  /// `groups`: with their state; empty: made anew, drawn by the run's seed. `run` outlives this.
  ParameterBuffers(const RunSpec& run, at::Device device, at::ScalarType type, std::int64_t rank,
                   std::vector<ShardedGroup> groups);

  /// All of this rank: embedding, head, then dense and expert of each layer; adapter and router_bias last, where they
  /// are.
  std::vector<ShardedGroup>& groups() { return groups_; }
  /// Beside an adapter all other groups are frozen.
  bool frozen() const { return run_.lora.has_value(); }
  /// Routers are balanced by biases, which are the last group.
  bool has_router_biases() const { return groups_.back().layout.group == Group::router_bias; }

  // What an op works on.
  ShardedGroup& group_of(const OpInstance& instance);
  Slot& slot_of(const OpInstance& instance);
  GradientBuffer& gradient_of(const OpInstance& instance);

  /// Adds the layer's weights to `out`, with its adapters.
  void add_slots(int layer, std::vector<at::Tensor>& out) const;

  Slot& head() { return head_; }
  /// The head's where it is tied.
  Slot& embedding() { return run_.model.tied ? head_ : embedding_; }
  /// Made where there is none, as after each reduction where every microbatch is reduced.
  GradientBuffer& head_gradient();
  GradientBuffer& embedding_gradient();
  const GradientBuffer& dense_gradient(std::size_t layer) const { return dense_gradients_[layer]; }
  /// A slot outside of the blocks has memory between its gather and its last use alone.
  void make_slot(const OpInstance& instance);
  void give_back_embedding() { embedding_ = Slot{}; }
  void give_back_head() { head_ = Slot{}; }
  /// Forgets the head's gradients.
  void clear_head_gradient();

  /// Throws Error{runtime} where the run has none.
  ShardedGroup& adapter_group();
  /// The adapter's leaves as the masters are now, and gradients of zero.
  void begin_adapter();

 private:
  std::vector<ShardedGroup> new_groups(std::int64_t rank) const;
  /// One slot and one gradient buffer a layer, `weights` and `gradients` of them with memory of their own. Frozen
  /// groups have empty buffers.
  void make_slots(Group group, std::int64_t weights, std::int64_t gradients, std::vector<Slot>& slots,
                  std::vector<GradientBuffer>& buffers);
  /// Makes the adapter's leaves and puts them beside the layers' weights.
  void make_adapter();

  const RunSpec& run_;
  at::Device device_;
  at::ScalarType type_;
  std::vector<ShardedGroup> groups_;
  Slot embedding_, head_;
  Slot adapter_;                                  ///< leaves that the layers' slots share
  std::vector<Slot> dense_slots_, expert_slots_;  ///< by layer
  GradientBuffer embedding_gradient_, head_gradient_;
  std::vector<GradientBuffer> dense_gradients_, expert_gradients_;
};

}  // namespace wt
