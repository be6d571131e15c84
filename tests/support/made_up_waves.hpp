// A GPU and constants of its wave model, for tests of what kernels cost.
#pragma once
#include "configs/spec/data_sheet.hpp"
#include "sim/cost/kernels/wave_model.hpp"
#include "sim/measurements/kernel_rows.hpp"

namespace wt::test {

inline const DataSheet& h100() {
  static const DataSheet sheet = *data_sheet("H100-SXM");
  return sheet;
}

inline const WaveConstants kWave = {4e-6, 0.5e-6, 0.9, 0.6, {0.45, 0.6, 0.7, 0.8}, 2e-6, 3};

/// A measured kernel that nobody measured.
inline KernelRow timed_kernel(const std::string& gpu, const std::string& op, const std::string& dtype, double m,
                              double n, double k, double seconds) {
  KernelRow row;
  row.gpu = gpu, row.op = op, row.dtype = dtype, row.source = "made up";
  row.m = m, row.n = n, row.k = k;
  row.seconds = seconds;
  return row;
}

}  // namespace wt::test
