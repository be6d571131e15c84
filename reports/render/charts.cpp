#include "reports/render/charts.hpp"

#include <algorithm>
#include <cmath>

namespace wt {

Chart waterfall(std::string title, std::string unit, std::pair<std::string, double> start,
                const std::vector<std::pair<std::string, double>>& changes, std::string end_label) {
  Chart chart{.kind = ChartKind::waterfall, .title = std::move(title), .unit = std::move(unit), .horizontal = true};
  Series bars{.name = "change"};
  const auto add = [&](std::string label, double value, double from, double to) {
    chart.labels.push_back(std::move(label));
    bars.values.push_back(value);
    bars.low.push_back(std::min(from, to));
    bars.high.push_back(std::max(from, to));
  };
  double level = start.second;
  add(std::move(start.first), level, 0, level);
  for (const auto& [label, change] : changes) {
    add(label, change, level, level + change);
    level += change;
  }
  add(std::move(end_label), level, 0, level);
  chart.series = {std::move(bars)};
  return chart;
}

Chart tornado(std::string title, std::string unit, ReferenceLine baseline, std::vector<Sensitivity> inputs) {
  Chart chart{.kind = ChartKind::tornado,
              .title = std::move(title),
              .unit = std::move(unit),
              .line = std::move(baseline),
              .horizontal = true};
  const double base = chart.line->value;
  const auto swing = [&](const Sensitivity& input) {
    return std::max({base, input.at_low, input.at_high}) - std::min({base, input.at_low, input.at_high});
  };
  std::ranges::stable_sort(inputs, [&](const auto& a, const auto& b) { return swing(a) > swing(b); });
  Series low{.name = "input at its low end"}, high{.name = "input at its high end"};
  for (const Sensitivity& input : inputs) {
    chart.labels.push_back(input.input);
    for (auto [series, value] : {std::pair{&low, input.at_low}, std::pair{&high, input.at_high}}) {
      series->values.push_back(value);
      series->low.push_back(std::min(base, value));
      series->high.push_back(std::max(base, value));
    }
  }
  chart.series = {std::move(low), std::move(high)};
  return chart;
}

Chart in_readable_unit(Chart chart) {
  if (chart.unit != "s") return chart;
  double largest = 0;
  const auto each_value = [&](const auto& visit) {
    for (Series& series : chart.series)
      for (std::vector<double>* values : {&series.values, &series.low, &series.high})
        for (double& value : *values) visit(value);
    if (chart.line) visit(chart.line->value);
  };
  each_value([&](double value) { largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest; });
  double scale = 1;
  for (const char* unit : {"ms", "us", "ns"})
    if (largest > 0 && largest * scale < 1) scale *= 1e3, chart.unit = unit;
  each_value([&](double& value) { value *= scale; });
  return chart;
}

}  // namespace wt
