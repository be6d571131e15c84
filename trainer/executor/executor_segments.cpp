// What the executor computes: the batch, and the segments of a block in either direction.
#include "sim/program/build/expert_copies.hpp"
#include "trainer/executor/executor.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

/// Without holding up the host.
at::Tensor to_device(const at::Tensor& tensor, at::Device device) {
  return device.is_cpu() ? tensor : tensor.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace

LayerRecompute Executor::recompute_of(const OpInstance& instance) const {
  return run_.layout.recompute.of(instance.layer, run_.model.layers);
}

void Executor::load_batch(int microbatch) {
  const Microbatch loaded = (*load_)(microbatch);
  batch_ = {to_device(loaded.tokens, device_), to_device(loaded.targets, device_)};
}

void Executor::embed(bool backward) {
  if (!backward) {
    activation_ = segments_.embed(run_.model.tied ? head_ : embedding_, batch_.tokens);
    embedding_ = Slot{};
    return;
  }
  if (!run_.model.tied && !embedding_gradient_.flat.defined())
    embedding_gradient_ = GradientBuffer::make(groups_[0].layout, device_);
  segments_.embed_backward(run_.model.tied ? head_gradient_ : embedding_gradient_, batch_.tokens, activation_gradient_);
  activation_gradient_.reset();
}

void Executor::project(const OpInstance& instance, LayerState& s) {
  const Direction direction = instance.op->direction;
  if (direction == Direction::backward) {
    activation_gradient_ = segments_.project_backward(s);
    return;
  }
  if (direction == Direction::forward) s.input = std::move(activation_);
  segments_.project(s, slot_of(instance), direction, recompute_of(instance));
}

void Executor::attention(const OpInstance& instance, LayerState& s) {
  const Direction direction = instance.op->direction;
  if (direction == Direction::backward) {
    activation_gradient_ = segments_.attention_backward(s);
    return;
  }
  if (direction == Direction::forward) {
    if (activation_.defined()) s.input = std::move(activation_);
    if (forced_) s.choice.forced = to_device(forced_(instance.microbatch, instance.layer), device_);
    if (!device_.is_cpu() && has_copies(run_.model, run_.layout)) communicators_.before_host_read();
  }
  RouterLoss counted;  // in forward already
  segments_.attention(s, slot_of(instance), instance.layer, direction, recompute_of(instance),
                      router_bias(instance.layer), direction == Direction::forward ? router_loss_ : counted);
  if (direction == Direction::forward) count_rows(instance, s);
}

void Executor::ffn(const OpInstance& instance, LayerState& s) {
  const Direction direction = instance.op->direction;
  const bool dense = !run_.model.moe(instance.layer);
  if (direction == Direction::backward) {
    if (dense) s.output_gradient = std::move(activation_gradient_);
    segments_.ffn_backward(s);
    return;
  }
  segments_.ffn(s, slot_of(instance), instance.layer, direction, recompute_of(instance));
  if (direction == Direction::forward && dense) activation_ = std::move(s.residual);
}

void Executor::experts(const OpInstance& instance, LayerState& s) {
  // LibTorch's fp32 grouped product reads its offsets, and so does what adds biases.
  if (!device_.is_cpu() && (type_ == at::kFloat || run_.model.ffn_bias)) communicators_.before_host_read();
  if (instance.op->direction == Direction::backward)
    segments_.experts_backward(s);
  else
    segments_.experts(s, slot_of(instance), instance.op->direction, recompute_of(instance));
}

void Executor::combine(const OpInstance& instance, LayerState& s) {
  if (instance.op->direction == Direction::backward) {
    s.output_gradient = std::move(activation_gradient_);
    segments_.combine_rows_backward(s);
    return;
  }
  if (run_.layout.context > 1) add_loss(router_loss_.aux, segments_.balance_loss(s));
  activation_ = segments_.combine_rows(s, recompute_of(instance));
}

void Executor::head_loss() {
  if (!head_gradient_.flat.defined()) head_gradient_ = GradientBuffer::make(groups_[1].layout, device_);
  head_.accumulate_into(head_gradient_);
  activation_gradient_ = segments_.head(head_, activation_, batch_.targets, cross_entropy_);
  activation_.reset();
  head_ = Slot{};
}

}  // namespace wt
