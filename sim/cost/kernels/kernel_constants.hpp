// What the times of kernels on GPUs are made of: constants that were fitted to published measurements, as data. They
// are made by sim/fit and kept in configs/constants/kernels.json.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/cost/kernels/memory_bound.hpp"
#include "sim/cost/kernels/wave_model.hpp"
#include "sim/statistics/intervals.hpp"

namespace wt {

/// A product that was measured, and what the constants leave over: log(measured / predicted).
struct ProductResidual {
  double m = 0, n = 0, k = 0, relative_rate = 1, log_left = 0;
};

/// Products of one GPU.
struct ProductConstants {
  std::string gpu;  ///< DataSheet::name
  WaveConstants wave;
  std::vector<ProductResidual> residuals;  ///< by m
};

/// One op that passes through memory on one GPU; op "" = all such ops of the GPU together.
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
  double log_factor = 0;  ///< log(measured / what the shape says)
};

/// How many points were measured of an op on a GPU.
struct PointCount {
  std::string gpu, op;
  std::int64_t points = 0;
};

struct KernelConstants {
  std::vector<ProductConstants> products;
  std::vector<RowConstants> rows;
  std::vector<LibraryRow> libraries;
  std::vector<PointCount> counts;
  ErrorBounds bounds;  ///< of answers, by KernelTimes::Answer::regime
};

void to_json(nlohmann::json& json, const KernelConstants& constants);
void from_json(const nlohmann::json& json, KernelConstants& constants);

}  // namespace wt
