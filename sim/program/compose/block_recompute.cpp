// Recompute of single modules of a block, right before their backward (Megatron-Core's recompute_modules).
#include "sim/program/compose/block_ops.hpp"
#include "sim/program/compose/group_ops.hpp"

namespace wt {

Op BlockOps::again(const std::string& name, Action action, Group group, std::vector<WorkItem> work) const {
  Op o = op(name + suffix(Direction::recompute), action, Direction::recompute, group);
  o.work = std::move(work);
  return o;
}

Op BlockOps::core_again() const {
  Op o = again("core", Action::attention, Group::dense, core_work(Direction::recompute));
  o.allocates = {{"attention.core", fixed(sizes_.core_made)}};
  return o;
}

Op BlockOps::up_projections_again() const {
  Op o = again("up", Action::attention, Group::dense, up_projection_work(Direction::recompute));
  o.waits = {{unshard_name(Group::dense, Direction::recompute)}};
  o.allocates = {{"attention.up", fixed(sizes_.qkv)}};
  return o;
}

Op BlockOps::activation_again() const {
  Op o = again("activation", Action::experts, Group::expert,
               {item(model_.gated() ? Kernel::swiglu : Kernel::gelu, Direction::recompute, sizes_.rows, {model_.ffn})});
  o.allocates = {{"experts.activation", sizes_.experts_activation}};
  if (sizes_.gate_forward.fixed > 0 || sizes_.gate_forward.per_row > 0) o.transient = {sizes_.gate_forward};
  return o;
}

Op BlockOps::router_again(const LayerRecompute& recompute) const {
  Op o = again("router", Action::attention, Group::dense, router_work(Direction::recompute));
  o.waits = {{unshard_name(Group::dense, Direction::recompute)}};
  o.allocates = {{"router.saved", fixed(sizes_.probabilities + sizes_.router_input_copied)},
                 {"routed.rows", fixed(sizes_.routed)}};
  if (norm_again(recompute))
    o.allocates.push_back({"ffn.input", fixed(sizes_.x)});
  else if (recompute.norm && !has_ffn())
    o.allocates.push_back({"moe.input", fixed(sizes_.x)});
  return o;
}

std::vector<WorkItem> BlockOps::router_work(Direction direction) const {
  const Amount tokens = fixed(sizes_.own_tokens);
  WorkItem scores = item(Kernel::gemm, direction, tokens, {model_.experts, model_.d_model});
  scores.precision = Precision::fp32;
  std::vector<WorkItem> work{scores};
  if (model_.ffn_bias) add_bias(work, direction, tokens, model_.experts);
  work.push_back(item(Kernel::router, direction, tokens, {model_.experts, model_.top_k}));
  if (model_.moe_latent > 0) work.push_back(item(Kernel::gemm, direction, tokens, {model_.moe_latent, model_.d_model}));
  work.push_back(item(Kernel::permute, direction, fixed(sizes_.permuted), {model_.expert_width()}));
  return work;
}

}  // namespace wt
