// Kernels of which people publish rates by the library: one factor a library on what the shape says. Rows on this very
// GPU count, else those of its generation, whose libraries are the same, on processors about as fast: beside slow
// tensor cores (H20) everything else weighs less.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/data_sheet.hpp"
#include "sim/cost/kernels/kernel_constants.hpp"

namespace wt {

constexpr int kAmd = 100;  ///< generations that AMD's are away from NVIDIA's, for kernels
int kernel_generation(const DataSheet& gpu);

/// Which library's kernel on which GPU.
struct LibraryKernel {
  std::string kind, library;  ///< as of LibraryRow
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
  /// `as_unknown`: rows of this library have no part in it. A library that nobody measured takes the median of the
  /// others of its kind and generation. That needs kFewestLibraries of as many origins, the farthest within kWidest of
  /// the median; otherwise nothing is known.
  std::optional<Factor> factor(const LibraryKernel& kernel, bool as_unknown = false) const;
  /// GPUs on which this library's kernel was measured, in the order of the rows.
  std::vector<DataSheet> measured_on(const std::string& kind, const std::string& library) const;

  static constexpr std::size_t kFewestRows = 2, kFewestLibraries = 3;
  static constexpr double kWidest = 2, kAlike = 1.5;

 private:
  std::vector<std::pair<LibraryRow, DataSheet>> rows_;
};

}  // namespace wt
