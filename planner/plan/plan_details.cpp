#include "planner/plan/plan_details.hpp"

#include <algorithm>
#include <limits>

#include "configs/base/error.hpp"
#include "planner/plan/plan_search.hpp"
#include "planner/search/search_evaluate.hpp"

namespace wt {
namespace {

struct VariedInput {
  const char* name;
  double ScaleSpec::*factor;
  double low, high;
};
constexpr VariedInput kVaried[] = {{"NIC bandwidth", &ScaleSpec::network_bandwidth, 0.5, 1.5},
                                   {"collective latency", &ScaleSpec::network_latency, 0.5, 8},
                                   {"compute rate", &ScaleSpec::compute_rate, 0.9, 1.1},
                                   {"routing imbalance", &ScaleSpec::imbalance, 0, 2},
                                   {"time between failures", &ScaleSpec::mtbf, 0.5, 2},
                                   {"storage bandwidth", &ScaleSpec::storage_bandwidth, 0.5, 2}};

bool varies(const PlanInputs& inputs, const VariedInput& input) {
  if (input.factor == &ScaleSpec::imbalance) return !inputs.scenarios.empty();
  return input.factor != &ScaleSpec::network_bandwidth || !inputs.study.cluster.shared_cores();
}

struct BestLayout {
  Layout layout;
  double value = std::numeric_limits<double>::infinity();  ///< of the objective
  bool searched = false;
};

/// The best of the whole space if it is small, else of the layouts that the plan's search simulated.
BestLayout best_of(const SearchProblem& problem, const SearchResult& search) {
  if (search.certificate.enumerated <= Sensitivities::kSearchedSpace) try {
      const SearchResult found = search_layouts(problem);
      const Candidate& best = found.candidates[found.best];
      return {best.layout, best.value, true};
    } catch (const Error& error) {
      if (error.code() != Code::finding) throw;  // nothing fits at this end, so only the plan's layouts are compared
    }
  std::vector<const Candidate*> simulated;
  for (const Candidate& c : search.candidates)
    if (c.result) simulated.push_back(&c);
  std::ranges::stable_sort(simulated, {}, &Candidate::value);
  simulated.resize(std::min(simulated.size(), Sensitivities::kComparedLayouts));
  BestLayout best;
  for (const Candidate* c : simulated)
    if (const double value = problem.objective->of(c->layout, simulate_layout(problem, c->layout)); value < best.value)
      best = {c->layout, value, false};
  return best;
}

/// Sets the experts' placements that the plan found.
void place_experts(const Plan& plan, SearchProblem& problem) {
  for (const auto& [degree, study] : plan.placements)
    if (const Placement& p = study.candidates[study.chosen].plan.placement; !p.empty()) problem.placements[degree] = p;
  problem.copies = plan.copies;
}

}  // namespace

Sensitivities sensitivities(const PlanInputs& inputs, const Plan& plan, const SearchProgress& progress) {
  Sensitivities out;
  {
    const PlanSearch asked(inputs);
    out.unit = asked.objective.unit();
    out.value = plan.drift * asked.objective.of(plan.layout, plan.step);
  }
  std::int64_t evaluated = 0;
  const auto known_memory = std::make_shared<std::map<std::string, double>>();
  const auto evaluate = [&](const VariedInput& input, double factor) {
    if (progress)
      progress("varying inputs", evaluated++, static_cast<std::int64_t>(2 * std::size(kVaried)),
               fmt::format("{} x {:g}", input.name, factor));
    PlanInputs other = inputs;
    other.study.scale.*input.factor *= factor;
    PlanSearch asked(other);
    place_experts(plan, asked.problem);
    if (input.factor != &ScaleSpec::imbalance) asked.problem.known_memory = known_memory;
    const double value = asked.objective.of(plan.layout, simulate_layout(asked.problem, plan.layout));
    const BestLayout best = best_of(asked.problem, plan.search);
    SensitivityEnd end{plan.drift * value, std::max(0.0, value / best.value - 1), "", best.searched};
    if (end.regret > asked.problem.space.tie) end.best = key_of(best.layout);
    return end;
  };
  for (const VariedInput& input : kVaried)
    if (varies(inputs, input))
      out.rows.push_back({fmt::format("{}, x {:g} to x {:g}", input.name, input.low, input.high),
                          evaluate(input, input.low), evaluate(input, input.high)});
  return out;
}

PlanDetails plan_details(const PlanInputs& inputs, const Plan& plan, const SearchProgress& progress) {
  PlanDetails out;
  out.sensitivities = sensitivities(inputs, plan, progress);
  const CadencePlan& chosen = plan.schedule.cadence;
  out.intervals.push_back({"chosen", chosen.interval_s.value, chosen.goodput.value});
  for (const double minutes : {10.0, 30.0, 60.0})
    out.intervals.push_back({fmt::format("every {:.0f} minutes", minutes), 60 * minutes,
                             goodput_at(plan.schedule.input, 60 * minutes, plan.schedule.input.mtbf_s.value)});
  return out;
}

}  // namespace wt
