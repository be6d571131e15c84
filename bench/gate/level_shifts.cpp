#include "bench/gate/level_shifts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "configs/base/statistics.hpp"

namespace wt {
namespace {

std::vector<double> level(const std::vector<double>& series, std::size_t begin, std::size_t end) {
  return {series.begin() + static_cast<std::ptrdiff_t>(begin), series.begin() + static_cast<std::ptrdiff_t>(end)};
}

/// The change points that are not rejected yet, with the statistics of each between its neighbours.
struct RemainingPoints {
  const std::vector<double>& series;
  const ShiftOptions& options;
  double spread;
  std::vector<std::size_t> at;

  std::size_t begin(std::size_t i) const { return i == 0 ? 0 : at[i - 1]; }
  std::size_t end(std::size_t i) const { return i + 1 == at.size() ? series.size() : at[i + 1]; }

  double threshold(double from) const { return std::max(options.floor * std::abs(from), options.spreads * spread); }

  LevelShift shift(std::size_t i) const {
    const std::vector<double> before = level(series, begin(i), at[i]), after = level(series, at[i], end(i));
    LevelShift found{at[i], median(before), median(after), student_t_p(before, after)};
    found.threshold = threshold(found.before);
    return found;
  }

  /// Whether the level that begins at point i soon returned to the level before it.
  bool went_back(std::size_t i) const {
    if (i + 1 >= at.size() || at[i + 1] - at[i] >= options.lasting || end(i + 1) - at[i + 1] < options.shortest)
      return false;
    const double from = median(level(series, begin(i), at[i]));
    return std::abs(median(level(series, at[i + 1], end(i + 1))) - from) < threshold(from);
  }
};

/// The size of a shift relative to what the options require. Below 1 it is rejected, and `rejected` says why.
double relative_size(LevelShift& shift, std::size_t before, std::size_t after, const ShiftOptions& options) {
  if (std::min(before, after) < options.shortest) {
    shift.rejected =
        fmt::format("{} value{} {} it; {} are needed", std::min(before, after), std::min(before, after) == 1 ? "" : "s",
                    after < before ? "since" : "before", options.shortest);
    return 0;
  }
  const double size = std::abs(shift.after - shift.before);
  if (size < shift.threshold) {
    shift.rejected = fmt::format("changed by {:.3g}, less than the noise threshold of {:.3g}", size, shift.threshold);
    return size / shift.threshold;
  }
  if (shift.p > options.divisive.max_p) {
    shift.rejected = fmt::format("not certain: p {:.2g}", shift.p);
    return std::nextafter(1.0, 0.0);
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace

double scatter(const std::vector<double>& series) {
  if (series.size() < 3) return 0;
  std::vector<double> steps;
  for (std::size_t i = 1; i < series.size(); ++i) steps.push_back(series[i] - series[i - 1]);
  return median_absolute_deviation(steps) / std::sqrt(2.0);
}

SeriesLevels level_shifts(const std::vector<double>& series, const ShiftOptions& options) {
  SeriesLevels result{.spread = scatter(series)};
  RemainingPoints remaining{series, options, result.spread, {}};
  for (const ChangePoint& each : change_points(series, options.divisive)) remaining.at.push_back(each.index);
  const auto reject = [&](std::size_t i, LevelShift shift) {
    result.rejected.push_back(std::move(shift));
    remaining.at.erase(remaining.at.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < remaining.at.size() && !changed; ++i) {
      if (!remaining.went_back(i)) continue;
      LevelShift away = remaining.shift(i), back = remaining.shift(i + 1);
      away.rejected = back.rejected = fmt::format("went back after {} values", back.index - away.index);
      reject(i + 1, back);
      reject(i, away);
      changed = true;
    }
    if (changed) continue;
    std::size_t weakest = 0;
    double least = 1;
    LevelShift out;
    for (std::size_t i = 0; i < remaining.at.size(); ++i) {
      LevelShift shift = remaining.shift(i);
      const double size =
          relative_size(shift, shift.index - remaining.begin(i), remaining.end(i) - shift.index, options);
      if (size < least) {
        least = size;
        weakest = i;
        out = shift;
      }
    }
    if (least < 1) {
      reject(weakest, out);
      changed = true;
    }
  }
  for (std::size_t i = 0; i < remaining.at.size(); ++i) result.shifts.push_back(remaining.shift(i));
  std::ranges::sort(result.rejected, {}, &LevelShift::index);
  return result;
}

}  // namespace wt
