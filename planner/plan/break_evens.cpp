#include "planner/plan/break_evens.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "planner/cadence/recovery_formulas.hpp"

namespace wt {
namespace {

constexpr double kRates[] = {0.25, 0.5, 1, 2, 4};  // relative to the study's rate
constexpr double kSurvivals[] = {0.5, 0.8, 0.95};
constexpr std::int64_t kStandbys[] = {1, 2, 4, 8};
constexpr double kFoundAfter_s[] = {3600, kDay_s, 7 * kDay_s};
constexpr double kChecks_s[] = {1, 10, 60};
constexpr std::int64_t kMostCopies = 256;  // copies between two saves

ShownNumber in_seconds(double seconds) { return {seconds, format_seconds(seconds)}; }
double per_1000_node_days(const CadenceInput& in, double mtbf_s) {
  return 1000 * kDay_s / (as_double(in.nodes) * mtbf_s);
}

CadenceInput at_rate(CadenceInput in, double rate) {
  in.mtbf_s.value /= rate;
  return in;
}

BreakEvenAxis rates_of(const CadenceInput& in) {
  BreakEvenAxis axis{"failures", "per 1000 node-days", {}};
  for (const double rate : kRates) {
    const double value = per_1000_node_days(in, at_rate(in, rate).mtbf_s.value);
    axis.values.push_back({value, fmt::format("{:.2f}", value)});
  }
  return axis;
}

/// Calls `does` for each interval of local copies that is shorter than the save interval.
void for_each_interval(const CadenceInput& in,
                       const std::function<void(double interval_s, std::int64_t copies)>& does) {
  const CadencePlan plan = choose_cadence(in);
  for (std::int64_t copies = 2; copies <= std::min(kMostCopies, plan.interval_steps); ++copies)
    does(plan.interval_s.value, copies);
}

/// Goodput gained by local copies at their best interval; NaN if two saves have no step between them.
double copies_gain(const CadenceInput& in, double survival) {
  const double copy_s = in.blocking_s.value, down_s = in.recovery.total_s() - in.recovery.reload_s.value;
  double best = NAN;
  for_each_interval(in, [&](double interval_s, std::int64_t copies) {
    // A failure that needs storage also loses the work since the last persisted save.
    TwoLevels levels{.mtbf = in.mtbf_s.value,
                     .local_interval = interval_s,
                     .locals_a_save = 1,
                     .blocking = copy_s,
                     .downtime = down_s,
                     .local_reload = copy_s,
                     .reload = in.recovery.reload_s.value + in.persist_s.value};
    const double without = two_level_goodput(levels);
    levels.local_interval = interval_s / as_double(copies);
    levels.locals_a_save = copies;
    levels.survival = survival;
    best = std::fmax(best, two_level_goodput(levels) - without);
  });
  return best;
}

}  // namespace

double least_survival_that_pays(const CadenceInput& in) {
  double least = INFINITY;
  for_each_interval(in, [&](double interval_s, std::int64_t copies) {
    least =
        std::min(least, survival_that_pays(interval_s, in.persist_s.value, in.recovery.reload_s.value, in.mtbf_s.value,
                                           interval_s / as_double(copies), in.blocking_s.value, in.blocking_s.value));
  });
  return least;
}

BreakEvenSurface local_copies_surface(const CadenceInput& in) {
  BreakEvenSurface out{
      .policy = "restart from local copies",
      .title = "Goodput that local copies gain",
      .unit = "points",
      .row = rates_of(in),
      .column = {"failures that leave copies whole", "%", {}},
      .cells = {},
      .note = fmt::format("Closed form, with the best interval of copies and as many saves to storage as without; a "
                          "copy takes {}. Below 0 they do not pay; no room: every step is saved already.",
                          format_seconds(in.blocking_s.value))};
  for (const double survival : kSurvivals)
    out.column.values.push_back({survival, fmt::format("{:g} %", 100 * survival)});
  for (const double rate : kRates) {
    auto& cells = out.cells.emplace_back();
    for (const double survival : kSurvivals) {
      const double gain = copies_gain(at_rate(in, rate), survival);
      cells.push_back({100 * gain, std::isnan(gain) ? "no room" : fmt::format("{:+.2f}", 100 * gain)});
    }
  }
  return out;
}

BreakEvenSurface hot_spares_surface(const CadenceInput& in) {
  const double cold_s = in.recovery.reschedule_s.value + in.recovery.restart_s.value;
  BreakEvenSurface out{.policy = "hot spares",
                       .title = "How soon hot spares must be ready, where standbys could train instead",
                       .unit = "time",
                       .row = rates_of(in),
                       .column = {"standbys", "nodes", {}},
                       .cells = {},
                       .note = fmt::format("Closed form: failures x nodes x what each is ready sooner than a cold "
                                           "spare ({}) = idle node-time of the standbys.",
                                           format_seconds(cold_s))};
  for (const std::int64_t standbys : kStandbys)
    out.column.values.push_back({as_double(standbys), fmt::format("{}", standbys)});
  for (const double rate : kRates) {
    auto& cells = out.cells.emplace_back();
    for (const std::int64_t standbys : kStandbys) {
      const double s = activation_that_pays(cold_s, at_rate(in, rate).mtbf_s.value, in.nodes, standbys);
      cells.push_back(s > 0 ? in_seconds(s) : ShownNumber{NAN, "never"});
    }
  }
  return out;
}

BreakEvenSurface verification_surface(const CadenceInput& in) {
  const double interval_s = choose_cadence(in).interval_s.value;
  BreakEvenSurface out{.policy = "verified rollback",
                       .title = "Silent errors above which a check before each save pays",
                       .unit = "per 1000 node-days",
                       .row = {"found without a check after", "time", {}},
                       .column = {"the check takes", "time", {}},
                       .cells = {},
                       .note = fmt::format("Closed form, a save every {}: an error costs what was trained since it, "
                                           "and half an interval; a checked one costs one interval.",
                                           format_seconds(interval_s))};
  for (const double check_s : kChecks_s) out.column.values.push_back(in_seconds(check_s));
  for (const double found_s : kFoundAfter_s) {
    out.row.values.push_back(in_seconds(found_s));
    auto& cells = out.cells.emplace_back();
    for (const double check_s : kChecks_s) {
      const double mtbf_s = silent_mtbf_that_pays(interval_s, found_s, check_s);
      const double rate = mtbf_s > 0 ? per_1000_node_days(in, mtbf_s) : NAN;
      cells.push_back({rate, mtbf_s > 0 ? fmt::format("{:.2g}", rate) : "never"});
    }
  }
  return out;
}

}  // namespace wt
