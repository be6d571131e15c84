#include "trainer/executor/state_before.hpp"

#include "trainer/pch.hpp"

namespace wt {
namespace {

/// The tensors that a step changes.
std::vector<at::Tensor> tensors_of(const std::vector<ShardedGroup>& groups) {
  std::vector<at::Tensor> out;
  for (const ShardedGroup& g : groups)
    if (!g.frozen())
      for (at::Tensor& state : g.states()) out.push_back(std::move(state));
  return out;
}

}  // namespace

void StateBefore::keep(std::int64_t step, const std::vector<ShardedGroup>& groups) {
  if (step_ == step) return;
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> now = tensors_of(groups);
  if (kept_.empty())
    for (const at::Tensor& tensor : now) kept_.push_back(at::empty_like(tensor));
  for (std::size_t i = 0; i < now.size(); ++i) kept_[i].copy_(now[i]);
  step_ = step;
}

void StateBefore::restore(std::int64_t done, std::vector<ShardedGroup>& groups) {
  const at::NoGradGuard no_grad;
  if (step_ == done + 1) {
    const std::vector<at::Tensor> now = tensors_of(groups);
    for (std::size_t i = 0; i < now.size(); ++i) at::Tensor(now[i]).copy_(kept_[i]);
  }
  step_ = 0;  // the step will be repeated, and change the state again
}

}  // namespace wt
