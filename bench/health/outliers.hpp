// Who is slower than the group? Values of many alike things (devices, nodes, pairs of nodes) against their median, with
// the group's own spread as the yardstick, so that nothing has to be known of the hardware. Pure functions.
#pragma once
#include <cstddef>
#include <vector>

namespace wt {

/// Spread of a healthy group, from its middle: 1.4826 x median absolute deviation, with the small-sample factors of
/// Croux & Rousseeuw 1992, section 3 (2 to 9 values; n / (n - 0.8) above). Up to half of the values may be faulty. 0
/// for one.
double robust_spread(const std::vector<double>& values);

struct Deviation {
  double slowdown = 0;  ///< value / median - 1
  double p = 1;         ///< one-sided: chance that a healthy member of this group lies so far out
};

/// One a value, all of them times (larger is worse) and positive; logarithms are compared. The spread is found twice:
/// robustly, which tells the values that belong to the group (within 4 spreads), then as those values' standard
/// deviation without the value that is judged, which needs fewer of them. Each time it is moderated by what such
/// measurements usually show, s0 = `usual_spread` on d0 = kUsualSpreadWeight degrees of freedom: s^2 := (d s^2 + d0
/// s0^2) / (d + d0), judged by Student's t on d + d0 degrees (Smyth 2004, the moderated t). That keeps a group of four,
/// or one of equal values, from crying wolf. One or two values are no group: p = 1. Throws Error{usage} for times that
/// are not above 0.
std::vector<Deviation> deviations(const std::vector<double>& times, double usual_spread);
constexpr double kUsualSpreadWeight = 4;

}  // namespace wt
