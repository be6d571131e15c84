// The GEMM staircase: the dense products of several models at rising row counts, forward and both backward products
// separately, to plan layouts and batches that no run has had yet.
#pragma once
#include <string>
#include <vector>

#include "bench/suites/bench_case.hpp"

namespace wt {

struct Staircase {
  std::vector<WorkItem> forward;  ///< the step program's products: "gemm/forward"
  std::vector<BenchCase>
      backward;  ///< "gemm_rows" (gradient of rows) and "gemm_weight" (of the weight) at the same shapes
  std::vector<std::string> left_out;  ///< shapes "n x k" that are too large for this device at any row count
};

/// Row counts 64 to 16,384 in half octaves (quick: 256 to 16,384, doubling), up to 20 TFLOP a product on a GPU and 40
/// GFLOP on a CPU (quick: 10). Every (n, k) of the models' steps occurs once. bf16 on a GPU, fp32 on a CPU.
Staircase gemm_staircase(const std::vector<ModelSpec>& models, at::Device device, bool quick);

}  // namespace wt
