// Where the level of a series changes: E-divisive (Matteson & James 2014, arXiv 1306.4933) over sliding windows, with
// Student's t in place of random permutations, as Apache Otava does it (Fleming et al. 2023, arXiv 2301.03034). The
// same answer every time. Pure functions; a window of w values costs w^2 distances a split.
#pragma once
#include <cstddef>
#include <vector>

namespace wt {

/// The defaults are Otava's.
struct DivisiveOptions {
  std::size_t window = 50;   ///< values looked at together, 2 or more; windows overlap by half
  double max_p = 1e-3;       ///< a point with a larger p-value is none; above 0, at most 1
  double min_magnitude = 0;  ///< nor is one where the mean changes by no more than this share
};

struct ChangePoint {
  std::size_t index = 0;  ///< of the first value at the new level
  double p = 1;           ///< as last judged on the way, which a neighbour that left may have made out of date
};

/// In order of index. Two passes: every window is split as long as a split is significant at a p ten times as large;
/// then the weakest points are taken out until all that are left satisfy the options. Throws Error{usage} for options
/// out of range and values that are not finite.
std::vector<ChangePoint> change_points(const std::vector<double>& series, const DivisiveOptions& options = {});

/// Two-sided p-value of Student's t with the pooled variance of x and y, each taken over its n values (not n - 1), as
/// Otava takes it. 1 with two values or fewer in all, and where nothing varies; 0 where only the means differ.
double student_t_p(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace wt
