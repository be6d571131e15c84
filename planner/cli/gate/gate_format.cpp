#include "planner/cli/gate/gate_format.hpp"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <utility>

#include "configs/base/quantity.hpp"

namespace wt {

std::string gate_value(const std::optional<double>& value, const std::string& unit) {
  if (!value) return "-";
  if (unit != "s") return fmt::format("{:.4g} {}", *value, unit);
  static constexpr std::array<std::pair<double, const char*>, 4> kUnits = {
      {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
  for (const auto& [scale, name] : kUnits)
    if (*value >= scale || scale == kUnits.back().first) return fmt::format("{:.4g} {}", *value / scale, name);
  return "-";
}

std::string gate_change(const std::optional<double>& ratio) {
  if (!ratio) return "-";
  const double percent = (*ratio - 1) * 100;
  return fmt::format("{:+.1f} %", std::abs(percent) < 0.05 ? 0.0 : percent);
}

std::string gate_interval(const GateRow& row) {
  if (!row.ratio_low || !row.ratio_high) return "-";
  return fmt::format("[{}, {}]", gate_change(row.ratio_low), gate_change(row.ratio_high));
}

std::string gate_floors(const GateOptions& o) {
  std::string out = fmt::format("more than {:g} %", o.relative_floor * 100);
  if (o.absolute_floor_s > 0) out += " and more than " + format_seconds(o.absolute_floor_s);
  return out;
}

std::string gate_samples(const GateRow& row) { return fmt::format("{}/{}", row.base_n, row.current_n); }

std::string gate_p(const std::optional<double>& p) { return p ? fmt::format("{:.2g}", *p) : "-"; }

std::string gate_reason(const GateRow& row) {
  if (row.verdict != Verdict::inconclusive || !row.samples_needed) return row.reason;
  return fmt::format("{}; about {} samples a side would tell", row.reason, *row.samples_needed);
}

}  // namespace wt
