// Finds members that are slower than their group. Values of many alike things (devices, nodes, pairs of nodes) are
// compared with their median, in units of the group's own spread, so that nothing need be known about the hardware.
#pragma once
#include <vector>

namespace wt {

/// Spread of the healthy members: 1.4826 x median absolute deviation, with the small-sample factors of Croux &
/// Rousseeuw 1992, section 3 (2 to 9 values; n / (n - 0.8) above). Up to half of the values may be faulty. 0 for a
/// single value.
double robust_spread(const std::vector<double>& values);

struct Deviation {
  double slowdown = 0;  ///< value / median - 1
  double p = 1;         ///< one-sided: probability that a healthy member of this group is so far out
};

/// One result per value. Values are positive times (larger is worse); their logarithms are compared. The spread is
/// computed twice: first robustly, to find the members of the group (within 4 spreads), then as their standard
/// deviation without the judged value. Both are moderated by the usual spread of such measurements, s0 = `usual_spread`
/// with d0 = kUsualSpreadWeight degrees of freedom: s^2 := (d s^2 + d0 s0^2) / (d + d0), tested by Student's t with d +
/// d0 degrees (Smyth 2004, the moderated t). This avoids false alarms in groups of four or of equal values. With
/// fewer than three values every p is 1. Throws Error{usage} for times that are not positive.
std::vector<Deviation> deviations(const std::vector<double>& times, double usual_spread);
constexpr double kUsualSpreadWeight = 4;

}  // namespace wt
