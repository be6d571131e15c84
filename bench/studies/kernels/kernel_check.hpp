// Checks the kernels of the bandwidth benchmark against their formulas (kernels/kernels.h) in doubles, on rows spread
// over the whole range.
#pragma once
#include <string>

#include "bench/studies/kernels/arrays.hpp"

namespace wt::bandwidth {

/// Computes inputs that come from another kernel: codes to dequantise, and the norms for RMSNorm's gradient. Fills the
/// kernel's outputs with NaN.
WtStatus prepare(const std::string& kernel, WtDtype dtype, Arrays& arrays);
/// Largest |found - expected| / (1 + |expected|) after the kernel ran on prepared arrays; infinite for NaN.
double largest_error(const std::string& kernel, WtDtype dtype, const Arrays& arrays);
/// fp32 1e-4, bf16 1e-2 (half a unit is 2e-3, and sums round their terms), or the block format's rounding if larger.
double allowed_error(const std::string& kernel, WtDtype dtype);

}  // namespace wt::bandwidth
