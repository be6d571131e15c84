// Change points of a series: E-divisive (Matteson & James 2014, arXiv 1306.4933) over sliding windows, with Student's t
// instead of random permutations, as in Apache Otava (Fleming et al. 2023, arXiv 2301.03034). Deterministic. A window
// of w values costs w^2 distances per split.
#pragma once
#include <cstddef>
#include <vector>

namespace wt {

/// The defaults are Otava's.
struct DivisiveOptions {
  std::size_t window = 50;   ///< values of a window, 2 or more; windows overlap by half
  double max_p = 1e-3;       ///< points with a larger p-value are dropped; above 0, at most 1
  double min_magnitude = 0;  ///< points with a relative change of the mean up to this are dropped
};

struct ChangePoint {
  std::size_t index = 0;  ///< the first value at the new level
  double p = 1;           ///< from the last test of this point, possibly before a neighbour was dropped
};

/// Ordered by index. Two passes: windows are split as long as a split is significant at ten times max_p; then the
/// weakest points are dropped until all others satisfy the options. Throws Error{usage} for options out of range and
/// values that are not finite.
std::vector<ChangePoint> change_points(const std::vector<double>& series, const DivisiveOptions& options = {});

/// Two-sided p-value of Student's t with the pooled variance of x and y, each divided by n (not n - 1), as in Otava. 1
/// with two values or fewer in total, and for constant values; 0 where only the means differ.
double student_t_p(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace wt
