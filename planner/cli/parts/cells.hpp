// Numbers as table cells, formatted the same in every report.
#pragma once
#include <fmt/core.h>

#include <cstdint>

#include "reports/model/report.hpp"

namespace wt {

inline Cell whole(std::int64_t n) { return {static_cast<double>(n), std::to_string(n)}; }
/// For a column in ms.
inline Cell milliseconds(double seconds) { return {1e3 * seconds, fmt::format("{:.4g}", 1e3 * seconds)}; }
/// For a column in percent: 0.125 is "12.5".
inline Cell percent(double share) { return {100 * share, fmt::format("{:.1f}", 100 * share)}; }
/// The same for a change: "+12.5".
inline Cell signed_percent(double share) { return {100 * share, fmt::format("{:+.1f}", 100 * share)}; }

}  // namespace wt
