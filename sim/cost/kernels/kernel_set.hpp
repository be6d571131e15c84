// The rows that kernel predictions are made from, with what is known of each: data sheet, bytes, group.
#pragma once
#include <string>
#include <vector>

#include "configs/spec/data_sheet.hpp"
#include "sim/cost/kernels/wave_model.hpp"
#include "sim/measurements/kernel_rows.hpp"

namespace wt {

struct KernelSample {
  const KernelRow* row = nullptr;
  DataSheet gpu;
  Product product;   ///< of a gemm, or one of a grouped one's
  double bytes = 0;  ///< that a memory-bound kernel moves
  /// What is left out together: GPU, op, n and k; of a named library's memory-bound kernels also the library, of
  /// attention GPU, source and pass.
  std::string group;
  std::string reason;  ///< why it cannot be used; empty = it can

  bool is_product() const { return row->op == "gemm"; }
  bool is_composed() const {
    return row->op == "grouped_gemm" || row->op.starts_with("moe_") || row->op.starts_with("attention_");
  }
  /// Predicted by a library's factor (libraries.hpp), not by its GPU's constants alone.
  bool of_library() const { return !is_product() && (is_composed() || !row->implementation.empty()); }
  /// FLOPs (products) or bytes (others) over what the data sheet allows in the measured time.
  double share_of_peak() const;
};

KernelSample kernel_sample(const KernelRow& row);

/// Usable samples of both, one a measurement: what stands in `rows` and in `reference` counts once.
std::vector<KernelSample> training_set(const std::vector<KernelSample>& rows, const std::vector<KernelRow>& reference);

}  // namespace wt
