// Kernels with rates that are published by library: each library has one factor over the time predicted from the shape.
// Measurements on the same GPU are used, else those of its generation, because its libraries are the same. Their
// processors must be about as fast: if tensor cores are slow (H20), all other costs weigh less.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/data_sheet.hpp"
#include "sim/cost/kernels/kernel_constants.hpp"

namespace wt {

constexpr int kAmd = 100;  ///< distance between AMD's and NVIDIA's generations, for kernels
int kernel_generation(const DataSheet& gpu);

/// A library's kernel on a GPU.
struct LibraryKernel {
  std::string kind, library;  ///< as in LibraryRow
  DataSheet gpu;
};

class Libraries {
 public:
  explicit Libraries(const std::vector<LibraryRow>& rows);

  enum class Known { on_this_gpu, on_this_generation, never_measured };
  struct Factor {
    double log_factor = 0;
    Known known = Known::never_measured;
  };
  /// `as_unknown`: ignores rows of this library. A library without measurements gets the median of the others of its
  /// kind and generation. This needs kFewestLibraries libraries from as many origins, all within kWidest of the median.
  /// Otherwise the result is empty.
  std::optional<Factor> factor(const LibraryKernel& kernel, bool as_unknown = false) const;
  /// GPUs on which this library's kernel was measured, in the order of the rows.
  std::vector<DataSheet> measured_on(const std::string& kind, const std::string& library) const;

  static constexpr std::size_t kFewestRows = 2, kFewestLibraries = 3;
  static constexpr double kWidest = 2, kAlike = 1.5;

 private:
  std::vector<std::pair<LibraryRow, DataSheet>> rows_;
};

}  // namespace wt
