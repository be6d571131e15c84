// Kernels of which people publish rates by the library: one factor a library on what the shape says, found without the
// group in question. Rows on this very GPU count, else those of its generation, whose libraries are the same, on
// processors about as fast: beside slow tensor cores (H20) everything else weighs less.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/data_sheet.hpp"

namespace wt {

/// One measurement: log(measured / what the shape says).
struct LibraryRow {
  std::string kind;     ///< "attention_forward"
  std::string library;  ///< "FlashAttention-3"
  std::string gpu;
  int generation = 0;
  double processor_flops = 0;  ///< of one of its processors
  std::string group, origin;
  double log_factor = 0;
};

class Libraries {
 public:
  explicit Libraries(std::vector<LibraryRow> rows) : rows_(std::move(rows)) {}

  enum class Known { on_this_gpu, on_this_generation, never_measured };
  struct Factor {
    double log_factor = 0;
    Known known = Known::never_measured;
  };
  /// Of a row, whose group has no part in it; `as_unknown`: nor has its library. A library that nobody measured takes
  /// the median of the others of its kind and generation, where there are kFewestLibraries of as many origins and the
  /// farthest is within kWidest of it: beyond, that would say nothing.
  std::optional<Factor> factor(const LibraryRow& row, bool as_unknown = false) const;

  static constexpr std::size_t kFewestRows = 2, kFewestLibraries = 3;
  static constexpr double kWidest = 2, kAlike = 1.5;

 private:
  std::vector<LibraryRow> rows_;
};

}  // namespace wt
