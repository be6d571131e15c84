#include "planner/plan/plan_placement.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "configs/base/error.hpp"
#include "planner/placement/expert_slots.hpp"
#include "planner/search/layout_space.hpp"

namespace wt {
namespace {

/// With more than 16 experts, the search for a placement stops early: a good one is enough, and a plan should take
/// seconds.
constexpr PlacementOptions kPlacementEffort{.node_limit = 20'000, .kicks = 100};
constexpr std::int64_t kUsualCopies = 1;  ///< slots for copies on each rank, if the study names none
constexpr double kLeastGain = 0.05;       ///< of the largest load; a smaller gain is not worth a search with copies

/// Whether the busy experts are known. Trained loads do not name experts of this model.
bool recorded(const SearchProblem& problem) {
  return !problem.scenarios.empty() &&
         std::ranges::none_of(problem.scenarios, [](const LoadScenario& s) { return s.trained.has_value(); });
}

bool asks_for_copies(const SearchProblem& problem) {
  return std::ranges::any_of(problem.space.expert_copies, [](std::int64_t n) { return n > 0; });
}

double worst_load(const SearchProblem& problem, const Placement& placement, std::int64_t degree) {
  double worst = 0;
  for (const LoadScenario& scenario : problem.scenarios)
    worst = std::max(worst, slots_load(scenario, placement, problem.model.blocks(), degree));
  return worst;
}

/// Mean of the largest load over the scenarios, each with copies planned on the other scenarios; empty with one
/// scenario.
std::optional<double> unseen_load(const SearchProblem& problem, std::int64_t degree, std::int64_t further) {
  if (problem.scenarios.size() < 2) return {};
  double sum = 0;
  for (std::size_t s = 0; s < problem.scenarios.size(); ++s) {
    std::vector<LoadScenario> others = problem.scenarios;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(s));
    const Placement placement = fill_slots(others, problem.model.blocks(), degree, {.further = further});
    sum += slots_load(problem.scenarios[s], placement, problem.model.blocks(), degree);
  }
  return sum / static_cast<double>(problem.scenarios.size());
}

/// Placements with as many copies as the study names. If it names none and the stack supports copies: with one slot per
/// rank for copies, if this lowers the largest load enough, on unseen scenarios too.
std::vector<Placement> placements_with_copies(const SearchProblem& problem, std::int64_t degree,
                                              const PlacementCandidate& without) {
  std::vector<std::int64_t> numbers = problem.space.expert_copies;
  const bool automatic = numbers.empty();
  if (automatic && problem.stack.layouts.placement == PlacementSupport::copies) numbers = {kUsualCopies};
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  const std::int64_t experts = problem.model.experts, most = experts - experts / degree;
  std::vector<Placement> out;
  for (const std::int64_t further : numbers) {
    if (further == 0 || further > most) continue;
    Placement placement = fill_slots(problem.scenarios, problem.model.blocks(), degree, {.further = further});
    const auto lowers = [](double with, double before) { return with < (1 - kLeastGain) * before; };
    if (!automatic || (lowers(worst_load(problem, placement, degree), without.worst) &&
                       lowers(unseen_load(problem, degree, further).value_or(0), without.unseen_mean.value_or(1))))
      out.push_back(std::move(placement));
  }
  return out;
}

/// The chosen layout, with any placement of its experts.
struct Alternative {
  std::string name;  ///< completes "than ...": "with experts in order"
  Layout layout;
  Simulated step;
  StepMemory memory;
};

std::int64_t further_slots(const SearchProblem& problem, const Layout& layout) {
  return layout.slots_per_rank(problem.model) - problem.model.experts / layout.expert;
}

/// The chosen layout comes first.
std::vector<Alternative> alternatives(const SearchProblem& problem, const Plan& plan) {
  const Layout& chosen = plan.layout;
  std::vector<Alternative> out{{"evened out over ranks alone", chosen, plan.step, plan.memory}};
  const auto add = [&](const std::string& name, Placement placement) {
    Layout other = chosen;
    other.placement = std::move(placement);
    if (std::ranges::any_of(out, [&](const Alternative& a) { return a.layout.placement == other.placement; })) return;
    out.push_back({name, other, simulate_layout(problem, other, true), step_memory(problem, other, true)});
  };
  const std::int64_t further = further_slots(problem, chosen);
  const auto planned = problem.placements.find(chosen.expert);
  const std::int64_t of_node = problem.cluster.gpus_per_node / (chosen.whole_experts ? 1 : chosen.tensor);
  const bool placed = !chosen.placement.empty();  // otherwise no placement helped with unseen loads
  if (placed && of_node > 1 && of_node < chosen.expert && chosen.expert % of_node == 0)
    add("evened out over nodes first", fill_slots(problem.scenarios, problem.model.blocks(), chosen.expert,
                                                  {.further = further, .ranks_per_node = of_node}));
  if (further > 0 && planned != problem.placements.end()) add("without copies", planned->second);
  add("with experts in order", {});
  return out;
}

/// "1.20 % shorter than with experts in order, 0.31 % shorter than without copies".
std::string compared(const std::vector<Alternative>& all, const Alternative& best) {
  std::string out;
  for (const Alternative& other : all) {
    if (&other == &best) continue;
    const double shorter = 1 - best.step.step_s / other.step.step_s;
    out += fmt::format("{}{:.2f} % {} than {}{}", out.empty() ? "" : ", ", 100 * std::abs(shorter),
                       shorter < 0 ? "longer" : "shorter", other.name, shorter < 0 ? ", which does not fit" : "");
  }
  return out;
}

}  // namespace

void plan_placements(SearchProblem& problem, Plan& plan, const SearchProgress& progress) {
  if (!recorded(problem)) {
    if (asks_for_copies(problem))
      throw_usage(
          "search.expert_copies: found {}, and no recorded loads that say which experts are busy; needs histograms "
          "under routing, or 0",
          *std::ranges::max_element(problem.space.expert_copies));
    return;
  }
  std::set<std::int64_t> degrees;
  SearchProblem without = problem;
  without.space.expert_copies.clear();
  for (const LayoutGroup& group : LayoutSpace(without).groups())
    if (group.layout.expert > 1) degrees.insert(group.layout.expert);
  for (std::int64_t degree : degrees) {
    if (progress)
      progress("placing experts", static_cast<std::int64_t>(plan.placements.size()),
               static_cast<std::int64_t>(degrees.size()), fmt::format("on {} ranks", degree));
    PlacementStudy study = study_placements(problem.scenarios, problem.model.blocks(), degree, kPlacementEffort);
    const Placement& placement = study.candidates[study.chosen].plan.placement;
    if (!placement.empty()) problem.placements[degree] = placement;
    if (std::vector<Placement> copies = placements_with_copies(problem, degree, study.candidates[study.chosen]);
        !copies.empty())
      problem.copies[degree] = std::move(copies);
    plan.placements.emplace(degree, std::move(study));
  }
  plan.copies = problem.copies;
}

void judge_placement(const SearchProblem& problem, Plan& plan) {
  if (plan.layout.expert == 1) {
    plan.placement_note =
        "Every rank gathers all experts of a layer (expert degree 1), so that there is nothing to place.";
    return;
  }
  if (!recorded(problem)) {
    plan.placement_note = "Without recorded loads there is nothing to place experts by; they stay where they are.";
    return;
  }
  const PlacementStudy& study = plan.placements.at(plan.layout.expert);
  const PlacementCandidate& planned = study.candidates[study.chosen];
  const std::vector<Alternative> all = alternatives(problem, plan);
  const Alternative* best = &all.front();
  for (const Alternative& other : all)
    if (other.step.step_s < best->step.step_s && other.memory.needed() <= problem.memory_limit_bytes) best = &other;
  plan.layout = best->layout, plan.step = best->step, plan.memory = best->memory;
  if (plan.layout.placement.empty()) {
    plan.placement_note =
        planned.plan.placement.empty()
            ? "No placement is better than leaving the experts where they are on loads it was not planned on."
            : "No placement of the experts makes the simulated step shorter; they stay where they are.";
    return;
  }
  const std::int64_t further = further_slots(problem, plan.layout);
  const bool by_node = best != &all.front() && best->name == "evened out over nodes first";
  const std::string how = by_node ? best->name : planned.name;
  const std::optional<double> unseen_mean =
      further > 0 ? unseen_load(problem, plan.layout.expert, further) : planned.unseen_mean;
  const std::string unseen =
      unseen_mean && !by_node ? fmt::format(", {:.2f} times on scenarios not planned on", *unseen_mean) : "";
  plan.placement_note = fmt::format(
      "{}: in the worst scenario the fullest rank has {:.2f} times the mean load instead of {:.2f} times{}; the "
      "simulated step is {}.",
      further > 0 ? fmt::format("Each rank has {} for copies of busy experts{}",
                                further == 1 ? "one slot" : fmt::format("{} slots", further), by_node ? ", " + how : "")
                  : "Experts " + how,
      worst_load(problem, plan.layout.placement, plan.layout.expert), study.candidates[0].worst, unseen,
      compared(all, *best));
}

}  // namespace wt
