// What the makers of ops share: the model, the layout and the sizes that go with them, and ops with their fields filled
// in.
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
  /// `layer`: one of those that the ops are for; layers differ in whether they have experts. `expert_rank`: the rank
  /// class, where experts have copies.
  OpFactory(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t layer,
            std::int64_t expert_rank = 0);

  const Sizes& sizes() const { return sizes_; }

 protected:
  Op op(std::string name, Action action, Direction direction = Direction::forward, Group group = Group::none) const;
  /// Backward products of frozen weights give the gradient of their input alone.
  WorkItem item(Kernel kernel, Direction direction, Amount rows, std::array<std::int64_t, 4> dims = {}) const;
  /// A bias added to rows; in backward the sum of their gradients, which a frozen one has not.
  void add_bias(std::vector<WorkItem>& work, Direction direction, Amount rows, std::int64_t width) const;
  /// A kernel that reads and writes so many bytes of each element, as copies of the compute type.
  WorkItem move(double elements, double bytes) const;
  /// Makes `o` a collective on the lane of its kind.
  static void collective(Op& o, OpKind kind, Axis axis, Amount bytes);
  /// Elements of a group's gathered buffer, padded to equal shares.
  double padded(Group group) const;
  std::int64_t shard(Group group) const { return shard_elements(model_, layout_, group, layer_); }
  std::int64_t state(Group group) const { return state_elements(model_, layout_, group, layer_); }
  bool moe() const { return model_.moe(layer_); }
  /// Experts on other ranks: rows are exchanged.
  bool remote() const { return moe() && layout_.expert > 1; }
  /// An FFN that every token takes: dense, or shared experts. Of a mixer alone it is empty: only its residual is added.
  bool has_ffn() const { return !moe() || model_.ffn_width(layer_) > 0; }
  bool mixer_alone() const { return !model_.feeds_forward(layer_); }
  /// The group has parameters; an embedding tied to the head has not, nor have the experts of a dense layer.
  bool present(Group group) const { return group_elements(model_, layout_, group, layer_) > 0; }
  bool sharded(Group group) const;
  /// Attention is cut at the gather of keys and values.
  bool context_parallel() const { return layout_.context > 1; }
  /// Products are shared by a tensor group; norms and residuals too.
  bool tensor() const { return layout_.tensor > 1; }
  bool sequence() const { return layout_.sequence_parallel; }
  /// Experts are cut over the tensor group, which gathers their rows.
  bool cut_experts() const { return sequence() && !layout_.whole_experts; }
  /// The last op of a layer's backward pass on the compute lane.
  std::string layer_end() const { return tensor() ? "pre.bwd" : context_parallel() ? "project.bwd" : "attn.bwd"; }
  bool copies() const { return has_copies(model_, layout_); }
  /// The model's weights are frozen: nothing of them is summed, kept or updated.
  bool frozen() const { return options_.frozen(); }
  /// True where a replica keeps only a part of its shard's optimizer state.
  bool state_sharded() const { return layout_.optimizer_shard > 1; }

  const ModelSpec& model_;
  const Layout& layout_;
  const ProgramOptions& options_;
  std::int64_t layer_, expert_rank_;
  Sizes sizes_;
};

}  // namespace wt
