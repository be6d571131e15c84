// Rows that the routers of a step sent to each expert: for the record, and for loss-free balancing.
#pragma once
#include <ATen/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "configs/files/run.hpp"
#include "sim/program/program.hpp"
#include "trainer/model/segments.hpp"

namespace wt {

class RoutedRows {
 public:
  /// `balanced`: by biases of the routers, which `loads()` is kept for. `run` outlives this.
  RoutedRows(const RunSpec& run, at::Device device, bool balanced);
  /// Forgets the step before.
  void begin();
  /// Of one microbatch and layer; nothing of a dense one. The instance outlives the step.
  void count(const OpInstance& instance, const LayerState& s);
  /// [microbatch][layer] -> rows per logical expert, where they were counted.
  void read(std::vector<std::vector<std::vector<std::int64_t>>>& routing) const;
  /// (MoE layers, E) rows of this step, on this rank and then on all; undefined without biases.
  const at::Tensor& loads() const { return loads_; }

 private:
  const RunSpec& run_;
  at::Tensor loads_;
  std::vector<std::pair<const OpInstance*, at::Tensor>> counted_;  ///< rows per expert of every microbatch and layer
};

}  // namespace wt
