// Tables and fits of work items.
#include <algorithm>
#include <map>
#include <set>

#include "configs/base/error.hpp"
#include "sim/cost/calibrate/calibration.hpp"
#include "sim/statistics/non_negative_fit.hpp"

namespace wt::detail {
namespace {

constexpr double kSingleSampleHalfWidth = 0.1;  // relative; of a published median without a spread

TimePoint time_point(const Measurement& m, bool fp16, double rows) {
  TimePoint point;
  point.rows = rows;
  point.seconds = m.median();
  const auto spread = m.counters.find("std_s");
  if (m.samples.size() >= 3) {
    point.low_s = quantile(m.samples, 0.1);
    point.high_s = quantile(m.samples, 0.9);
  } else {
    const double half = spread != m.counters.end() ? 1.2816 * spread->second : kSingleSampleHalfWidth * point.seconds;
    point.low_s = std::max(0.0, point.seconds - half);
    point.high_s = point.seconds + half;
  }
  point.evidence = fp16 ? std::max(m.evidence.kind, Evidence::derived) : m.evidence.kind;
  if (point.evidence != m.evidence.root_kind()) point.root = m.evidence.root_kind();
  point.source = (fp16 ? "fp16 taken for bf16: " : "") + m.evidence.source;
  return point;
}

/// Fills the table. Of several measurements of a shape it keeps one: assumed evidence is the last choice, then wall
/// times give way to device and thread-CPU times, fp16 to bf16, and weaker evidence to stronger.
void fill_table(const std::vector<Sample>& samples, Calibration& out) {
  struct Entry {
    TimePoint point;
    bool wall, fp16;
  };
  std::map<ItemKey, std::map<std::int64_t, Entry>> table;
  std::map<std::string, int> odd;
  for (const Sample& sample : samples) {
    const Measurement& m = sample.measurement;
    ItemKey key{
        kernel_from_string(m.kernel), m.pass == "backward" ? Pass::backward : Pass::forward, Precision::fp32, {}};
    const bool fp16 = m.dtype == "fp16";
    if (fp16 || m.dtype == "bf16")
      key.precision = Precision::bf16;
    else if (m.dtype != "fp32") {
      ++odd[m.kernel + ", dtype '" + m.dtype + "'"];
      continue;
    }
    const auto& dims = dim_names(key.kernel);
    for (std::size_t i = 0; i < dims.size(); ++i) key.dims[i] = shape_value(m, dims[i]);
    const std::int64_t rows = shape_value(m, "rows");
    if (m.shape.size() != dims.size() + 1) {
      ++odd[m.kernel + ", shapes with further keys"];
      continue;
    }
    if (!(m.median() > 0) || rows < 1) {
      ++odd[m.kernel + ", no rows or a median of zero"];
      continue;
    }
    const Entry entry{time_point(m, fp16, static_cast<double>(rows)), m.clock == "wall", fp16};
    const auto [found, is_new] = table[key].emplace(rows, entry);
    const auto rank = [](const Entry& e) {
      return std::tuple(e.point.evidence == Evidence::assumed, e.wall, e.fp16, e.point.evidence);
    };
    if (!is_new && rank(entry) < rank(found->second)) found->second = entry;
  }
  for (const auto& [what, count] : odd)
    out.notes.push_back(fmt::format("left out: {} measurement(s) of {}", count, what));
  for (const auto& [key, points] : table)
    for (const auto& [rows, entry] : points) out.data.table[key].push_back(entry.point);
}

struct FitPoint {
  ItemKey key;
  WorkItem item;
  double seconds = 0;
  Evidence evidence = Evidence::assumed, root = Evidence::assumed;
};

/// Fits one class in one of the two forms of KernelFit.
class Fitter {
 public:
  Fitter(const std::vector<FitPoint>& points, const MachineData& data, bool overlap)
      : points_(points), data_(data), overlap_(overlap) {}

  /// Fits the points for which `skip` does not hold. `residual`: their sum of squared relative errors.
  template <typename Skip>
  KernelFit fit(Skip skip, double* residual = nullptr) const {
    std::vector<const FitPoint*> used;
    for (std::size_t i = 0; i < points_.size(); ++i)
      if (!skip(i)) used.push_back(&points_[i]);
    KernelFit best;
    double best_residual = -1;
    // It is not known beforehand which points are memory-bound: start from several splits by intensity and iterate.
    std::vector<double> intensity;
    for (const FitPoint* p : used) intensity.push_back(p->item.flops(0) / std::max(1.0, p->item.bytes(0)));
    for (double q : overlap_ ? std::vector<double>{0.02, 0.1, 0.3, 0.6} : std::vector<double>{0}) {
      const double threshold = quantile(intensity, q);
      std::vector<bool> by_memory(used.size(), false);
      for (std::size_t i = 0; i < used.size(); ++i) by_memory[i] = overlap_ && intensity[i] <= threshold;
      for (int round = 0; round < 6; ++round) {
        const KernelFit fit = solve(used, by_memory);
        double sum = 0;
        std::vector<bool> next = by_memory;
        for (std::size_t i = 0; i < used.size(); ++i) {
          const double error = fit_seconds(fit, data_, used[i]->item, 0) / used[i]->seconds - 1;
          sum += error * error;
          next[i] = overlap_ && fit.s_per_byte * used[i]->item.bytes(0) > compute(fit, used[i]->item);
        }
        if (best_residual < 0 || sum < best_residual) {
          best_residual = sum;
          best = fit;
        }
        if (next == by_memory) break;
        by_memory = next;
      }
    }
    if (residual) *residual = best_residual;
    return best;
  }

 private:
  double compute(const KernelFit& fit, const WorkItem& item) const {
    return fit.s_per_flop * item.flops(0) + fit.s_per_wave_flop * wave_flops(item, 0, data_.multiprocessors);
  }

  KernelFit solve(const std::vector<const FitPoint*>& used, const std::vector<bool>& by_memory) const {
    const bool product = is_product(used.front()->key.kernel);
    KernelFit unit;
    unit.launch_s = 1;
    std::vector<std::vector<double>> features;
    std::vector<double> seconds;
    for (std::size_t i = 0; i < used.size(); ++i) {
      const WorkItem& item = used[i]->item;
      const double flops = product && !by_memory[i] ? item.flops(0) : 0;
      const double waves = product && !by_memory[i] ? wave_flops(item, 0, data_.multiprocessors) : 0;
      const double bytes = !overlap_ || by_memory[i] ? item.bytes(0) : 0;
      const double launches = fit_seconds(unit, data_, item, 0);
      if (product)
        features.push_back({flops, bytes, launches, waves});
      else
        features.push_back({bytes, launches, 0, 0});
      seconds.push_back(used[i]->seconds);
    }
    const std::vector<double> c = fit_relative(features, seconds);
    KernelFit fit;
    fit.overlap = overlap_;
    fit.s_per_flop = product ? c[0] : 0;
    fit.s_per_byte = product ? c[1] : c[0];
    fit.launch_s = product ? c[2] : c[1];
    fit.s_per_wave_flop = product ? c[3] : 0;
    return fit;
  }

  const std::vector<FitPoint>& points_;
  const MachineData& data_;
  bool overlap_;
};

/// measured / predicted of each point, by a fit without its shape. With one or two shapes, the fit leaves out only the
/// point.
std::vector<double> held_out_ratios(const std::vector<FitPoint>& points, const MachineData& data, bool overlap) {
  std::set<ItemKey> shapes;
  for (const FitPoint& p : points) shapes.insert(p.key);
  if (points.size() < 4) return {};
  const Fitter fitter(points, data, overlap);
  std::vector<double> ratios;
  const auto check = [&](auto skip) {
    const KernelFit fit = fitter.fit(skip);
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!skip(i)) continue;
      const double predicted = fit_seconds(fit, data, points[i].item, 0);
      if (predicted > 0) ratios.push_back(points[i].seconds / predicted);
    }
  };
  if (shapes.size() >= 3)
    for (const ItemKey& shape : shapes) check([&](std::size_t i) { return points[i].key == shape; });
  else
    for (std::size_t out = 0; out < points.size(); ++out) check([&](std::size_t i) { return i == out; });
  return ratios;
}

void fit_class(const ClassKey& key, std::vector<FitPoint> points, Calibration& out) {
  // Assumed points are used only if there are no others.
  const auto assumed = [](const FitPoint& p) { return p.evidence == Evidence::assumed; };
  if (!std::ranges::all_of(points, assumed))
    points.erase(std::remove_if(points.begin(), points.end(), assumed), points.end());

  const auto none = [](std::size_t) { return false; };
  double sum_residual = 0, overlap_residual = 0;
  KernelFit fit = Fitter(points, out.data, false).fit(none, &sum_residual);
  if (is_product(key.kernel) && points.size() >= 4) {
    const KernelFit overlapped = Fitter(points, out.data, true).fit(none, &overlap_residual);
    // If both fits are exact but for rounding, take the simpler one.
    if (overlap_residual < sum_residual * (1 - 1e-9) - 1e-12 * static_cast<double>(points.size())) fit = overlapped;
  }
  std::vector<double> measured, predicted;
  Evidence root = Evidence::measured;
  for (const FitPoint& p : points) {
    root = std::max(root, p.root);
    measured.push_back(p.seconds);
    predicted.push_back(fit_seconds(fit, out.data, p.item, 0));
    fit.evidence = p.evidence == Evidence::assumed || fit.evidence != Evidence::assumed
                       ? std::max(fit.evidence, p.evidence)
                       : p.evidence;
  }
  if (root != fit.evidence) fit.root = root;
  const std::vector<double> ratios = held_out_ratios(points, out.data, fit.overlap);
  std::tie(fit.low_ratio, fit.high_ratio) = ratio_interval(ratios);
  fit.points = static_cast<std::int64_t>(points.size());
  out.residuals.push_back(residual_row(to_string(key), "fit", measured, predicted, ratios));

  // The staircase's own error: each measured point is predicted from its neighbours.
  std::vector<double> table_measured, table_predicted, table_ratios;
  for (const auto& [item, table] : out.data.table) {
    if (item.kernel != key.kernel || item.pass != key.pass || item.precision != key.precision) continue;
    for (std::size_t i = 0; i < table.size(); ++i)
      if (const auto seconds = staircase_seconds(table, table[i].rows, 1, static_cast<std::ptrdiff_t>(i))) {
        table_measured.push_back(table[i].seconds);
        table_predicted.push_back(*seconds);
        table_ratios.push_back(table[i].seconds / *seconds);
      }
  }
  std::tie(fit.table_low_ratio, fit.table_high_ratio) = ratio_interval(table_ratios);
  if (!table_ratios.empty())
    out.residuals.push_back(residual_row(to_string(key), "staircase", table_measured, table_predicted, table_ratios));
  out.data.fits[key] = fit;
}

}  // namespace

void calibrate_items(const std::vector<Sample>& samples, Calibration& out) {
  fill_table(samples, out);
  std::map<ClassKey, std::vector<FitPoint>> classes;
  for (const auto& [key, points] : out.data.table)
    for (const TimePoint& p : points)
      classes[{key.kernel, key.pass, key.precision}].push_back(
          {key, make_item(key.kernel, key.pass, key.precision, {p.rows, 0}, key.dims), p.seconds, p.evidence,
           p.root.value_or(p.evidence)});
  for (auto& [key, points] : classes) fit_class(key, std::move(points), out);
}

}  // namespace wt::detail
