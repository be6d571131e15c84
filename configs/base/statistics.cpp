#include "configs/base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"

namespace wt {
namespace {

void need_values(const char* what, const std::vector<double>& values) {
  if (values.empty()) throw_usage("{}: found no value, allowed at least one; measure again", what);
}

std::size_t trimmed_away(const std::vector<double>& values, double share) {
  return values.size() < 5 ? 0 : static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
}

std::vector<double> midranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t from = 0; from < order.size();) {
    std::size_t to = from;
    while (to < order.size() && values[order[to]] == values[order[from]]) ++to;
    for (std::size_t i = from; i < to; ++i) ranks[order[i]] = 0.5 * static_cast<double>(from + to - 1);
    from = to;
  }
  return ranks;
}

}  // namespace

double mean(const std::vector<double>& values) {
  need_values("mean", values);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double quantile(std::vector<double> values, double q) {
  need_values("quantile", values);
  std::ranges::sort(values);
  const double place = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (place - static_cast<double>(low)) * (values[high] - values[low]);
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double median_absolute_deviation(const std::vector<double>& values) {
  const double middle = median(values);
  return 1.4826 * median(mapped(values, [&](double value) { return std::abs(value - middle); }));
}

std::pair<double, double> trimmed_range(std::vector<double> values, double share) {
  need_values("trimmed range", values);
  const std::size_t away = trimmed_away(values, share);
  std::ranges::sort(values);
  return {values[away], values[values.size() - 1 - away]};
}

double trimmed_mean(std::vector<double> values, double share) {
  need_values("trimmed mean", values);
  const auto away = static_cast<std::ptrdiff_t>(trimmed_away(values, share));
  std::ranges::sort(values);
  return std::accumulate(values.begin() + away, values.end() - away, 0.0) /
         static_cast<double>(std::ssize(values) - 2 * away);
}

std::optional<double> spearman(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() < 3) return std::nullopt;
  const std::vector<double> a = midranks(x), b = midranks(y);
  const double middle = mean(a);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - middle) * (b[i] - middle);
    aa += (a[i] - middle) * (a[i] - middle);
    bb += (b[i] - middle) * (b[i] - middle);
  }
  if (aa == 0 || bb == 0) return std::nullopt;
  return ab / std::sqrt(aa * bb);
}

}  // namespace wt
