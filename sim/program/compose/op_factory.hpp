// Shared by the makers of ops: the model, the layout, their sizes, and ops with common fields filled in.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "configs/base/number.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/compose/expert_copies.hpp"
#include "sim/program/compose/sizes.hpp"

namespace wt {

using Nodes = std::vector<Node>;

Amount fixed(double bytes);
Amount sum(const Amount& a, const Amount& b);
Amount difference(const Amount& a, const Amount& b);
/// ".fwd", ".rec" or ".bwd".
std::string suffix(Direction direction);

class OpFactory {
 public:
  /// `layer`: a layer of the kind that the ops are for; kinds differ in whether they have experts. `expert_rank`: the
  /// rank class, if experts have copies.
  OpFactory(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t layer,
            std::int64_t expert_rank = 0);

  const Sizes& sizes() const { return sizes_; }

 protected:
  Op op(std::string name, Action action, Direction direction = Direction::forward, Group group = Group::none) const;
  /// For frozen weights, backward products compute only the gradient of their input.
  WorkItem item(Kernel kernel, Direction direction, Amount rows, std::array<std::int64_t, 4> dims = {}) const;
  /// Adds a bias to rows; in backward sums their gradients, unless it is frozen.
  void add_bias(std::vector<WorkItem>& work, Direction direction, Amount rows, std::int64_t width) const;
  /// A kernel that moves `bytes` per element, in total of reads and writes, as copies of the compute type.
  WorkItem move(double elements, double bytes) const;
  /// Makes `o` a collective on the lane of its kind.
  static void collective(Op& o, OpKind kind, Axis axis, Amount bytes);
  /// Elements of a group's gathered buffer, padded to equal shares.
  double padded(Group group) const;
  std::int64_t shard(Group group) const { return shard_elements(model_, layout_, group, layer_); }
  std::int64_t state(Group group) const { return state_elements(model_, layout_, group, layer_); }
  bool moe() const { return model_.moe(layer_); }
  /// Whether experts are on other ranks, so that rows are exchanged.
  bool remote() const { return moe() && layout_.expert > 1; }
  /// Whether there is an FFN for every token: dense, or shared experts. A layer with only a mixer has an empty one,
  /// which adds the residual.
  bool has_ffn() const { return !moe() || model_.ffn_width(layer_) > 0; }
  bool mixer_alone() const { return !model_.feeds_forward(layer_); }
  /// Whether the group has parameters; an embedding tied to the head has none, nor do the experts of a dense layer.
  bool present(Group group) const { return group_elements(model_, layout_, group, layer_) > 0; }
  bool sharded(Group group) const;
  /// Whether attention is split at the gather of keys and values.
  bool context_parallel() const { return layout_.context > 1; }
  /// Whether a tensor group shares products (tensor), and also norms and residuals (sequence).
  bool tensor() const { return layout_.tensor > 1; }
  bool sequence() const { return layout_.sequence_parallel; }
  /// Whether the tensor group divides experts and gathers their rows.
  bool cut_experts() const { return sequence() && !layout_.whole_experts; }
  /// The last op of a layer's backward pass on the compute lane.
  std::string layer_end() const { return tensor() ? "pre.bwd" : context_parallel() ? "project.bwd" : "attn.bwd"; }
  bool copies() const { return has_copies(model_, layout_); }
  /// Whether the model's weights are frozen: they are not reduced, have no gradients, and are not updated.
  bool frozen() const { return options_.frozen(); }
  /// Whether a replica keeps only a part of its shard's optimizer state.
  bool state_sharded() const { return layout_.optimizer_shard > 1; }

  const ModelSpec& model_;
  const Layout& layout_;
  const ProgramOptions& options_;
  std::int64_t layer_, expert_rank_;
  Sizes sizes_;
};

}  // namespace wt
