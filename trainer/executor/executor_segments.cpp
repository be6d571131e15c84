// The executor's computation: the batch, and the segments of a block in either direction.
#include "sim/program/compose/expert_copies.hpp"
#include "trainer/executor/executor.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

/// Asynchronous: the host does not wait.
at::Tensor to_device(const at::Tensor& tensor, at::Device device) {
  return device.is_cpu() ? tensor : tensor.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace

LayerRecompute Executor::recompute_of(const OpInstance& instance) const {
  return run_.layout.recompute.of(instance.layer, run_.model.layers);
}

void Executor::load_batch(int microbatch) {
  Microbatch loaded = (*load_)(microbatch);
  segments_.set_documents(std::move(loaded.documents));
  batch_ = {to_device(loaded.tokens, device_), to_device(loaded.targets, device_), {}};
}

void Executor::embed(bool backward) {
  if (!backward) {
    activation_ = segments_.embed(buffers_.embedding(), batch_.tokens);
    if (run_.model.mtp_layers == 0) buffers_.give_back_embedding();  // else the modules read it
    return;
  }
  segments_.embed_backward(buffers_.embedding_gradient(), batch_.tokens, activation_gradient_);
  activation_gradient_.reset();
}

at::Tensor Executor::module_tokens(std::int64_t layer) const {
  // The target of the previous depth; at the end, where there is no target, token 0 (as Megatron-Core's roll_tensor).
  return batch_.targets.select(0, layer - run_.model.layers).clamp_min(0);
}

void Executor::take_input(const OpInstance& instance, LayerState& s) {
  s.input = std::move(activation_);
  if (run_.model.mtp(instance.layer))
    s.module.embedding = segments_.embed(buffers_.embedding(), module_tokens(instance.layer));
}

void Executor::finish_module(const OpInstance& instance, const ModuleState& module) {
  if (!run_.model.mtp(instance.layer)) return;
  const at::NoGradGuard no_grad;
  activation_gradient_.add_(module.input_gradient);
  segments_.embed_backward(buffers_.embedding_gradient(), module_tokens(instance.layer), module.embedding.grad());
  const Slot& weights = buffers_.slot_of(instance);
  for (std::size_t i = 0; i < module.head_norm.leaves.size(); ++i)
    weights["shared_head." + module.head_norm.names[i]].grad().add_(module.head_norm.leaves[i].grad());
}

void Executor::project(const OpInstance& instance, LayerState& s) {
  const Direction direction = instance.op->direction;
  if (direction == Direction::backward) {
    const ModuleState module = s.module;
    activation_gradient_ = segments_.project_backward(s);
    if (buffers_.frozen() && instance.layer == 0) activation_gradient_.reset();
    finish_module(instance, module);
    return;
  }
  if (direction == Direction::forward) take_input(instance, s);
  segments_.project(s, buffers_.slot_of(instance), instance.layer, direction, recompute_of(instance));
}

void Executor::attention(const OpInstance& instance, LayerState& s) {
  const Direction direction = instance.op->direction;
  const bool whole = run_.layout.context == 1;  // otherwise project contains the block's begin
  if (direction == Direction::backward) {
    const ModuleState module = s.module;
    activation_gradient_ = segments_.attention_backward(s);
    if (buffers_.frozen() && instance.layer == 0) activation_gradient_.reset();
    if (whole) finish_module(instance, module);
    return;
  }
  if (direction == Direction::forward) {
    if (whole) take_input(instance, s);
    if (forced_) s.choice.forced = to_device(forced_(instance.microbatch, instance.layer), device_);
    if (!device_.is_cpu() && (has_copies(run_.model, run_.layout) || run_.model.router.drops()))
      communicators_.before_host_read();
  }
  RouterLoss counted;  // in forward already
  segments_.attention(s, buffers_.slot_of(instance), instance.layer, direction, recompute_of(instance),
                      router_bias(instance.layer), direction == Direction::forward ? router_loss_ : counted);
  if (direction == Direction::forward) routed_.count(instance, s);
}

void Executor::ffn(const OpInstance& instance, LayerState& s) {
  const Direction direction = instance.op->direction;
  const bool dense = !run_.model.moe(instance.layer);
  if (direction == Direction::backward) {
    if (dense) s.output_gradient = std::move(activation_gradient_);
    segments_.ffn_backward(s);
    return;
  }
  segments_.ffn(s, buffers_.slot_of(instance), instance.layer, direction, recompute_of(instance));
  if (direction == Direction::forward && dense) activation_ = std::move(s.residual);
}

void Executor::experts(const OpInstance& instance, LayerState& s) {
  // LibTorch's fp32 grouped product and the addition of biases read the offsets on the host.
  if (!device_.is_cpu() && (type_ == at::kFloat || run_.model.ffn_bias)) communicators_.before_host_read();
  if (instance.op->direction == Direction::backward)
    segments_.experts_backward(s);
  else
    segments_.experts(s, buffers_.slot_of(instance), instance.op->direction, recompute_of(instance));
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
  if (!buffers_.frozen()) buffers_.head().accumulate_into(buffers_.head_gradient());
  const std::int64_t layers = run_.model.layers, modules = run_.model.mtp_layers;
  const auto layer = [&](std::int64_t index) -> LayerState& { return layers_[static_cast<std::size_t>(index)]; };
  for (std::int64_t depth = 0; depth <= modules; ++depth) {
    const bool last = depth == modules;
    // The hidden state that the module of the next depth reads, or the last module's output.
    const at::Tensor& hidden = last ? activation_ : layer(layers + depth).input;
    at::Tensor& gradient = last ? activation_gradient_ : layer(layers + depth).module.input_gradient;
    gradient =
        segments_.head(buffers_.head(), depth == 0 ? buffers_.head() : layer(layers + depth - 1).module.head_norm,
                       hidden, batch_.targets.select(0, depth), depth, cross_entropy_.select(0, depth));
  }
  activation_.reset();
  if (modules > 0) buffers_.embedding_gradient();  // the modules' backward adds to it
  buffers_.give_back_embedding();
  buffers_.give_back_head();
}

}  // namespace wt
