#include "bench/gate/rank_tests.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "configs/base/statistics.hpp"

namespace wt {
namespace {

// Twice the midranks of x then y, which makes them whole numbers.
std::vector<std::int64_t> doubled_ranks(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<double> all = x;
  all.insert(all.end(), y.begin(), y.end());
  std::vector<double> sorted = all;
  std::ranges::sort(sorted);
  std::vector<std::int64_t> ranks;
  ranks.reserve(all.size());
  for (double value : all) {
    const auto [first, last] = std::ranges::equal_range(sorted, value);
    ranks.push_back((first - sorted.begin() + 1) + (last - sorted.begin()));
  }
  return ranks;
}

// ways[s]: number of subsets of `size` ranks with sum s. Counts stay below 2^53, so that doubles are exact.
std::vector<double> subset_sums(const std::vector<std::int64_t>& ranks, std::size_t size) {
  const auto total = static_cast<std::size_t>(std::accumulate(ranks.begin(), ranks.end(), std::int64_t{0}));
  std::vector<std::vector<double>> ways(size + 1, std::vector<double>(total + 1, 0.0));
  ways[0][0] = 1;
  std::size_t reached = 0, taken = 0;
  for (std::int64_t rank : ranks) {
    const auto r = static_cast<std::size_t>(rank);
    reached += r;
    ++taken;
    for (std::size_t k = std::min(size, taken); k > 0; --k)
      for (std::size_t s = reached; s >= r; --s) ways[k][s] += ways[k - 1][s - r];
  }
  return ways[size];
}

double exact_p(const std::vector<std::int64_t>& ranks, std::size_t n) {
  const std::vector<double> ways = subset_sums(ranks, n);
  const std::int64_t observed =
      std::accumulate(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(n), std::int64_t{0});
  const auto total = static_cast<std::int64_t>(ranks.size());
  // |s - mean| in units of 1/total, so that equal distances compare exactly as whole numbers.
  const std::int64_t mean = std::accumulate(ranks.begin(), ranks.end(), std::int64_t{0}) * static_cast<std::int64_t>(n);
  const std::int64_t distance = std::abs(observed * total - mean);
  double extreme = 0, all = 0;
  for (std::size_t s = 0; s < ways.size(); ++s) {
    all += ways[s];
    if (std::abs(static_cast<std::int64_t>(s) * total - mean) >= distance) extreme += ways[s];
  }
  return std::min(1.0, extreme / all);
}

double approximate_p(const std::vector<std::int64_t>& ranks, std::size_t n) {
  const double total = static_cast<double>(ranks.size()), nx = static_cast<double>(n), ny = total - nx;
  std::vector<std::int64_t> sorted = ranks;
  std::ranges::sort(sorted);
  double ties = 0;  // sum of t^3 - t over groups of t equal values
  for (auto first = sorted.begin(); first != sorted.end();) {
    const auto last = std::upper_bound(first, sorted.end(), *first);
    const double t = static_cast<double>(last - first);
    ties += t * t * t - t;
    first = last;
  }
  const double variance = nx * ny / 12 * (total + 1 - ties / (total * (total - 1)));
  if (variance <= 0) return 1;  // all values are equal
  const double sum = 0.5 * static_cast<double>(std::accumulate(
                               ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(n), std::int64_t{0}));
  const double distance = std::max(0.0, std::abs(sum - nx * (total + 1) / 2) - 0.5);
  return 2 * boost::math::cdf(boost::math::complement(boost::math::normal(), distance / std::sqrt(variance)));
}

// Number of sorted ratios outside the interval at each end: the largest c with P(U < c) <= tail.
std::size_t outside(std::size_t n, std::size_t m, double tail) {
  if (n + m > kExactSamples) {
    const double nx = static_cast<double>(n), ny = static_cast<double>(m);
    const double z = -boost::math::quantile(boost::math::normal(), tail);
    const double c = nx * ny / 2 - z * std::sqrt(nx * ny * (nx + ny + 1) / 12);
    return c < 1 ? 0 : static_cast<std::size_t>(c);
  }
  double below = 0;
  std::size_t c = 0;
  for (double p : rank_sum_distribution(n, m)) {
    below += p;
    if (below > tail) break;
    ++c;
  }
  return c;
}

void thin(std::vector<double>& values) {
  constexpr std::size_t kMost = 2000;
  if (values.size() <= kMost) return;
  std::ranges::sort(values);
  for (std::size_t i = 0; i < kMost; ++i) values[i] = values[i * (values.size() - 1) / (kMost - 1)];
  values.resize(kMost);
}

}  // namespace

double mann_whitney_p(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.empty() || y.empty()) return 1;
  const std::vector<std::int64_t> ranks = doubled_ranks(x, y);
  return ranks.size() <= kExactSamples ? exact_p(ranks, x.size()) : approximate_p(ranks, x.size());
}

std::vector<std::size_t> shuffled(std::size_t n, std::mt19937_64& random) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

std::vector<double> rank_sum_distribution(std::size_t n, std::size_t m) {
  std::vector<std::int64_t> ranks(n + m);
  std::iota(ranks.begin(), ranks.end(), 1);
  const std::vector<double> ways = subset_sums(ranks, n);
  const double all = std::accumulate(ways.begin(), ways.end(), 0.0);
  std::vector<double> p;
  for (std::size_t u = 0; u <= n * m; ++u) p.push_back(ways[n * (n + 1) / 2 + u] / all);
  return p;
}

std::vector<double> benjamini_hochberg(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return p[a] > p[b]; });
  std::vector<double> adjusted(p.size());
  double smallest = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double rank = static_cast<double>(p.size() - i);
    smallest = std::min(smallest, p[order[i]] * static_cast<double>(p.size()) / rank);
    adjusted[order[i]] = smallest;
  }
  return adjusted;
}

std::optional<RatioInterval> ratio_interval(std::vector<double> x, std::vector<double> y, double confidence) {
  const auto positive = [](double value) { return value > 0; };
  if (x.empty() || y.empty() || !std::ranges::all_of(x, positive) || !std::ranges::all_of(y, positive))
    return std::nullopt;
  thin(x);
  thin(y);
  const std::size_t left_out = outside(x.size(), y.size(), (1 - confidence) / 2);
  if (left_out == 0) return std::nullopt;
  std::vector<double> ratios;
  ratios.reserve(x.size() * y.size());
  for (double a : x)
    for (double b : y) ratios.push_back(b / a);
  std::ranges::sort(ratios);
  return RatioInterval{median(ratios), ratios[left_out - 1], ratios[ratios.size() - left_out]};
}

}  // namespace wt
