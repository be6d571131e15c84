// A step in the words of those who train: tokens a second of a GPU, model FLOPs utilisation.
#pragma once
#include <string>

#include "reports/model/report.hpp"

namespace wt {

struct Throughput {
  double flops_per_token = 0;  ///< RunSpec::flops_per_token
  double tokens_per_s_per_gpu = 0;
  double peak_flops = 0;  ///< mean_peak_flops

  double mfu() const { return flops_per_token * tokens_per_s_per_gpu / peak_flops; }
};

/// With its definition: "29.3 % = 221.2 GFLOP a token (no recompute, causal attention) x 1,310 tokens/s/GPU over 989
/// TFLOP/s".
Cell mfu_cell(const Throughput& of);

}  // namespace wt
