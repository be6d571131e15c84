#include "sim/cost/kernels/grouped_products.hpp"

#include <algorithm>

namespace wt {
namespace {

constexpr double kFewestGroupRows = 128;  // a tile's rows in every library of the table
// The highest sustained share of the data sheet's FLOP/s: 703 and 705 of 989 TFLOP/s on H200 (TileOPs, torch), whose
// 700 W then bind.
constexpr double kSustainedShare = 0.71;
// Weight gradients of narrow operands are added to sums in fp32, which are read and written (DeepGEMM's
// wgrad_gemm_fp8_fp8_fp32: "results will be accumulated into the output tensor").
constexpr double kSummedBytes = 8;

}  // namespace

double filled(double rows_of_group) { return std::max(kFewestGroupRows, rows_of_group); }

GroupedProduct equal_groups(double groups, double rows_of_each, double n, double k) {
  return {
      .groups = groups, .rows = groups * rows_of_each, .filled_rows = groups * filled(rows_of_each), .n = n, .k = k};
}

std::array<double, kGroupedTerms> grouped_terms(const GroupedProduct& p, const DataSheet& gpu) {
  const double result_bytes = std::max(2.0, p.element_bytes);
  const double gradient_bytes = p.element_bytes < 2 ? kSummedBytes : p.element_bytes;
  const double weights = p.groups * p.n * p.k * (p.weight_gradient ? gradient_bytes : p.element_bytes);
  const double rows = p.rows * (p.k * p.element_bytes + p.n * (p.weight_gradient ? p.element_bytes : result_bytes));
  return {1, 2 * p.filled_rows * p.n * p.k / (p.relative_rate * gpu.flops), weights / gpu.memory_Bps,
          rows / gpu.memory_Bps};
}

GroupedConstants typical_grouped() {
  return {.launch_s = 4e-6, .flops = 1 / 0.7, .weights = 0.9, .rows = 0.15, .factors = {}};
}

std::string grouped_factor_name(const std::string& library, bool weight_gradient) {
  return weight_gradient ? library + ", weight gradient" : library;
}

bool knows_library(const GroupedConstants& constants, const std::string& library) {
  return constants.factors.count(library) > 0;
}

double grouped_time_s(const GroupedProduct& product, const DataSheet& gpu, const GroupedConstants& constants,
                      const std::string& library) {
  const auto [one, flops_s, weights_s, rows_s] = grouped_terms(product, gpu);
  const double sum =
      one * constants.launch_s + constants.flops * flops_s + constants.weights * weights_s + constants.rows * rows_s;
  auto factor =
      product.weight_gradient ? constants.factors.find(grouped_factor_name(library, true)) : constants.factors.end();
  if (factor == constants.factors.end()) factor = constants.factors.find(library);
  return std::max(sum * (factor == constants.factors.end() ? 1 : factor->second), flops_s / kSustainedShare);
}

}  // namespace wt
