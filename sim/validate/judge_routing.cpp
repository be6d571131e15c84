#include "sim/validate/judge_routing.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "configs/base/error.hpp"
#include "sim/cost/ops/remembered_cost.hpp"
#include "sim/validate/judge_runs.hpp"
#include "sim/validate/routed_case.hpp"

namespace wt {
namespace {

/// Means over the recorded iterations.
struct PlacedForecast {
  RunForecast step;
  double routed = 0;  ///< share of the step's time that depends on loads: experts, and waiting for their rows
};

double routed_share(const ReplayResult& step) {
  double seconds = 0;
  for (const OpClassTotal& total : step.totals) {
    if (total.action == Action::experts) seconds += total.busy_s;
    if (total.action == Action::dispatch || total.action == Action::collect) seconds += total.exposed_s;
  }
  return std::min(1.0, seconds / step.step_s);
}

/// One model in one layout, simulated under several loads.
class PlacedRun {
 public:
  PlacedRun(RunRow run, const PublishedTimes& published)
      : run_(std::move(run)),
        step_(run_, stack_of(run_.framework, published.stacks()), published, LeftOutOfSteps::origin),
        remembered_(*step_.cost) {
    evidence_ = !step_.typical && step_.known_chip ? Evidence::published : Evidence::derived;
  }

  const std::string& group() const { return run_.group; }
  const std::string& origin() const { return run_.origin; }
  Evidence evidence() const { return evidence_; }

  const PlacedForecast& under(const std::pair<std::string, std::string>& recording, const RankLoads& loads) {
    const auto [it, fresh] = under_.try_emplace(recording);
    if (fresh) it->second = simulate(loads);
    return it->second;
  }
  const PlacedForecast& balanced() {
    if (!(balanced_.step.step_s > 0)) balanced_ = simulate({{{1.0}}});
    return balanced_;
  }

 private:
  PlacedForecast simulate(const RankLoads& loads) const {
    const RunSpec& asked = step_.files.run;
    const auto routing = rank_total_routing(asked.model, asked.tokens(), asked.layout.expert, loads);
    const std::size_t steps = loads.front().size();
    const double each = 1 / static_cast<double>(steps);
    PlacedForecast out;
    for (std::size_t i = 0; i < steps; ++i) {
      const ReplayResult step =
          simulated(step_.files, remembered_, step_.off_by, *routing, static_cast<std::int64_t>(i));
      out.step.step_s += step.step_s * each;
      out.step.low_s += step.low_s * each;
      out.step.high_s += step.high_s * each;
      out.routed += routed_share(step) * each;
    }
    return out;
  }

  RunRow run_;
  StepWithout step_;
  RememberedCost remembered_;
  Evidence evidence_ = Evidence::derived;
  std::map<std::pair<std::string, std::string>, PlacedForecast> under_;  ///< by recording (model and method)
  PlacedForecast balanced_;
};

Forecast forecast_of(const RunForecast& step, const EvidenceShares& evidence) {
  return {step.step_s, step.low_s, step.high_s, evidence, ""};
}

/// A share `assumed` of the time rests on assumptions, the rest on `otherwise`.
EvidenceShares partly_assumed(double assumed, Evidence otherwise) {
  EvidenceShares out{};
  out[static_cast<std::size_t>(otherwise)] = 1 - assumed;
  out[static_cast<std::size_t>(Evidence::assumed)] = assumed;
  return out;
}

class PlacementJudge {
 public:
  PlacementJudge(const RoutedContext& context, const PublishedTimes& published)
      : context_(context), published_(published) {}

  Judged judge(const PlacedStep& row) {
    const RoutedCase given = routed_case(row, context_);
    Judged j;
    j.line = row.line;
    j.choice = fmt::format("{}, {}, balancing loss {}", row.model, row.dataset, row.aux_loss);
    j.alternative = row.method;
    j.name = j.choice + ", " + j.alternative;
    j.group = given.model;
    j.regime = given.reason.empty() ? regime_of(given.basis) : given.unknown;
    j.measured = row.seconds;
    j.assumed = given.assumed;
    j.forecast.reason = j.baseline.reason = given.reason;
    if (given.reason.empty()) try {
        predict(j, given);
      } catch (const Error& e) {
        if (e.code() != Code::usage) throw;
        j.regime = "no predicted time";
        j.forecast = j.baseline = {};
        j.forecast.reason = j.baseline.reason = e.what();
      }
    return j;
  }

 private:
  void predict(Judged& j, const RoutedCase& given) {
    PlacedRun& run = run_of(given);
    const PlacedForecast& placed = run.under(given.recording, given.loads);
    j.group = run.group();
    j.origin = run.origin();
    const bool shape = given.basis == RoutedBasis::other_shape, recorded = given.basis == RoutedBasis::recorded;
    j.forecast = forecast_of(placed.step, partly_assumed(shape ? 1 : recorded ? 0 : placed.routed, run.evidence()));
    j.baseline = forecast_of(run.balanced().step, only(Evidence::assumed));
  }

  PlacedRun& run_of(const RoutedCase& given) {
    const ModelSpec& model = given.setup.run.model;
    std::unique_ptr<PlacedRun>& run =
        runs_[{given.model, model.name, model.experts, model.top_k, given.basis == RoutedBasis::other_shape}];
    if (run) return *run;
    RunRow row = given.setup.run;
    row.name = given.model;
    row.group = run_group(row);
    run = std::make_unique<PlacedRun>(std::move(row), published_);
    return *run;
  }

  const RoutedContext& context_;
  const PublishedTimes& published_;
  /// By name of the case, model that gave the shape, experts, choices per token, and whether the shape is assumed.
  std::map<std::tuple<std::string, std::string, std::int64_t, std::int64_t, bool>, std::unique_ptr<PlacedRun>> runs_;
};

}  // namespace

std::vector<Judged> judge_routing(const std::vector<PlacedStep>& rows, const RoutedContext& context,
                                  const PublishedTimes& published,
                                  const std::function<void(std::size_t done, std::size_t all)>& progress) {
  PlacementJudge judge(context, published);
  std::vector<Judged> out;
  for (const PlacedStep& row : rows) {
    out.push_back(judge.judge(row));
    if (progress) progress(out.size(), rows.size());
  }
  return out;
}

}  // namespace wt
