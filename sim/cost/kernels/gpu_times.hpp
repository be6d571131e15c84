// Times of a step program's work items on a GPU of which only the data sheet and published kernel times are known:
// matrix products by the wave model, everything else by FLOPs or bytes over what the data sheet allows. How far a
// framework's kernels stay behind that is its stack's business (step_model.hpp).
#pragma once
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "configs/spec/data_sheet.hpp"
#include "sim/cost/kernels/wave_model.hpp"
#include "sim/cost/op_cost.hpp"
#include "sim/measurements/kernel_rows.hpp"

namespace wt {

class GpuTimes {
 public:
  /// Fits the wave model of every GPU with enough products among `reference` (a second for thousands of rows).
  explicit GpuTimes(const std::vector<KernelRow>& reference);

  /// One product of a 16-bit type, or of fp8 (`relative_rate` 2). Constants come from the GPU of the nearest
  /// generation.
  double product_s(double m, double n, double k, double relative_rate, const DataSheet& gpu) const;
  /// All products of a gemm or grouped gemm item: two for a backward one. Unlike groups take no less than equal ones.
  double products_s(const WorkItem& item, const BoundRows& rows, double relative_rate, const DataSheet& gpu) const;

 private:
  struct Known {
    DataSheet gpu;
    WaveConstants constants;
  };
  std::vector<Known> known_;
  mutable std::map<std::tuple<std::string, double, double, double, double>, double> times_;
};

}  // namespace wt
