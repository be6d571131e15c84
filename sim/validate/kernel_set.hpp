// The rows that kernel predictions are made from, with what is known of each: data sheet, bytes, group.
#pragma once
#include <string>
#include <vector>

#include "configs/spec/data_sheet.hpp"
#include "sim/validate/kernel_rows.hpp"
#include "sim/validate/wave_model.hpp"

namespace wt {

struct KernelSample {
  const KernelRow* row = nullptr;
  DataSheet gpu;
  Product product;     ///< of a gemm
  double bytes = 0;    ///< that a memory-bound kernel moves
  std::string group;   ///< GPU, op, n and k: what is left out together
  std::string reason;  ///< why it cannot be used; empty = it can

  bool is_product() const { return row->op == "gemm"; }
  /// FLOPs (products) or bytes (others) over what the data sheet allows in the measured time.
  double share_of_peak() const;
};

KernelSample kernel_sample(const KernelRow& row);

/// Usable samples of both, one a measurement: what stands in `rows` and in `reference` counts once.
std::vector<KernelSample> training_set(const std::vector<KernelSample>& rows, const std::vector<KernelRow>& reference);

}  // namespace wt
