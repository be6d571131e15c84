// Copies of what a layer keeps for its backward pass, to the host's memory and back: Layout::offload_activations.
#pragma once
#include "sim/program/compose/block_ops.hpp"

namespace wt {

class ActivationCopies : private OpFactory {
 public:
  /// Of the layer with that recompute.
  ActivationCopies(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, int layer,
                   std::int64_t expert_rank, const LayerRecompute& recompute);

  /// In the layer's loop, after its forward pass: copies what it keeps, and its input, and frees them.
  void add_to_host(Nodes& out) const;
  /// The forward pass waits for these, so that at most two layers' copies are under way.
  static std::vector<Ref> before_forward() { return {{kOut, -2}, {kInputOut, -3}}; }
  /// In the loop of the layer above, during its backward pass: allocates them and copies them back. `waits`: further
  /// ops to wait for.
  void add_from_host(Nodes& out, std::vector<Ref> waits) const;
  /// The layer's backward pass waits for these.
  static std::vector<Ref> before_backward() { return {{kBack}, {kInputBack, -1}}; }

 private:
  static constexpr const char *kOut = "activations.out", *kBack = "activations.back";
  static constexpr const char *kInputOut = "input.out", *kInputBack = "input.back";

  /// What the layer keeps from forward to backward, without its output, which is the next layer's input.
  std::vector<Buffer> kept() const;
  std::vector<Buffer> input() const;
  /// A copy of buffers of the layer that is `layer_delta` from the loop's: void where that layer does not exist, so
  /// that the first layer's input stays.
  Op copy(const std::string& name, Action action, Direction direction, const std::vector<Buffer>& buffers,
          int layer_delta, std::vector<Ref> waits) const;

  BlockOps block_;
  LayerRecompute recompute_;
};

}  // namespace wt
