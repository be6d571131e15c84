#include "planner/cli/parts/throughput.hpp"

#include <fmt/core.h>

#include "configs/base/number.hpp"

namespace wt {

Cell mfu_cell(const Throughput& of) {
  return {of.mfu(),
          fmt::format("{:.1f} % = {:.1f} GFLOP a token (no recompute, causal attention) x {} tokens/s/GPU over {:.0f} "
                      "TFLOP/s",
                      100 * of.mfu(), of.flops_per_token / 1e9, format_number(of.tokens_per_s_per_gpu),
                      of.peak_flops / 1e12),
          Evidence::derived};
}

}  // namespace wt
