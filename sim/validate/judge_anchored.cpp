#include "sim/validate/judge_anchored.hpp"

#include <fmt/core.h>

#include <cmath>
#include <map>

#include "configs/base/error.hpp"
#include "configs/base/statistics.hpp"
#include "sim/cost/stacks/own_steps.hpp"

namespace wt {
namespace {

/// A row's prediction from other origins, and what stretches it.
struct Prepared {
  double log_change(const std::map<std::string, double>& factors) const {
    return std::log(forecast(step.files, *step.scaled(factors)).step_s / step_s);
  }

  StepWithout step;
  double step_s = 0;
  OwnStep own;
};

Prepared prepared(const RunRow& row, const PublishedTimes& published) {
  Prepared out{StepWithout(row, stack_of(row.framework, published.stacks()), published, LeftOutOfSteps::origin), 0, {}};
  out.step_s = forecast(out.step.files, *out.step.cost).step_s;
  for (std::size_t i = 0; i < kStackFactors.size(); ++i)
    out.own.sensitivity[i] = out.log_change({{kStackFactors[i], std::exp(kSensitivityLog)}}) / kSensitivityLog;
  out.own.log_ratio = std::log(row.step_s / out.step_s);
  return out;
}

}  // namespace

AnchoredRows judge_anchored_runs(const std::vector<RunRow>& rows, const PublishedTimes& published,
                                 const AnchorsAsked& asked) {
  const std::vector<Judged> all = judge_runs(rows, published);
  std::map<std::string, std::vector<std::size_t>> jobs;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (all[i].forecast.value)
      jobs[fmt::format("{}|{}|{}", all[i].origin, rows[i].model.name, rows[i].gpu)].push_back(i);
  const auto anchors = draw_anchors(jobs, asked);
  std::map<std::size_t, Prepared> steps;
  for (const auto& [index, known] : anchors) {
    steps.emplace(index, prepared(rows[index], published));
    if (asked.progress) asked.progress(steps.size(), anchors.size());
  }
  AnchoredRows out;
  for (const auto& [index, known] : anchors) {
    const Prepared& row = steps.at(index);
    std::vector<OwnStep> measured;
    double log_share = 0;
    for (const std::size_t other : known) {
      measured.push_back(steps.at(other).own);
      log_share += std::log(*share_of_peak(rows[other])) / static_cast<double>(known.size());
    }
    OwnSteps own(measured);
    own.settle([&](const std::map<std::string, double>& factors) {
      std::vector<double> changes;
      for (const std::size_t other : known) changes.push_back(steps.at(other).log_change(factors));
      return changes;
    });
    const double step_s = row.step_s * std::exp(row.log_change(own.factors())),
                 spread = std::exp(kAt90 * own.log_spread(row.own.sensitivity, own_spread(rows[index].model)));
    Judged j = all[index];
    j.forecast.value = step_s, j.forecast.low = step_s / spread, j.forecast.high = step_s * spread;
    j.baseline.value = *share_of_peak(rows[index]) * rows[index].step_s / std::exp(log_share);
    out.without.push_back(all[index]);
    out.with.push_back(std::move(j));
  }
  add_intervals(out.with, &Judged::baseline);
  return out;
}

}  // namespace wt
