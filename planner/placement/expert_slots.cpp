#include "planner/placement/expert_slots.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "planner/placement/placement_search.hpp"
#include "sim/program/routing/routing.hpp"

namespace wt {
namespace {

constexpr int kKicks = 100;

/// Shares of each scenario, scaled to sum to the number of ranks.
std::vector<std::vector<double>> normalised(std::vector<std::vector<double>> counts, std::int64_t expert_ranks) {
  for (auto& row : counts) {
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    for (double& share : row) share *= sum > 0 ? as_double(expert_ranks) / sum : 0;
  }
  return counts;
}

/// Assigns each copy to the expert with the most tokens per copy in its worst scenario.
std::vector<std::int64_t> experts_with_copies(const std::vector<std::vector<double>>& shares, std::int64_t expert_ranks,
                                              std::int64_t further) {
  const std::size_t experts = shares.front().size();
  std::vector<std::int64_t> copies(experts, 1);
  const auto load = [&](std::size_t e) {
    double worst = 0;
    for (const auto& row : shares) worst = std::max(worst, row[e] / as_double(copies[e]));
    return copies[e] < expert_ranks ? worst : -1;
  };
  for (std::int64_t more = further * expert_ranks; more > 0; --more) {
    std::size_t busiest = 0;
    for (std::size_t e = 1; e < experts; ++e)
      if (load(e) > load(busiest)) busiest = e;
    ++copies[busiest];
  }
  std::vector<std::int64_t> out;
  for (std::size_t e = 0; e < experts; ++e)
    out.insert(out.end(), static_cast<std::size_t>(copies[e]), static_cast<std::int64_t>(e));
  return out;
}

/// Packs `items` on `ranks` ranks with equal room; [rank] = items.
std::vector<std::vector<int>> packed(const std::vector<std::vector<double>>& weights, const std::vector<int>& items,
                                     std::int64_t ranks) {
  detail::PackProblem p;
  p.ranks = static_cast<int>(ranks);
  p.room = static_cast<int>(items.size()) / p.ranks;
  p.scenarios = static_cast<int>(weights.front().size());
  for (const int item : items)
    p.weight.insert(p.weight.end(), weights[static_cast<std::size_t>(item)].begin(),
                    weights[static_cast<std::size_t>(item)].end());
  const detail::Packing found = detail::heuristic(p, kKicks);
  std::vector<std::vector<int>> out(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < items.size(); ++i) out[static_cast<std::size_t>(found.rank_of[i])].push_back(items[i]);
  return out;
}

/// Orders groups so that many experts stay on their rank; [rank] = items.
std::vector<std::vector<int>> near(std::vector<std::vector<int>> groups, const std::vector<std::int64_t>& expert_of,
                                   const std::vector<std::set<std::int64_t>>& held) {
  const std::size_t n = groups.size();
  std::vector<std::vector<int>> out(n);
  std::vector<bool> taken(n, false), placed(n, false);
  struct Pair {
    std::int64_t stay;
    std::size_t group, rank;
  };
  std::vector<Pair> pairs;
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t r = 0; r < n; ++r)
      pairs.push_back({std::ranges::count_if(
                           groups[g], [&](int i) { return held[r].contains(expert_of[static_cast<std::size_t>(i)]); }),
                       g, r});
  std::ranges::stable_sort(pairs, [](const Pair& a, const Pair& b) { return a.stay > b.stay; });
  for (const Pair& p : pairs)
    if (!placed[p.group] && !taken[p.rank])
      out[p.rank] = std::move(groups[p.group]), placed[p.group] = taken[p.rank] = true;
  return out;
}

/// Experts held by each rank.
std::vector<std::set<std::int64_t>> held_by(const std::vector<std::int64_t>& slots, std::int64_t ranks) {
  std::vector<std::set<std::int64_t>> out(static_cast<std::size_t>(ranks));
  const std::size_t room = slots.size() / out.size();
  for (std::size_t slot = 0; slot < slots.size(); ++slot) out[slot / room].insert(slots[slot]);
  return out;
}

std::vector<std::int64_t> in_order(std::int64_t experts) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(experts));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

}  // namespace

std::vector<std::int64_t> fill_slots(const std::vector<std::vector<double>>& counts, std::int64_t expert_ranks,
                                     const SlotOptions& options, const std::vector<std::int64_t>& from) {
  const std::int64_t experts = counts.empty() ? 0 : static_cast<std::int64_t>(counts[0].size());
  if (expert_ranks < 1 || experts == 0 || experts % expert_ranks != 0)
    throw_usage("placement: found {} experts on {} expert ranks, needs a number of ranks that divides the experts",
                experts, expert_ranks);
  if (options.further < 0 || experts / expert_ranks + options.further > experts)
    throw_usage(
        "placement: found {} further slots on {} ranks, needs 0 to {}: a rank holds each of {} experts once at most",
        options.further, expert_ranks, experts - experts / expert_ranks, experts);
  const bool by_node = options.ranks_per_node > 0 && options.ranks_per_node < expert_ranks;
  if (by_node && expert_ranks % options.ranks_per_node != 0)
    throw_usage("placement: found {} expert ranks on nodes of {}, needs whole nodes", expert_ranks,
                options.ranks_per_node);
  const auto shares = normalised(counts, expert_ranks);
  const std::vector<std::int64_t> expert_of = experts_with_copies(shares, expert_ranks, options.further);
  std::vector<std::vector<double>> weights;  // [item][scenario]
  for (const std::int64_t expert : expert_of) {
    const auto copies = std::ranges::count(expert_of, expert);
    weights.emplace_back();
    for (const auto& row : shares)
      weights.back().push_back(row[static_cast<std::size_t>(expert)] / static_cast<double>(copies));
  }
  std::vector<int> all(expert_of.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::vector<int>> groups;
  if (by_node) {
    for (const auto& node : packed(weights, all, expert_ranks / options.ranks_per_node))
      for (auto& rank : packed(weights, node, options.ranks_per_node)) groups.push_back(std::move(rank));
  } else {
    groups = near(packed(weights, all, expert_ranks), expert_of,
                  held_by(from.empty() ? in_order(experts) : from, expert_ranks));
  }
  std::vector<std::int64_t> slots;
  for (auto& rank : groups) {
    std::ranges::sort(rank);
    for (const int item : rank) slots.push_back(expert_of[static_cast<std::size_t>(item)]);
  }
  return slots;
}

Placement fill_slots(const std::vector<LoadScenario>& scenarios, std::int64_t layers, std::int64_t expert_ranks,
                     const SlotOptions& options) {
  if (scenarios.empty() || layers < 1 || std::ranges::any_of(scenarios, [](const auto& s) { return s.counts.empty(); }))
    throw_usage("placement: found {} layers and {} scenarios, needs loads of at least one layer", layers,
                scenarios.size());
  Placement out;
  using Known = std::pair<std::vector<std::vector<double>>, std::vector<std::int64_t>>;
  std::map<Known, std::vector<std::int64_t>> known;  // layers that reuse a row have the same slots
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    std::vector<std::vector<double>> counts;
    for (const auto& s : scenarios) counts.push_back(shares_of(s, layer));
    const std::vector<std::int64_t> from =
        options.from.empty() ? std::vector<std::int64_t>{} : options.from.at(static_cast<std::size_t>(layer));
    const auto [entry, fresh] = known.try_emplace({counts, from});
    if (fresh) entry->second = fill_slots(counts, expert_ranks, options, from);
    out.push_back(entry->second);
  }
  return out;
}

double slots_load(const LoadScenario& scenario, const Placement& placement, std::int64_t layers,
                  std::int64_t expert_ranks, std::int64_t parts) {
  Layout layout;
  layout.shard = layout.expert = expert_ranks;
  layout.placement = placement;
  const std::int64_t groups = parts > 0 ? parts : expert_ranks;
  double sum = 0;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::vector<double> rows = rows_received({shares_of(scenario, layer)}, layout, layer);
    std::vector<double> of_group(static_cast<std::size_t>(groups), 0.0);
    for (std::size_t r = 0; r < rows.size(); ++r) of_group[r * of_group.size() / rows.size()] += rows[r];
    sum += *std::ranges::max_element(of_group) * as_double(groups) /
           std::accumulate(of_group.begin(), of_group.end(), 0.0);
  }
  return sum / as_double(layers);
}

double experts_moved(const Placement& from, const Placement& to, std::int64_t experts, std::int64_t layers,
                     std::int64_t expert_ranks) {
  std::vector<double> got(static_cast<std::size_t>(expert_ranks), 0.0), sent = got;
  const std::vector<std::int64_t> identity = in_order(experts);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    const auto before = held_by(from.empty() ? identity : from.at(at), expert_ranks),
               after = held_by(to.empty() ? identity : to.at(at), expert_ranks);
    for (std::size_t rank = 0; rank < got.size(); ++rank)
      for (const std::int64_t expert : after[rank]) {
        if (before[rank].contains(expert)) continue;
        ++got[rank];
        const auto holds = [&](const auto& held) { return held.contains(expert); };
        const auto holders = static_cast<double>(std::ranges::count_if(before, holds));
        for (std::size_t source = 0; source < sent.size(); ++source)
          if (holds(before[source])) sent[source] += 1 / holders;
      }
  }
  return std::max(*std::ranges::max_element(got), *std::ranges::max_element(sent));
}

}  // namespace wt
