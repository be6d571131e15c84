// Constants of kernel times on GPUs, fitted to published measurements, as plain data. sim/fit makes them;
// configs/constants/kernels.json keeps them.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/cost/kernels/grouped_products.hpp"
#include "sim/cost/kernels/memory_bound.hpp"
#include "sim/cost/kernels/wave_model.hpp"
#include "sim/statistics/intervals.hpp"

namespace wt {

/// A measured product and its residual: log(measured / predicted).
struct ProductResidual {
  double m = 0, n = 0, k = 0, relative_rate = 1, log_left = 0;
};

/// Constants of one GPU's products.
struct ProductConstants {
  std::string gpu;  ///< DataSheet::name
  WaveConstants wave;
  std::vector<ProductResidual> residuals;  ///< sorted by m
};

/// Constants of one memory-bound op on one GPU; op "" = all such ops of the GPU together.
struct RowConstants {
  std::string gpu, op;
  MemoryBoundConstants constants;
};

/// One measurement of a library's kernel.
struct LibraryRow {
  std::string kind;     ///< "attention_forward"
  std::string library;  ///< "FlashAttention-3"
  std::string gpu;
  std::string origin;     ///< who published it
  double log_factor = 0;  ///< log(measured / predicted from the shape)
};

/// Number of measurements of an op on a GPU.
struct PointCount {
  std::string gpu, op;
  std::int64_t points = 0;
};

struct KernelConstants {
  std::vector<ProductConstants> products;
  GroupedConstants grouped = typical_grouped();
  std::vector<RowConstants> rows;
  std::vector<LibraryRow> libraries;
  std::vector<PointCount> counts;
  ErrorBounds bounds;  ///< intervals of answers, by KernelTimes::Answer::regime
};

void to_json(nlohmann::json& json, const KernelConstants& constants);
void from_json(const nlohmann::json& json, KernelConstants& constants);

}  // namespace wt
