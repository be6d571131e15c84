#include "trainer/executor/expert_copies_exchange.hpp"

#include "sim/program/compose/expert_copies.hpp"
#include "trainer/pch.hpp"

namespace wt {

using at::Tensor;

namespace {

/// Gradient of one slot, one view per tensor of an expert.
std::vector<Tensor> slot_gradient(const GradientBuffer& gradient, std::int64_t slot) {
  std::vector<Tensor> out;
  for (const Tensor& leaf : gradient.leaves) out.push_back(leaf.select(0, slot).flatten());
  return out;
}

}  // namespace

/// Own slots that hold a logical expert, ascending.
std::vector<std::int64_t> ExpertCopiesExchange::own_slots(std::int64_t layer, std::int64_t expert) const {
  const std::int64_t n = run_.layout.slots_per_rank(run_.model), first = own_ * n;
  std::vector<std::int64_t> out;
  for (std::int64_t slot = 0; slot < n; ++slot)
    if (run_.layout.expert_in_slot(layer, first + slot) == expert) out.push_back(slot);
  return out;
}

/// Sum over own slots into `out`, (expert_parameters,) fp32.
void ExpertCopiesExchange::own_gradient(std::int64_t layer, const GradientBuffer& gradient, std::int64_t expert,
                                        Tensor out) const {
  bool first = true;
  for (const std::int64_t slot : own_slots(layer, expert)) {
    std::int64_t at = 0;
    for (const Tensor& part : slot_gradient(gradient, slot)) {
      Tensor target = out.narrow(0, at, part.numel());
      first ? target.copy_(part) : target.add_(part);
      at += part.numel();
    }
    first = false;
  }
}

Pending ExpertCopiesExchange::exchange(std::int64_t layer, const GradientBuffer& gradient) {
  const at::NoGradGuard no_grad;
  const CopyExchange exchange = copy_exchange(run_.model, run_.layout, layer, own_);
  const auto options = at::TensorOptions(device_).dtype(at::kFloat);
  const std::int64_t width = run_.model.expert_parameters();
  Tensor sent = at::empty({exchange.total(), width}, options);
  received_ = at::empty({exchange.total(), width}, options);
  std::int64_t row = 0;
  for (const auto& with : exchange.shared)
    for (const std::int64_t expert : with) own_gradient(layer, gradient, expert, sent.select(0, row++));
  return communicators_.all_to_all(Axis::expert, received_, sent, exchange.rows(), exchange.rows());
}

void ExpertCopiesExchange::add(std::int64_t layer, const GradientBuffer& gradient) {
  const at::NoGradGuard no_grad;
  const CopyExchange exchange = copy_exchange(run_.model, run_.layout, layer, own_);
  const auto options = at::TensorOptions(device_).dtype(at::kFloat);
  Tensor sum = at::empty({run_.model.expert_parameters()}, options), mine = at::empty_like(sum);
  for (const std::int64_t expert : exchange.experts) {
    std::int64_t row = 0, holders = 0;
    own_gradient(layer, gradient, expert, mine);
    const auto add_part = [&](const Tensor& part) { holders++ == 0 ? sum.copy_(part) : sum.add_(part); };
    for (std::int64_t rank = 0; rank < run_.layout.expert; ++rank) {
      if (rank == own_) add_part(mine);
      for (const std::int64_t other : exchange.shared[static_cast<std::size_t>(rank)]) {
        if (other == expert) add_part(received_.select(0, row));
        ++row;
      }
    }
    for (const std::int64_t slot : own_slots(layer, expert)) {
      std::int64_t at = 0;
      for (const Tensor& part : slot_gradient(gradient, slot)) {
        part.copy_(sum.narrow(0, at, part.numel()));
        at += part.numel();
      }
    }
  }
  received_.reset();
}

}  // namespace wt
