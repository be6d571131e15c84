#include "planner/regret/contenders.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "planner/search/search_evaluate.hpp"

namespace wt {
namespace {

constexpr std::size_t kMostLayouts = 8, kFewestLayouts = 4;

/// Layouts of one kind react to times in the same way. One of each kind is compared, and the most robust one that ties
/// with it.
using LayoutKind = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, int, std::string>;
LayoutKind kind_of(const Layout& l) {
  return {
      l.expert, l.tensor, l.pipeline, l.context, l.microbatch, static_cast<int>(l.schedule), to_string(l.recompute)};
}

/// An estimate of the step with scaled computation and communication, from the critical rank's totals. It only selects
/// layouts for simulation.
double guessed_s(const Simulated& step, double computation, double communication) {
  std::map<Lane, double> busy_s;
  for (const OpClassTotal& t : step.totals)
    if (t.lane != Lane::compute) busy_s[t.lane] += t.busy_s;
  double out = computation * (step.step_s - step.exposed_s) + communication * step.exposed_s;
  for (const auto& [lane, seconds] : busy_s) out = std::max(out, communication * seconds);
  return out;
}

}  // namespace

std::vector<std::size_t> contenders(const SearchProblem& p, const SearchResult& search) {
  std::vector<std::size_t> simulated;
  for (std::size_t i = 0; i < search.candidates.size(); ++i)
    if (search.candidates[i].result) simulated.push_back(i);
  std::ranges::stable_sort(
      simulated, [&](std::size_t a, std::size_t b) { return search.candidates[a].value < search.candidates[b].value; });
  std::vector<std::size_t> leaders{search.best, search.chosen};
  constexpr double kFar = 1.5;  // about the ends of the intervals of published steps
  for (const auto& [computation, communication] :
       {std::pair{1.0, kFar}, {1.0, 1 / kFar}, {kFar, 1.0}, {1 / kFar, 1.0}, {1.0, 2 * kFar}})
    leaders.push_back(
        *std::ranges::min_element(simulated, {}, [&, slower = computation, apart = communication](std::size_t i) {
          return guessed_s(*search.candidates[i].result, slower, apart);
        }));
  leaders.insert(leaders.end(), simulated.begin(), simulated.end());
  std::vector<std::size_t> out;
  const auto add = [&](std::size_t i) {
    if (out.size() < kMostLayouts && std::ranges::find(out, i) == out.end()) out.push_back(i);
  };
  add(search.best);
  add(search.chosen);
  if (search.simple) add(*search.simple);
  const auto kind_at = [&](std::size_t i) { return kind_of(search.candidates[i].layout); };
  const auto other = std::ranges::find_if(leaders, [&](std::size_t i) {
    return kind_at(i) != kind_at(search.best) && kind_at(i) != kind_at(search.chosen);
  });
  if (other != leaders.end()) add(*other);
  std::set<LayoutKind> done;
  for (const std::size_t leader : leaders) {
    const LayoutKind kind = kind_at(leader);
    if (!done.insert(kind).second) continue;
    std::vector<std::size_t> alike;  // the fastest first
    std::ranges::copy_if(simulated, std::back_inserter(alike), [&](std::size_t i) { return kind_at(i) == kind; });
    const double tie_s = search.candidates[alike.front()].value * (1 + p.space.tie);
    std::size_t robust = alike.front();
    for (const std::size_t i : alike)
      if (search.candidates[i].value <= tie_s && more_robust(search.candidates[i], search.candidates[robust]))
        robust = i;
    add(leader);
    add(alike.front());
    add(robust);
  }
  for (const std::size_t i : simulated)  // if there are few kinds: also layouts that differ in how they keep and send
    if (out.size() < kFewestLayouts) add(i);
  return out;
}

}  // namespace wt
