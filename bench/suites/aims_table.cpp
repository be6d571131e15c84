#include <algorithm>
#include <optional>

#include "bench/formats/rate.hpp"
#include "bench/suites/aims.hpp"
#include "bench/work/work_list.hpp"
#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"

namespace wt {
namespace {

struct Row {
  const Measurement* found = nullptr;
  double rate = 0;
};

Row row_of(const Profile& profile, const std::string& name) {
  for (const Measurement& m : profile.measurements)
    if (m.name() == name) {
      const std::optional<Rate> r = rate(m);
      return {&m, r ? r->value : 0};
    }
  return {};
}

std::string why_missing(const Profile& profile, const std::string& name) {
  for (const FailedMeasurement& f : profile.failures)
    if (f.name == name) return "failed";
  return "not measured";
}

struct Reached {
  double value = 0;
  std::string obstacle;  ///< why the aim cannot be judged
};

Reached reached(const Aim& aim, const Profile& profile) {
  const Row own = row_of(profile, aim.row);
  if (!own.found) return {0, why_missing(profile, aim.row)};
  bool throttled = !own.found->throttled.empty();
  double best = 0;
  for (const std::string& name : aim.compared_with) {
    const Row other = row_of(profile, name);
    if (!other.found) return {0, why_missing(profile, name)};
    throttled = throttled || !other.found->throttled.empty();
    best = std::max(best, other.rate);
  }
  if (!aim.compared_with.empty() && !(best > 0)) return {0, "no rate"};
  const bool failed = why_missing(profile, aim.row) == "failed";  // possibly after some samples
  const double value = aim.compared_with.empty() ? own.found->median() : own.rate / best;
  return {value, failed ? "failed" : throttled ? "throttled" : ""};
}

}  // namespace

std::string aims_table(const std::vector<Aim>& aims, const Profile& profile, const std::string& judged_on) {
  std::size_t width = 3;
  for (const Aim& aim : aims) width = std::max(width, aim.what.size());
  const auto device = profile.fingerprint.find("device");
  const bool judged = device != profile.fingerprint.end() && is_gpu(device->second, judged_on);
  std::string out = fmt::format("{:<{}}  {:>9}  {:>9}  verdict\n", "aim", width, "aim", "reached");
  for (const Aim& aim : aims) {
    const Reached r = reached(aim, profile);
    const bool seconds = aim.compared_with.empty();
    const auto shown = [&](double value) { return seconds ? format_seconds(value) : fmt::format("{:.2f}", value); };
    const bool met = seconds ? r.value <= aim.limit : r.value >= aim.limit;
    const std::string verdict = !r.obstacle.empty() ? r.obstacle
                                : !judged           ? "not judged, the aims are of an " + judged_on
                                : met               ? "met"
                                                    : "missed";
    out += fmt::format("{:<{}}  {:>9}  {:>9}  {}\n", aim.what, width, (seconds ? "<= " : ">= ") + shown(aim.limit),
                       r.value > 0 ? shown(r.value) : "-", verdict);
  }
  return out;
}

}  // namespace wt
