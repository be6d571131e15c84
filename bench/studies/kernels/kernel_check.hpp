// Whether the kernels of the bandwidth benchmark computed what their formulas say (kernels/kernels.h), in doubles, on
// rows spread over all of them.
#pragma once
#include <string>

#include "bench/studies/kernels/arrays.hpp"

namespace wt::bandwidth {

/// Makes what a kernel reads and another one writes: codes to dequantise, and the norms that RMSNorm's gradient wants.
/// What a kernel is to write holds no numbers.
WtStatus prepare(const std::string& kernel, WtDtype dtype, Arrays& arrays);
/// Largest |found - right| / (1 + |right|) after the kernel ran on prepared arrays; infinite for NaN.
double largest_error(const std::string& kernel, WtDtype dtype, const Arrays& arrays);
/// fp32 1e-4, bf16 1e-2 (half a unit is 2e-3, and sums round their terms); what a block format rounds where that is
/// more.
double allowed_error(const std::string& kernel, WtDtype dtype);

}  // namespace wt::bandwidth
