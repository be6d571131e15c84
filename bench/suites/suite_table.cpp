#include "bench/suites/suite_table.hpp"

#include <algorithm>
#include <set>

#include "bench/formats/rate.hpp"
#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"

namespace wt {

std::string bench_table(const Profile& profile) {
  std::size_t width = 4;
  for (const Measurement& m : profile.measurements) width = std::max(width, m.name().size());
  for (const FailedMeasurement& f : profile.failures) width = std::max(width, f.name.size());
  std::string out =
      fmt::format("{:<{}}  {:>9}  {:>7}  {:>16}  {:>12}\n", "name", width, "median", "spread", "rate", "busbw");
  bool estimated = false;
  for (const Measurement& m : profile.measurements) {
    const auto found = rate(m);
    const auto bus = m.counters.find("busbw_Bps");
    out += fmt::format("{:<{}}  {:>9}  {:>5.1f} %  {:>16}  {:>12}  {}", m.name(), width, format_seconds(m.median()),
                       spread(m) * 100, found ? to_string(*found) : "",
                       bus == m.counters.end() ? "" : to_string(Rate{bus->second, "B/s"}),
                       m.backend.empty() ? "" : "by " + m.backend);
    out.resize(out.find_last_not_of(' ') + 1);
    out += "\n";
    estimated |= found && found->estimated;
  }
  for (const FailedMeasurement& f : profile.failures)
    out += fmt::format("{:<{}}  failed: {}\n", f.name, width, f.error);
  if (estimated) out += kEstimatedRates + std::string("\n");
  return out;
}

std::string throttling_note(const Profile& profile) {
  std::size_t slowed = 0;
  std::set<std::string> reasons;
  for (const Measurement& m : profile.measurements) {
    slowed += m.throttled.empty() ? 0 : 1;
    reasons.insert(m.throttled.begin(), m.throttled.end());
  }
  if (slowed == 0) return "";
  std::string names;
  for (const std::string& reason : reasons) names += (names.empty() ? "" : ", ") + reason;
  return fmt::format(
      "{} of {} measurements were taken on a throttled device ({}); they are marked so, and gate does not compare them",
      slowed, profile.measurements.size(), names);
}

}  // namespace wt
