#include "planner/cli/parts/throughput.hpp"

#include <fmt/core.h>

#include "configs/base/number.hpp"

namespace wt {
namespace {

std::string billions(std::int64_t parameters) {
  const double count = static_cast<double>(parameters);
  return count < 1e9 ? fmt::format("{:.3g}M", count / 1e6) : fmt::format("{:.4g}B", count / 1e9);
}

}  // namespace

Cell mfu_cell(const Throughput& of) {
  return {of.mfu(),
          fmt::format("{:.1f} % = {:.1f} GFLOP a token (no recompute, causal attention) x {} tokens/s/GPU over {:.0f} "
                      "TFLOP/s",
                      100 * of.mfu(), of.flops_per_token / 1e9, format_number(of.tokens_per_s_per_gpu),
                      of.peak_flops / 1e12),
          Evidence::derived};
}

std::string parameters_text(const ModelSpec& model) {
  const std::string all = billions(model.total_parameters());
  return model.experts == 0 ? all
                            : fmt::format("{}, {} of them for each token", all, billions(model.active_parameters()));
}

}  // namespace wt
