#include "bench/gate/change_points.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "configs/base/error.hpp"
#include "configs/base/statistics.hpp"

namespace wt {
namespace {

using Values = std::vector<double>;

/// A range [begin, end) of a series.
struct Stretch {
  std::size_t begin, end;
};

struct Split {
  std::size_t index;
  double divergence;
};

Values values_of(const Values& series, Stretch at) {
  return {series.begin() + static_cast<std::ptrdiff_t>(at.begin), series.begin() + static_cast<std::ptrdiff_t>(at.end)};
}

/// Matteson & James, eq. 7 with alpha = 1: over all t < k within the range, the t with the largest divergence between
/// the values before t and those from t to k. Sums of distances grow by one column and one row at a time.
Split best_split(const Values& series, Stretch at) {
  const std::size_t n = at.end - at.begin;
  const auto distance = [&](std::size_t i, std::size_t j) {
    return std::abs(series[at.begin + i] - series[at.begin + j]);
  };
  // right[t][k]: distances among the values t..k-1; left[t]: among those before t; across[k]: between both, for this t.
  std::vector<Values> right(n + 1, Values(n + 1, 0.0));
  Values left(n + 1, 0.0);
  for (std::size_t t = n; t-- > 0;) {
    double row = 0;
    for (std::size_t k = t + 1; k <= n; ++k) {
      if (k - 1 > t) row += distance(t, k - 1);
      right[t][k] = right[t + 1][k] + row;
    }
  }
  for (std::size_t t = 0; t <= n; ++t) left[t] = right[0][t];
  Split best{at.begin + 1, -1};
  for (std::size_t t = 1; t < n; ++t)
    for (std::size_t k = t + 1; k <= n; ++k) {
      const double before = static_cast<double>(t), after = static_cast<double>(k - t), all = before + after;
      const double across = right[0][k] - left[t] - right[t][k];
      double q = 2 / all * across;
      if (t > 1) q -= 2 * after / all / (before - 1) * left[t];
      if (k - t > 1) q -= 2 * before / all / (after - 1) * right[t][k];
      // Sums in another order differ in the last bits: a later split must be clearly better than an earlier one.
      if (q > best.divergence + 1e-12 * std::abs(best.divergence)) best = {at.begin + t, q};
    }
  return best;
}

/// A change point with the ranges to its neighbours on either side.
struct Judged {
  std::size_t index;
  double p, magnitude;
};

Judged judged(const Values& series, std::size_t begin, std::size_t index, std::size_t end) {
  const Values before = values_of(series, {begin, index}), after = values_of(series, {index, end});
  const double from = mean(before), to = mean(after);
  const auto change = [](double a, double b) { return a == 0 ? 0 : std::abs(b / a - 1); };
  return {index, student_t_p(before, after), std::max(change(from, to), change(to, from))};
}

/// Change points of one window: splits the range with the largest divergence first, until a split is not significant.
std::vector<std::size_t> window_points(const Values& series, Stretch window, double max_p) {
  std::vector<std::size_t> points;
  struct Candidate {
    Stretch at;
    Split split;
  };
  std::vector<Candidate> candidates;
  const auto consider = [&](Stretch at) {
    if (at.end - at.begin > 1) candidates.push_back({at, best_split(series, at)});
  };
  consider(window);
  while (!candidates.empty()) {
    const auto best = std::ranges::max_element(candidates, [](const auto& a, const auto& b) {
      return a.split.divergence != b.split.divergence ? a.split.divergence < b.split.divergence
                                                      : a.at.begin > b.at.begin;
    });
    const Candidate next = *best;
    if (judged(series, next.at.begin, next.split.index, next.at.end).p > max_p) break;
    candidates.erase(best);
    points.push_back(next.split.index);
    consider({next.at.begin, next.split.index});
    consider({next.split.index, next.at.end});
  }
  std::ranges::sort(points);
  return points;
}

std::vector<std::size_t> weak_points(const Values& series, std::size_t window, double max_p) {
  std::vector<std::size_t> points;
  for (std::size_t start = 0; start < series.size();) {
    const auto found = window_points(series, {start, std::min(start + window, series.size())}, max_p);
    points.insert(points.end(), found.begin(), found.end());
    start = std::max(found.empty() ? 0 : found.back(), start + window / 2);
  }
  std::ranges::sort(points);
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

void check_divisive(const Values& series, const DivisiveOptions& o) {
  if (o.window < 2) throw_usage("change points: window: found {}, allowed 2 or more; correct the option", o.window);
  if (!(o.max_p > 0 && o.max_p <= 1))
    throw_usage("change points: max_p: found {}, allowed above 0 and at most 1; correct the option", o.max_p);
  if (!(o.min_magnitude >= 0))
    throw_usage("change points: min_magnitude: found {}, allowed 0 or more; correct the option", o.min_magnitude);
  for (std::size_t i = 0; i < series.size(); ++i)
    if (!std::isfinite(series[i]))
      throw_usage("change points: value {}: found {}, allowed finite numbers; leave it out", i, series[i]);
}

}  // namespace

double student_t_p(const Values& x, const Values& y) {
  const double n = static_cast<double>(x.size()), m = static_cast<double>(y.size());
  if (x.empty() || y.empty() || n + m <= 2) return 1;
  const auto variance = [](const Values& values, double center) {
    double sum = 0;
    for (double v : values) sum += (v - center) * (v - center);
    return sum / static_cast<double>(values.size());
  };
  const double mean_x = mean(x), mean_y = mean(y), freedom = n + m - 2;
  const double pooled = ((n - 1) * variance(x, mean_x) + (m - 1) * variance(y, mean_y)) / freedom;
  const double error = std::sqrt(pooled * (1 / n + 1 / m));
  if (error == 0) return mean_x == mean_y ? 1 : 0;
  const boost::math::students_t distribution(freedom);
  return 2 * boost::math::cdf(boost::math::complement(distribution, std::abs(mean_x - mean_y) / error));
}

std::vector<ChangePoint> change_points(const Values& series, const DivisiveOptions& options) {
  check_divisive(series, options);
  const double p = options.max_p;
  const std::vector<std::size_t> weak = weak_points(series, options.window, p < 0.05 ? 10 * p : p < 0.5 ? 2 * p : p);
  std::vector<Judged> points;
  const auto judge_at = [&](std::size_t i) {
    const std::size_t begin = i == 0 ? 0 : points[i - 1].index;
    const std::size_t end = i + 1 == points.size() ? series.size() : points[i + 1].index;
    points[i] = judged(series, begin, points[i].index, end);
  };
  for (std::size_t index : weak) points.push_back({index, 1, 0});
  for (std::size_t i = 0; i < points.size(); ++i) judge_at(i);
  while (!points.empty()) {
    auto weakest = std::ranges::max_element(points, {}, &Judged::p);
    if (weakest->p < p) {
      weakest = std::ranges::min_element(points, {}, &Judged::magnitude);
      if (weakest->magnitude > options.min_magnitude) break;
    }
    const auto i = static_cast<std::size_t>(weakest - points.begin());
    points.erase(weakest);
    // Like Otava, this judges again the two points after the removed one, but not the one before it, whose range grew
    // as well. The golden vectors require it.
    if (i < points.size()) judge_at(i);
    if (i + 1 < points.size()) judge_at(i + 1);
  }
  std::vector<ChangePoint> found;
  for (const Judged& each : points) found.push_back({each.index, each.p});
  return found;
}

}  // namespace wt
