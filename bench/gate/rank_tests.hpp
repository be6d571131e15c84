// Rank tests of the gate, which make no assumption about the distribution of timing noise.
#pragma once
#include <cstddef>
#include <optional>
#include <random>
#include <vector>

namespace wt {

/// Two-sided p-value of the Mann-Whitney U test: the probability of a rank sum at least as far from its mean as the
/// observed one, if both sides have the same distribution. Exact over all C(n+m, n) assignments, with midranks for
/// ties, up to kExactSamples in total; above, the normal approximation with tie and continuity correction. 1 when a
/// side is empty. The smallest possible value is 2/C(n+m, n): 0.029 at 4 a side, 0.0079 at 5, 0.00058 at 7, 4.1e-5
/// at 9.
double mann_whitney_p(const std::vector<double>& x, const std::vector<double>& y);
/// C(50, 25) = 1.3e14 is still exact in a double, and the table costs a millisecond.
constexpr std::size_t kExactSamples = 50;

/// P(U = u) for u from 0 to n * m, for n and m values of one distribution without ties. At most kExactSamples in total.
std::vector<double> rank_sum_distribution(std::size_t n, std::size_t m);

/// Benjamini & Hochberg 1995, step-up: adjusted p-values in the order given, monotone in p, at most 1. Rejecting those
/// below q keeps the expected share of false rejections among all rejections below q.
std::vector<double> benjamini_hochberg(const std::vector<double>& p);

/// 0 to n-1 in random order. std::shuffle differs between standard libraries; the engine's numbers do not.
std::vector<std::size_t> shuffled(std::size_t n, std::mt19937_64& random);

struct RatioInterval {
  double estimate, low, high;  ///< of y / x
};

/// Hodges-Lehmann: the median of all n*m ratios y/x, with the interval of `confidence` from the order statistics that
/// the U test does not reject. Deterministic. Empty when a value is not positive, or the sides are too small for that
/// confidence (below 4 per side for 95 %). Sides above 2,000 samples are thinned to that many order statistics, which
/// only widens the interval.
std::optional<RatioInterval> ratio_interval(std::vector<double> x, std::vector<double> y, double confidence = 0.95);

}  // namespace wt
