#include "planner/placement/placement.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "configs/base/error.hpp"
#include "configs/base/statistics.hpp"
#include "planner/placement/placement_search.hpp"

namespace wt {
namespace {

constexpr int kAlwaysProved = 16;  // at most 2.6 million packings (4 ranks x 4), far fewer with bounds

detail::PackProblem problem_of(const std::vector<std::vector<double>>& counts, std::int64_t expert_ranks) {
  const std::size_t experts = counts.empty() ? 0 : counts[0].size();
  if (expert_ranks < 1 || experts == 0 || experts % static_cast<std::size_t>(expert_ranks) != 0)
    throw_usage("placement: found {} experts on {} expert ranks, needs a number of ranks that divides the experts",
                experts, expert_ranks);
  detail::PackProblem p;
  p.ranks = static_cast<int>(expert_ranks);
  p.room = static_cast<int>(experts) / p.ranks;
  p.scenarios = static_cast<int>(counts.size());
  p.weight.resize(experts * counts.size());
  for (std::size_t s = 0; s < counts.size(); ++s) {
    const double sum = std::accumulate(counts[s].begin(), counts[s].end(), 0.0);
    if (counts[s].size() != experts || !(sum > 0) || *std::ranges::min_element(counts[s]) < 0)
      throw_usage(
          "placement: scenario {}: found {} experts with {:g} tokens, needs {} experts with counts >= 0 and some "
          "tokens",
          s, counts[s].size(), sum, experts);
    for (std::size_t e = 0; e < experts; ++e)
      p.weight[e * counts.size() + s] = counts[s][e] / sum * static_cast<double>(expert_ranks);
  }
  return p;
}

std::vector<int> identity_ranks(const detail::PackProblem& p) {
  std::vector<int> rank_of(static_cast<std::size_t>(p.items()));
  for (int i = 0; i < p.items(); ++i) rank_of[static_cast<std::size_t>(i)] = i / p.room;
  return rank_of;
}

/// Slots in rank order. Packed groups go, greedily, to the rank that most of their experts are on, so that a change of
/// placement moves few experts. Inside a rank experts are ascending.
std::vector<std::int64_t> slots_of(const detail::PackProblem& p, const std::vector<int>& group_of) {
  const auto n = static_cast<std::size_t>(p.ranks);
  std::vector<std::vector<int>> stays(n, std::vector<int>(n, 0));  // [group][rank]
  for (int i = 0; i < p.items(); ++i)
    ++stays[static_cast<std::size_t>(group_of[static_cast<std::size_t>(i)])][static_cast<std::size_t>(i / p.room)];
  std::vector<std::int64_t> group_at(n, -1);
  std::vector<bool> placed(n, false);
  for (int want = p.room; want >= 0; --want)
    for (std::size_t group = 0; group < n; ++group)
      for (std::size_t rank = 0; rank < n; ++rank)
        if (!placed[group] && group_at[rank] < 0 && stays[group][rank] == want) {
          group_at[rank] = static_cast<std::int64_t>(group);
          placed[group] = true;
        }
  std::vector<std::int64_t> slots;
  for (std::int64_t group : group_at)
    for (int i = 0; i < p.items(); ++i)
      if (group_of[static_cast<std::size_t>(i)] == group) slots.push_back(i);
  return slots;
}

const std::vector<double>& row_of(const LoadScenario& scenario, std::int64_t layer) {
  return scenario.counts[static_cast<std::size_t>(layer) % scenario.counts.size()];
}

void check(const std::vector<LoadScenario>& scenarios, std::int64_t layers) {
  if (layers < 1 || scenarios.empty())
    throw_usage("placement: found {} layers and {} scenarios, needs at least one of each", layers, scenarios.size());
  for (const auto& s : scenarios)
    if (s.counts.empty())
      throw_usage("placement: scenario '{}': found no rows, needs tokens per expert for at least one layer", s.name);
}

/// A scenario whose rows are the mean shares of all scenarios.
LoadScenario mean_of(const std::vector<LoadScenario>& scenarios, std::int64_t layers) {
  LoadScenario out{"the mean", {}, {Evidence::derived, "mean of the scenarios' shares"}};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    std::vector<double> mean(row_of(scenarios[0], layer).size(), 0.0);
    for (const auto& s : scenarios) {
      const auto& row = row_of(s, layer);
      const double sum = std::accumulate(row.begin(), row.end(), 0.0);
      for (std::size_t e = 0; e < mean.size() && e < row.size(); ++e) mean[e] += row[e] / sum;
    }
    out.counts.push_back(std::move(mean));
  }
  return out;
}

std::vector<LoadScenario> without(std::vector<LoadScenario> scenarios, std::size_t left_out) {
  scenarios.erase(scenarios.begin() + static_cast<std::ptrdiff_t>(left_out));
  return scenarios;
}

}  // namespace

LayerPlacement place_layer(const std::vector<std::vector<double>>& counts, std::int64_t expert_ranks,
                           const PlacementOptions& options) {
  const detail::PackProblem p = problem_of(counts, expert_ranks);
  const bool small = p.items() <= kAlwaysProved;
  LayerPlacement out;
  out.before = detail::largest_load(p, identity_ranks(p));
  out.bound = detail::lower_bound(p);
  detail::Packing start = detail::heuristic(p, small ? 0 : options.kicks);
  if (out.before <= start.largest) start = {identity_ranks(p), out.before};
  const detail::Proof proof = detail::branch_and_bound(p, start, out.bound, small ? 0 : options.node_limit);
  out.after = proof.best.largest;
  out.proved = proof.exhausted;
  out.nodes = proof.nodes;
  if (out.proved) out.bound = out.after;
  out.slots = slots_of(p, proof.best.rank_of);
  return out;
}

PlacementPlan plan_placement(const std::vector<LoadScenario>& scenarios, std::int64_t layers, std::int64_t expert_ranks,
                             const PlacementOptions& options) {
  check(scenarios, layers);
  PlacementPlan out;
  out.proved = true;
  std::map<std::vector<std::vector<double>>, LayerPlacement> solved;  // layers that reuse a row have the same result
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    std::vector<std::vector<double>> counts;
    for (const auto& s : scenarios) counts.push_back(row_of(s, layer));
    auto it = solved.find(counts);
    if (it == solved.end()) it = solved.emplace(counts, place_layer(counts, expert_ranks, options)).first;
    const LayerPlacement& one = it->second;
    out.layers.push_back(one);
    out.placement.push_back(one.slots);
    out.before += one.before / static_cast<double>(layers);
    out.after += one.after / static_cast<double>(layers);
    out.bound += one.bound / static_cast<double>(layers);
    out.proved = out.proved && one.proved;
  }
  return out;
}

double placement_load(const LoadScenario& scenario, const Placement& placement, std::int64_t layers,
                      std::int64_t expert_ranks) {
  check({scenario}, layers);
  double sum = 0;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const detail::PackProblem p = problem_of({row_of(scenario, layer)}, expert_ranks);
    std::vector<int> rank_of = identity_ranks(p);
    if (!placement.empty())
      for (int slot = 0; slot < p.items(); ++slot)
        rank_of.at(static_cast<std::size_t>(
            placement.at(static_cast<std::size_t>(layer)).at(static_cast<std::size_t>(slot)))) = slot / p.room;
    sum += detail::largest_load(p, rank_of);
  }
  return sum / static_cast<double>(layers);
}

PlacementStudy study_placements(const std::vector<LoadScenario>& scenarios, std::int64_t layers,
                                std::int64_t expert_ranks, const PlacementOptions& options) {
  check(scenarios, layers);
  PlacementStudy out;
  for (const auto& s : scenarios) out.scenarios.push_back(s.name);
  const auto load = [&](std::size_t s, const Placement& placement) {
    return placement_load(scenarios[s], placement, layers, expert_ranks);
  };
  const auto add = [&](std::string name, PlacementPlan plan) -> PlacementCandidate& {
    PlacementCandidate c;
    c.name = std::move(name);
    c.plan = std::move(plan);
    for (std::size_t s = 0; s < scenarios.size(); ++s) c.load.push_back(load(s, c.plan.placement));
    c.worst = *std::ranges::max_element(c.load);
    out.candidates.push_back(std::move(c));
    return out.candidates.back();
  };
  const auto unseen = [](PlacementCandidate& c, const std::vector<double>& loads) {
    if (loads.empty()) return;
    c.unseen_worst = *std::ranges::max_element(loads);
    c.unseen_mean = mean(loads);
  };

  PlacementCandidate& identity = add("identity", {});
  identity.plan.before = identity.plan.after = identity.worst;
  identity.plan.bound = 1;
  unseen(identity, identity.load);
  for (std::size_t s = 0; s < scenarios.size(); ++s) {
    auto& c = add("planned on " + scenarios[s].name, plan_placement({scenarios[s]}, layers, expert_ranks, options));
    std::vector<double> others = c.load;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(s));
    unseen(c, others);
  }
  if (scenarios.size() > 1)
    for (const bool worst_case : {false, true}) {
      const auto plan = [&](const std::vector<LoadScenario>& seen) {
        return worst_case ? plan_placement(seen, layers, expert_ranks, options)
                          : plan_placement({mean_of(seen, layers)}, layers, expert_ranks, options);
      };
      auto& c = add(worst_case ? "planned on the worst case" : "planned on the mean", plan(scenarios));
      std::vector<double> left_out;
      for (std::size_t s = 0; s < scenarios.size(); ++s)
        left_out.push_back(load(s, plan(without(scenarios, s)).placement));
      unseen(c, left_out);
    }
  const double as_it_is = *out.candidates[0].unseen_mean;
  for (std::size_t i = 1; i < out.candidates.size(); ++i) {
    const PlacementCandidate& c = out.candidates[i];
    if (c.unseen_mean.value_or(0) <= as_it_is && c.worst < out.candidates[out.chosen].worst) out.chosen = i;
  }
  return out;
}

}  // namespace wt
