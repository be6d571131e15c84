// The executor's ops on parameter groups: gather, reduce, accumulate, norm, optimizer.
#include <cmath>

#include "configs/base/error.hpp"
#include "kernels/kernels.h"
#include "sim/program/compose/expert_copies.hpp"
#include "trainer/executor/executor.hpp"
#include "trainer/model/functions.hpp"
#include "trainer/pch.hpp"

namespace wt {

using at::Tensor;

void Executor::refresh(const OpInstance& instance) {
  const at::NoGradGuard no_grad;
  ShardedGroup& group = buffers_.group_of(instance);
  Tensor own =
      group.weights.narrow(0, group.layout.state_index * group.layout.state_elements, group.layout.state_elements);
  own.copy_(group.master);
  issued_ = communicators_.all_gather(Axis::optimizer_shard, group.weights, own);
}

void Executor::unshard(const OpInstance& instance) {
  if (instance.op->group == Group::adapter) return buffers_.begin_adapter();
  const at::NoGradGuard no_grad;
  ShardedGroup& group = buffers_.group_of(instance);
  buffers_.make_slot(instance);
  Slot& slot = buffers_.slot_of(instance);
  const std::int64_t n = group.layout.shard_elements;
  Tensor own = slot.flat.narrow(0, group.layout.shard_index * n, n);
  own.copy_(group.weights.defined() ? group.weights : group.master);
  if (group.layout.shard_ranks > 1) issued_ = communicators_.all_gather(shard_axis(instance.op->group), slot.flat, own);
}

void Executor::reduce_gradients(const OpInstance& instance) {
  ShardedGroup& group = buffers_.group_of(instance);
  if (instance.op->group == Group::adapter) {
    issued_ = communicators_.all_reduce(instance.op->collective.axis, group.gradient);
    return;
  }
  Tensor& reduced = reduced_[&group];
  reduced = at::empty({group.layout.shard_elements}, at::TensorOptions(device_).dtype(at::kFloat));
  issued_ = communicators_.reduce_scatter(shard_axis(instance.op->group), reduced, buffers_.gradient_of(instance).flat);
}

void Executor::accumulate(const OpInstance& instance) {
  const at::NoGradGuard no_grad;
  ShardedGroup& group = buffers_.group_of(instance);
  GradientBuffer& gradient = buffers_.gradient_of(instance);
  const bool every = run_.layout.reduce_every_microbatch, sharded = group.layout.shard_ranks > 1;
  const Tensor sum = sharded ? reduced_.at(&group) : gradient.flat;
  if (instance.microbatch == 0 || !every)
    group.gradient.copy_(sum);
  else
    group.gradient.add_(sum);
  reduced_.erase(&group);
  const bool outer = instance.op->group == Group::embedding || instance.op->group == Group::head;
  if (outer && every)
    gradient = GradientBuffer{};
  else
    gradient.flat.zero_();
}

void Executor::reduce_replicas(const OpInstance& instance) {
  ShardedGroup& group = buffers_.group_of(instance);
  const Axis axis = instance.op->collective.axis;
  issued_ = axis == Axis::optimizer_shard ? communicators_.reduce_scatter(axis, group.state_gradient(), group.gradient)
                                          : communicators_.all_reduce(axis, group.state_gradient());
}

void Executor::gradient_norm() {
  Tensor sum = at::zeros({}, at::TensorOptions(device_).dtype(at::kDouble));
  const auto add = [&sum](const Tensor& gradient) { sum += gradient.dot(gradient); };
  for (const ShardedGroup& group : buffers_.groups()) {
    if (group.layout.group == Group::router_bias || group.frozen()) continue;
    const Tensor gradient = group.state_gradient();
    if (group.layout.group != Group::expert || !has_copies(run_.model, run_.layout)) {
      add(gradient);
      continue;
    }
    group.layout.for_state_parts([&](const ParameterInfo& p, std::int64_t, std::int64_t count, std::int64_t at) {
      if (!p.further_copy) add(gradient.narrow(0, at, count));
    });
  }
  norm_.copy_(sum);
}

void Executor::optimizer_step() {
  const OptimizerSpec& o = run_.optimizer;
  communicators_.before_host_read();
  const double norm = std::sqrt(norm_.item<double>());  // the host needs it, to clip and to check that it is finite
  result_.gradient_norm = norm;
  if (gradients_good_ && !gradients_good_(step_)) throw RepeatStep{};
  if (!std::isfinite(norm))  // checked before the update, so that masters and later checkpoints stay valid
    throw Diverged(rank_, step_, norm);
  if (before_) before_->keep(step_, buffers_.groups());
  const double scale = o.clip_norm > 0 && norm > o.clip_norm ? o.clip_norm / norm : 1.0;
  for (ShardedGroup& group : buffers_.groups()) {
    if (group.layout.group == Group::router_bias || group.frozen()) continue;  // that one is moved by update_bias
    float *const p = group.master.data_ptr<float>(), *const m = group.exp_avg.data_ptr<float>();
    const float* const g = group.state_gradient().data_ptr<float>();
    const std::int64_t n = group.layout.state_elements;
    const WtStatus status = o.one_moment() ? wt_lion(stream_of(group.master), p, m, g, n, learning_rate_, o.beta1,
                                                     o.beta2, o.weight_decay, static_cast<float>(scale))
                                           : wt_adamw(stream_of(group.master), p, m, group.exp_avg_sq.data_ptr<float>(),
                                                      g, n, learning_rate_, o.beta1, o.beta2, o.eps, o.weight_decay,
                                                      step_, static_cast<float>(scale));
    if (status != WT_OK) throw_runtime("{}", wt_kernel_error());
  }
  losses_.zero_();
  for (std::int64_t depth = 0; depth < cross_entropy_.size(0); ++depth)
    losses_.select(0, depth == 0 ? 0 : kStepTerms - 1 + depth)
        .copy_(cross_entropy_.select(0, depth) / segments_.loss_tokens(depth));
  if (router_loss_.aux.defined()) losses_.select(0, 1).copy_(router_loss_.aux);
  if (router_loss_.z.defined()) losses_.select(0, 2).copy_(router_loss_.z);
  const AfterStep after = what_follows_ ? what_follows_() : AfterStep::go_on;
  if (after != AfterStep::go_on) losses_.select(0, 3).fill_(after == AfterStep::end ? kAsksToEnd : kAsksToRegroup);
}

Tensor Executor::router_bias(std::int64_t layer) {
  if (!buffers_.has_router_biases() || !run_.model.moe(layer)) return {};
  return buffers_.groups().back().master.view_as(routed_.loads())[run_.model.moe_layers_before(layer)];
}

void Executor::update_bias() {
  if (before_) before_->keep(step_, buffers_.groups());
  Tensor bias = buffers_.groups().back().master.view_as(routed_.loads());
  update_router_bias(bias, routed_.loads(), run_.model.router.bias_update_rate);
}

}  // namespace wt
