#include "configs/base/quantity.hpp"

#include <array>
#include <cmath>
#include <cstdlib>
#include <span>
#include <utility>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"

namespace wt {
namespace {

using Unit = std::pair<const char*, double>;

constexpr double kKi = 1024.0, kMi = kKi * 1024, kGi = kMi * 1024, kTi = kGi * 1024;
constexpr std::array kTime{Unit{"ns", 1e-9}, Unit{"us", 1e-6},  Unit{"ms", 1e-3},  Unit{"s", 1.0},
                           Unit{"m", 60.0},  Unit{"h", 3600.0}, Unit{"d", 86400.0}};
constexpr std::array kBytes{Unit{"B", 1.0},   Unit{"kB", 1e3},  Unit{"MB", 1e6},  Unit{"GB", 1e9}, Unit{"TB", 1e12},
                            Unit{"KiB", kKi}, Unit{"MiB", kMi}, Unit{"GiB", kGi}, Unit{"TiB", kTi}};
constexpr std::array kRate{Unit{"MB/s", 1e6},  Unit{"GB/s", 1e9},     Unit{"TB/s", 1e12},    Unit{"MiB/s", kMi},
                           Unit{"GiB/s", kGi}, Unit{"Mb/s", 1e6 / 8}, Unit{"Gb/s", 1e9 / 8}, Unit{"Tb/s", 1e12 / 8}};
constexpr std::array kPower{Unit{"W", 1.0}, Unit{"kW", 1e3}};
constexpr std::array kCount{Unit{"", 1.0}, Unit{"k", 1e3}, Unit{"M", 1e6}, Unit{"B", 1e9}, Unit{"T", 1e12}};

double parse(const std::string& text, std::span<const Unit> units, const char* what, const std::string& where) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  std::string suffix = end;
  while (!suffix.empty() && suffix.front() == ' ') suffix.erase(0, 1);
  if (end != text.c_str() && std::isfinite(value) && value >= 0)
    for (const auto& [name, factor] : units)
      if (suffix == name) return value * factor;
  const std::string allowed = joined(units, ", ", [](const Unit& unit) { return *unit.first ? unit.first : "none"; });
  throw_usage("{}: found '{}', needs a {} with one of the units {}; write for example '{}{}'", where, text, what,
              allowed, 30, units[units.size() / 2].first);
}

std::string three_digits(double value, const char* unit) {
  const double magnitude = std::abs(value);
  return fmt::format("{:.{}f} {}", value, magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2, unit);
}

}  // namespace

double parse_seconds(const std::string& t, const std::string& where) { return parse(t, kTime, "duration", where); }
double parse_bytes(const std::string& t, const std::string& where) { return parse(t, kBytes, "size", where); }
double parse_bytes_per_second(const std::string& t, const std::string& where) {
  return parse(t, kRate, "bandwidth", where);
}
double parse_watts(const std::string& t, const std::string& where) { return parse(t, kPower, "power", where); }
double parse_count(const std::string& t, const std::string& where) { return parse(t, kCount, "count", where); }

std::string format_seconds(double s) {
  const double magnitude = std::abs(s);
  if (magnitude >= 2 * 86400) return three_digits(s / 86400, "days");
  if (magnitude >= 2 * 3600) return three_digits(s / 3600, "h");
  if (magnitude >= 120) return three_digits(s / 60, "min");
  if (magnitude >= 1) return three_digits(s, "s");
  if (magnitude >= 1e-3) return three_digits(s * 1e3, "ms");
  return three_digits(s * 1e6, "us");
}

std::string format_bytes(double bytes) {
  const double magnitude = std::abs(bytes);
  if (magnitude >= kTi) return three_digits(bytes / kTi, "TiB");
  if (magnitude >= kGi) return three_digits(bytes / kGi, "GiB");
  if (magnitude >= kMi) return three_digits(bytes / kMi, "MiB");
  if (magnitude >= kKi) return three_digits(bytes / kKi, "KiB");
  return fmt::format("{:.0f} B", bytes);
}

std::string format_tokens(double tokens) {
  return tokens >= 1e12 ? fmt::format("{:.3g}T", tokens / 1e12) : fmt::format("{:.3g}B", tokens / 1e9);
}

}  // namespace wt
