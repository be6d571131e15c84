#include "trainer/executor/routed_rows.hpp"

#include "trainer/pch.hpp"

namespace wt {

using at::Tensor;

RoutedRows::RoutedRows(const RunSpec& run, at::Device device, bool balanced) : run_(run) {
  if (balanced)
    loads_ = at::zeros({run.model.moe_layers(), run.model.experts}, at::TensorOptions(device).dtype(at::kFloat));
}

void RoutedRows::begin() {
  if (loads_.defined()) loads_.zero_();
  counted_.clear();
}

void RoutedRows::count(const OpInstance& instance, const LayerState& s) {
  const Tensor& rows = s.choice.expert_counts;
  if (!rows.defined()) return;
  counted_.emplace_back(&instance, rows);
  if (loads_.defined()) loads_.select(0, run_.model.moe_layers_before(instance.layer)).add_(rows);
}

void RoutedRows::read(std::vector<std::vector<std::vector<std::int64_t>>>& routing) const {
  if (counted_.empty()) return;
  std::vector<Tensor> rows;
  for (const auto& [instance, counts] : counted_) rows.push_back(counts);
  const Tensor all = at::stack(rows).cpu();
  const std::int64_t* next = all.data_ptr<std::int64_t>();
  for (const auto& [instance, counts] : counted_) {
    routing[static_cast<std::size_t>(instance->microbatch)][static_cast<std::size_t>(instance->layer)].assign(
        next, next + run_.model.experts);
    next += run_.model.experts;
  }
}

}  // namespace wt
