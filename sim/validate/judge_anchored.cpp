#include "sim/validate/judge_anchored.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "configs/base/error.hpp"
#include "sim/cost/stacks/own_steps.hpp"

namespace wt {
namespace {

/// A row's prediction from other origins, and what stretches it.
struct Prepared {
  std::size_t index = 0;  ///< of the row
  StepWithout step;
  OwnStep own;
};

Prepared prepared(std::size_t index, const RunRow& row, const PublishedTimes& published) {
  Prepared out{
      index, StepWithout(row, stack_of(row.framework, published.stacks()), published, LeftOutOfSteps::origin), {}};
  const double step_s = forecast(out.step.files, *out.step.cost).step_s;
  for (std::size_t i = 0; i < kStackFactors.size(); ++i) {
    const auto cost = out.step.scaled({{kStackFactors[i], std::exp(kSensitivityLog)}});
    out.own.sensitivity[i] = std::log(forecast(out.step.files, *cost).step_s / step_s) / kSensitivityLog;
  }
  out.own.log_ratio = std::log(row.step_s / step_s);
  return out;
}

}  // namespace

AnchoredRuns judge_anchored_runs(const std::vector<RunRow>& rows, const PublishedTimes& published,
                                 const AnchorsAsked& asked) {
  const std::vector<Judged> all = judge_runs(rows, published);
  std::map<std::string, std::vector<std::size_t>> jobs;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (all[i].forecast.value)
      jobs[fmt::format("{}|{}|{}", all[i].origin, rows[i].model.name, rows[i].gpu)].push_back(i);
  const auto needed = static_cast<std::size_t>(asked.anchors) + 1;
  std::erase_if(jobs, [&](const auto& job) { return job.second.size() < needed; });
  std::size_t done = 0, count = 0;
  for (const auto& [name, members] : jobs) count += members.size();

  std::map<std::size_t, Judged> with;
  for (const auto& [name, members] : jobs) {
    std::vector<Prepared> job;
    for (const std::size_t index : members) job.push_back(prepared(index, rows[index], published));
    for (const Prepared& p : job) {
      std::vector<const Prepared*> others;
      for (const Prepared& other : job)
        if (other.index != p.index) others.push_back(&other);
      std::mt19937_64 draw(asked.seed * 1'000'003 + p.index);
      std::ranges::shuffle(others, draw);
      others.resize(needed - 1);
      std::vector<OwnStep> known;
      double log_share = 0;
      for (const Prepared* other : others) {
        known.push_back(other->own);
        log_share += std::log(*share_of_peak(rows[other->index])) / static_cast<double>(others.size());
      }
      const OwnSteps own(known);
      const double step_s = forecast(p.step.files, *p.step.scaled(own.factors())).step_s,
                   spread = std::exp(kNormal80 * own.log_spread(p.own.sensitivity));
      Judged j = all[p.index];
      j.forecast.value = step_s, j.forecast.low = step_s / spread, j.forecast.high = step_s * spread;
      j.baseline.value = *share_of_peak(rows[p.index]) * rows[p.index].step_s / std::exp(log_share);
      with[p.index] = std::move(j);
      if (asked.progress) asked.progress(++done, count);
    }
  }
  AnchoredRuns out;
  for (auto& [index, judged] : with) out.without.push_back(all[index]), out.with.push_back(std::move(judged));
  add_intervals(out.with, &Judged::baseline);
  return out;
}

}  // namespace wt
