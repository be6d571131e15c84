// Work items: the pieces of computation inside an op (kernel class, shape, direction). Benchmarks measure them, and the
// machine model times them; FLOPs and bytes are the features of its fits.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "configs/files/layout.hpp"

namespace wt {

/// A size that may depend on routing: fixed + per_row * rows, where rows = expert rows that this rank receives in this
/// step, microbatch and layer (bound from a RoutingSource).
struct Amount {
  double fixed = 0;
  double per_row = 0;
  double at(double rows) const { return fixed + per_row * rows; }
  friend bool operator==(const Amount&, const Amount&) = default;
};

enum class Kernel {
  gemm,           ///< rows x k times k x n
  grouped_gemm,   ///< rows over `groups` experts, each times its k x n
  attention,      ///< rows sequences of `seq`, causal, `window` keys at most; heads query heads, kv_heads, head_dim
  rmsnorm,        ///< rows x width
  rope,           ///< rows x width (width = head_dim * rotated heads)
  router,         ///< rows tokens over `experts`: fp32 softmax, top_k, counts, sort order
  permute,        ///< rows x width gathered by index (unpermute with weights is the same traffic)
  swiglu,         ///< rows x width: silu(gate) * up
  add,            ///< rows x width: residual or accumulation
  embedding,      ///< rows x width looked up
  cross_entropy,  ///< rows x vocab, log-softmax and its gradient
  adamw,          ///< rows parameters, fused update of fp32 master and moments
  copy,           ///< rows elements copied or cast
  layernorm,      ///< rows x width
  gelu,           ///< rows x width
  bias,           ///< rows x width: one vector added to every row, in place; backward sums the rows
  host_copy,      ///< rows bytes between the GPU and its host's memory, one way
  host_adamw,     ///< adamw by the host's CPU
};
enum class Pass { forward, backward };

std::string to_string(Kernel kernel);
Kernel kernel_from_string(const std::string& word);
std::string to_string(Pass pass);
/// Names of `dims` of a kernel, e.g. gemm: {"n", "k"}; unused dims have no name.
const std::vector<std::string>& dim_names(Kernel kernel);

struct WorkItem {
  Kernel kernel = Kernel::copy;
  Pass pass = Pass::forward;
  Precision precision = Precision::fp32;
  Amount rows;
  std::array<std::int64_t, 4> dims{};  ///< meaning by dim_names(kernel)
  std::int64_t window = 0;             ///< for attention: the most keys that a query sees, 0 = all earlier ones
  bool of_weight = false;              ///< gradient_of_weight()

  /// Mean number of keys that a query of attention sees, counted as an area: half of seq, or less in a window.
  double mean_keys() const;
  /// FLOPs for a number of rows; a backward gemm is both products (gradients of input and weight).
  double flops(double bound_rows) const;
  /// Bytes read and written once, for a number of rows.
  double bytes(double bound_rows) const;
  /// The shape of a Measurement: {"rows": bound rows, dim names..., "window" if limited}.
  std::map<std::string, std::int64_t> shape(double bound_rows) const;
  friend bool operator==(const WorkItem&, const WorkItem&) = default;
};

/// Whether the item is a backward product that computes the gradients of its input and its weight.
bool has_two_gradients(const WorkItem& item);
/// The product with only one of these gradients and a forward product's FLOPs. The input's gradient is a forward
/// product with n and k swapped; the weight's has the product's n and k.
WorkItem gradient_of_input(WorkItem product);
WorkItem gradient_of_weight(WorkItem product);

WorkItem make_item(Kernel kernel, Pass pass, Precision precision, Amount rows, std::array<std::int64_t, 4> dims = {});

}  // namespace wt
