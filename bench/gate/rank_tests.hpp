// The statistics of the gate: rank tests, which ask nothing of the shape of timing noise. Pure functions.
#pragma once
#include <cstddef>
#include <optional>
#include <random>
#include <vector>

namespace wt {

/// Two-sided p-value of the Mann-Whitney U test: the chance, were both sides drawn from one pool, of a rank sum at
/// least as far from its mean as the one seen. Exact over all C(n+m, n) assignments, ties (midranks) included, up to
/// kExactSamples in all; above, the normal approximation with tie and continuity correction. 1 when a side is empty.
/// The smallest possible value is 2/C(n+m, n): 0.029 at 4 a side, 0.0079 at 5, 0.00058 at 7, 4.1e-5 at 9.
double mann_whitney_p(const std::vector<double>& x, const std::vector<double>& y);
/// C(50, 25) = 1.3e14 is still exact in a double, and the table costs a millisecond.
constexpr std::size_t kExactSamples = 50;

/// P(U = u) of samples of n and m without ties from one pool, for u from 0 to n * m. At most kExactSamples in all.
std::vector<double> rank_sum_distribution(std::size_t n, std::size_t m);

/// Benjamini & Hochberg 1995, step-up: adjusted p-values in the order given, monotone in p, at most 1. Rejecting those
/// below q keeps the expected share of false rejections among all rejections below q.
std::vector<double> benjamini_hochberg(const std::vector<double>& p);

/// 0 to n-1 in random order: std::shuffle differs between standard libraries, the engine's numbers do not.
std::vector<std::size_t> shuffled(std::size_t n, std::mt19937_64& random);

struct RatioInterval {
  double estimate, low, high;  ///< of y over x
};

/// Hodges-Lehmann: the median of all n*m ratios y/x, and the interval of `confidence` from the order statistics that
/// the U test would not reject. No samples of any distribution are drawn, so it is the same every time. Empty when a
/// value is not positive, or the sides are too small for that confidence (below 4 a side for 95 %). Sides above 2,000
/// samples are thinned to that many order statistics, which only widens the interval.
std::optional<RatioInterval> ratio_interval(std::vector<double> x, std::vector<double> y, double confidence = 0.95);

}  // namespace wt
