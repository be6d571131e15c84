// Kernels that are known to be memory-bound: each reads and writes a few streams of rows x width elements.
#pragma once
#include <optional>
#include <string>

namespace wt {

struct RowOp {
  std::string name;    ///< "rmsnorm", "swiglu", ...
  double streams = 2;  ///< elements read and written per element of rows x width
};

/// Accepts any spelling: "RMSNorm", "rms_norm", "fused_add_rms_norm", "SiLU and mul". Empty for other kernels.
std::optional<RowOp> row_op(const std::string& name);

/// Whether the name contains a word for products, attention or communication: their time does not follow from rows x
/// width.
bool not_row_by_row(const std::string& name);

}  // namespace wt
