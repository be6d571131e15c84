#include "trainer/executor/parameter_buffers.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "trainer/parameters/adapter_group.hpp"
#include "trainer/pch.hpp"

namespace wt {

using at::Tensor;

namespace {

/// Of one thing for each group of parameters, the one that an op works on.
template <class T>
T& of_group(const OpInstance& instance, T& embedding, T& head, std::vector<T>& dense, std::vector<T>& experts) {
  const std::size_t layer = static_cast<std::size_t>(std::max(instance.layer, 0));
  switch (instance.op->group) {
    case Group::embedding:
      return embedding;
    case Group::head:
      return head;
    case Group::dense:
      return dense[layer];
    default:
      return experts[layer];
  }
}

}  // namespace

ParameterBuffers::ParameterBuffers(const RunSpec& run, at::Device device, at::ScalarType type, std::int64_t rank,
                                   std::vector<ShardedGroup> groups)
    : run_(run), device_(device), type_(type), groups_(groups.empty() ? new_groups(rank) : std::move(groups)) {
  if (run.layout.optimizer_shard > 1)
    for (ShardedGroup& g : groups_)
      g.weights = at::zeros({g.layout.shard_elements}, at::TensorOptions(device_).dtype(type_));
  make_slots(Group::dense, weight_slots(run.model, run.layout), gradient_slots(run.model, run.layout), dense_slots_,
             dense_gradients_);
  make_slots(Group::expert, weight_slots(run.model, run.layout), gradient_slots(run.model, run.layout), expert_slots_,
             expert_gradients_);
  if (frozen()) make_adapter();
  if (!run.layout.reduce_every_microbatch && !frozen()) {
    embedding_gradient_ = GradientBuffer::make(groups_[0].layout, device_);
    head_gradient_ = GradientBuffer::make(groups_[1].layout, device_);
  }
}

std::vector<ShardedGroup> ParameterBuffers::new_groups(std::int64_t rank) const {
  std::vector<ShardedGroup> out;
  const Moments learned = run_.optimizer.one_moment() ? Moments::one : Moments::two;
  const auto add = [&](Group group, std::int64_t layer) {
    const bool moved = !frozen() || group == Group::router_bias;
    out.push_back(make_group(group_layout(run_.model, run_.layout, group, layer, rank), run_.seed, device_,
                             moved ? learned : Moments::none));
  };
  add(Group::embedding, -1);
  add(Group::head, -1);
  for (std::int64_t layer = 0; layer < run_.model.blocks(); ++layer)
    add(Group::dense, layer), add(Group::expert, layer);
  if (run_.lora) out.push_back(make_group(adapter_layout(run_.model, *run_.lora), run_.seed, device_, learned));
  if (run_.model.moe_layers() > 0 && run_.model.router.bias_update_rate > 0) add(Group::router_bias, -1);
  return out;
}

void ParameterBuffers::make_slots(Group group, std::int64_t weights, std::int64_t gradients, std::vector<Slot>& slots,
                                  std::vector<GradientBuffer>& buffers) {
  const auto storages = [&](std::int64_t count, at::ScalarType type) {
    std::vector<Tensor> out;
    for (std::int64_t slot = 0; slot < count; ++slot)
      out.push_back(at::zeros({slot_elements(run_.model, run_.layout, group, slot, count)},
                              at::TensorOptions(device_).dtype(type)));
    return out;
  };
  const auto weight_storage = storages(weights, type_),
             gradient_storage = storages(frozen() ? 0 : gradients, at::kFloat);
  for (std::int64_t layer = 0; layer < run_.model.blocks(); ++layer) {
    const GroupLayout& layout = groups_[static_cast<std::size_t>((group == Group::dense ? 2 : 3) + 2 * layer)].layout;
    slots.push_back(Slot::make(layout, at::TensorOptions(device_).dtype(type_),
                               weight_storage[static_cast<std::size_t>(layer % weights)], !frozen()));
    buffers.push_back(frozen() ? GradientBuffer{}
                               : GradientBuffer::make(layout, device_,
                                                      gradient_storage[static_cast<std::size_t>(layer % gradients)]));
  }
}

ShardedGroup& ParameterBuffers::group_of(const OpInstance& instance) {
  switch (instance.op->group) {
    case Group::embedding:
      return groups_[0];
    case Group::head:
      return groups_[1];
    case Group::dense:
      return groups_[static_cast<std::size_t>(2 + 2 * instance.layer)];
    case Group::adapter:
      return adapter_group();
    default:
      return groups_[static_cast<std::size_t>(3 + 2 * instance.layer)];
  }
}

Slot& ParameterBuffers::slot_of(const OpInstance& instance) {
  return of_group(instance, embedding_, head_, dense_slots_, expert_slots_);
}

GradientBuffer& ParameterBuffers::gradient_of(const OpInstance& instance) {
  return of_group(instance, embedding_gradient_, head_gradient_, dense_gradients_, expert_gradients_);
}

void ParameterBuffers::make_slot(const OpInstance& instance) {
  if (instance.op->group == Group::embedding || instance.op->group == Group::head)
    slot_of(instance) = Slot::make(group_of(instance).layout, at::TensorOptions(device_).dtype(type_), {}, !frozen());
}

GradientBuffer& ParameterBuffers::head_gradient() {
  if (!head_gradient_.flat.defined()) head_gradient_ = GradientBuffer::make(groups_[1].layout, device_);
  return head_gradient_;
}

GradientBuffer& ParameterBuffers::embedding_gradient() {
  if (run_.model.tied) return head_gradient_;
  if (!embedding_gradient_.flat.defined()) embedding_gradient_ = GradientBuffer::make(groups_[0].layout, device_);
  return embedding_gradient_;
}

void ParameterBuffers::clear_head_gradient() {
  if (run_.layout.reduce_every_microbatch)
    head_gradient_ = GradientBuffer{};
  else if (!frozen())
    head_gradient_.flat.zero_();
}

ShardedGroup& ParameterBuffers::adapter_group() {
  const auto found = std::ranges::find(groups_, Group::adapter, [](const ShardedGroup& g) { return g.layout.group; });
  if (found == groups_.end()) throw_runtime("the run has no adapter; fix trainer/executor/parameter_buffers.cpp");
  return *found;
}

void ParameterBuffers::make_adapter() {
  const ShardedGroup& group = adapter_group();
  adapter_ = Slot::make(group.layout, at::TensorOptions(device_).dtype(type_));
  adapter_.accumulate_into(GradientBuffer::make(group.layout, device_, group.gradient));
  attach_adapter(dense_slots_, adapter_, run_.model, *run_.lora);
}

void ParameterBuffers::begin_adapter() {
  const at::NoGradGuard no_grad;
  ShardedGroup& group = adapter_group();
  adapter_.flat.copy_(group.master);
  group.gradient.zero_();
}

void ParameterBuffers::add_slots(int layer, std::vector<Tensor>& out) const {
  for (const std::vector<Slot>* slots : {&dense_slots_, &expert_slots_}) {
    const Slot& slot = (*slots)[static_cast<std::size_t>(layer)];
    out.push_back(slot.flat);
    for (const FactorPair& pair : slot.adapters) out.insert(out.end(), {pair.a, pair.b});
  }
}

}  // namespace wt
