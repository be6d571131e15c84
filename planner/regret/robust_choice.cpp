#include "planner/regret/robust_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "configs/spec/search_space.hpp"
#include "configs/spec/support/text.hpp"
#include "planner/search/search_evaluate.hpp"
#include "sim/cost/remembered_cost.hpp"

namespace wt {
namespace {

constexpr std::size_t kMostLayouts = 8, kFewestLayouts = 4;
constexpr std::int64_t kSimulations = 320;  // a pipeline counts kPipelineSimulations times

/// Layouts that move alike with prices: one of each kind is compared, and the most robust that is a tie with it.
using LayoutKind = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, int, std::string>;
LayoutKind kind_of(const Layout& l) {
  return {
      l.expert, l.tensor, l.pipeline, l.context, l.microbatch, static_cast<int>(l.schedule), to_string(l.recompute)};
}

std::int64_t cost_of_simulating(const Layout& l) { return l.pipeline > 1 ? kPipelineSimulations : 1; }

/// A step whose computation and communication take that many times as long, by what its critical rank did: to find out
/// who is worth simulating.
double guessed_s(const Simulated& step, double computation, double communication) {
  std::map<Lane, double> busy_s;
  for (const OpClassTotal& t : step.totals)
    if (t.lane != Lane::compute) busy_s[t.lane] += t.busy_s;
  double out = computation * (step.step_s - step.exposed_s) + communication * step.exposed_s;
  for (const auto& [lane, seconds] : busy_s) out = std::max(out, communication * seconds);
  return out;
}

/// Candidates worth comparing: the search's choice and its fastest, and of each kind of layout that is the fastest
/// under some prices, or next in line, the fastest and the most robust of its ties.
std::vector<std::size_t> contenders(const SearchProblem& p, const SearchResult& search) {
  std::vector<std::size_t> simulated;
  for (std::size_t i = 0; i < search.candidates.size(); ++i)
    if (search.candidates[i].result) simulated.push_back(i);
  std::stable_sort(simulated.begin(), simulated.end(), [&](std::size_t a, std::size_t b) {
    return search.candidates[a].value < search.candidates[b].value;
  });
  std::vector<std::size_t> leaders{search.best, search.chosen};
  constexpr double kFar = 1.5;  // about the ends of published steps' intervals
  for (const auto& [computation, communication] :
       {std::pair{1.0, kFar}, {1.0, 1 / kFar}, {kFar, 1.0}, {1 / kFar, 1.0}, {1.0, 2 * kFar}})
    leaders.push_back(*std::ranges::min_element(simulated, {}, [&](std::size_t i) {
      return guessed_s(*search.candidates[i].result, computation, communication);
    }));
  leaders.insert(leaders.end(), simulated.begin(), simulated.end());
  std::vector<std::size_t> out;
  const auto add = [&](std::size_t i) {
    if (out.size() < kMostLayouts && std::ranges::find(out, i) == out.end()) out.push_back(i);
  };
  add(search.best);
  add(search.chosen);
  std::set<LayoutKind> done;
  for (const std::size_t leader : leaders) {
    const LayoutKind kind = kind_of(search.candidates[leader].layout);
    if (!done.insert(kind).second) continue;
    std::vector<std::size_t> alike;  // the fastest first
    std::ranges::copy_if(simulated, std::back_inserter(alike),
                         [&](std::size_t i) { return kind_of(search.candidates[i].layout) == kind; });
    const double tie_s = search.candidates[alike.front()].value * (1 + p.space.tie);
    std::size_t robust = alike.front();
    for (const std::size_t i : alike)
      if (search.candidates[i].value <= tie_s && more_robust(search.candidates[i], search.candidates[robust]))
        robust = i;
    add(leader);
    add(alike.front());
    add(robust);
  }
  for (const std::size_t i : simulated)  // of few kinds, those that differ in how they keep and send
    if (out.size() < kFewestLayouts) add(i);
  std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) {
    return search.candidates[a].value < search.candidates[b].value;
  });
  return out;
}

/// The same question at other prices, or under one load alone.
SearchProblem question(const SearchProblem& p, const OpCost& cost, const OpCost* staged, const LoadScenario* alone) {
  SearchProblem out = p;
  out.cost = cost, out.staged_cost = staged;
  if (alone) out.scenarios = {*alone};
  return out;
}

class Comparison {
 public:
  Comparison(const SearchProblem& problem, const SearchResult& search, const SearchProgress& progress)
      : p_(problem), search_(search), progress_(progress) {}

  RobustChoice run() {
    out_.layouts = contenders(p_, search_);
    std::vector<double> central_s;
    for (std::size_t i = 0; i < out_.layouts.size(); ++i) {
      central_s.push_back(in_seconds(candidate(i).layout, *candidate(i).result));
      each_ += cost_of_simulating(candidate(i).layout);
    }
    add("at central prices", std::move(central_s));
    compare();
    out_.chosen = least_regret(out_.table, p_.space.tie,
                               [&](std::size_t a, std::size_t b) { return more_robust(candidate(a), candidate(b)); });
    return std::move(out_);
  }

 private:
  /// The step, or the search's objective in the proportion that the best layout's step has to its own.
  double in_seconds(const Layout& layout, const Simulated& step) const {
    const Candidate& best = search_.candidates[search_.best];
    return p_.objective ? p_.objective->of(layout, step) * best.result->step_s / best.value : step.step_s;
  }

  const Candidate& candidate(std::size_t layout) const { return search_.candidates[out_.layouts[layout]]; }

  std::size_t add(std::string scenario, std::vector<double> steps_s) {
    out_.table.scenarios.push_back(std::move(scenario));
    out_.table.steps_s.push_back(std::move(steps_s));
    return out_.table.scenarios.size() - 1;
  }

  void compare() {
    const PriceClass asked = asked_prices();
    for (const PriceClass& joint : joint_classes(asked)) vary(joint);
    if (p_.scenarios.size() > 1)
      for (const LoadScenario& load : p_.scenarios)
        if (affordable(each_, "loads of " + load.name))
          out_.loads.push_back(
              add("with loads of " + load.name + " alone",
                  steps_s(question(p_, p_.cost, p_.staged_cost, &load), "loads of " + load.name, out_.layouts.size())));
    for (const PriceClass& single : single_classes(asked)) vary(single);
  }

  /// What any of the layouts asks for.
  PriceClass asked_prices() {
    PriceClass asked;
    asked.slowdown = p_.cost.get().communication_slowdown().share > 0;
    const AskedPrices cost(p_.cost, asked), staged(p_.staged_cost ? *p_.staged_cost : p_.cost.get(), asked);
    steps_s(question(p_, cost, p_.staged_cost ? &staged : nullptr, nullptr), "prices", out_.layouts.size());
    return asked;
  }

  std::vector<double> steps_at(const PriceClass& prices, IntervalEnd end, std::size_t layouts) {
    const ClassAtEnd moved(p_.cost, prices, end),
        moved_staged(p_.staged_cost ? *p_.staged_cost : p_.cost.get(), prices, end);
    const RememberedCost cost(moved), staged(moved_staged);
    return steps_s(question(p_, cost, p_.staged_cost ? &staged : nullptr, nullptr), prices.name, layouts);
  }

  bool moves(const std::vector<double>& steps_s) const {
    for (std::size_t i = 0; i < steps_s.size(); ++i)
      if (std::abs(steps_s[i] / out_.table.steps_s[0][i] - 1) >= RobustChoice::kLeastEffect) return true;
    return false;
  }

  /// All layouts compute with the same kernels: whether one moves the fastest says whether it moves any.
  void vary(const PriceClass& prices) {
    if (!affordable(2 * each_, prices.name)) return;
    if (!prices.kernels.empty() && !moves(steps_at(prices, IntervalEnd::high, 1)))
      return out_.left_out.push_back(prices.name);
    std::vector<double> slow_s = steps_at(prices, IntervalEnd::high, out_.layouts.size());
    if (!moves(slow_s)) return out_.left_out.push_back(prices.name);
    std::vector<double> fast_s = steps_at(prices, IntervalEnd::low, out_.layouts.size());
    const std::size_t low = add(fmt::format("with {} at the fast end", prices.name), std::move(fast_s));
    out_.classes.push_back(
        {prices, {low, add(fmt::format("with {} at the slow end", prices.name), std::move(slow_s))}});
  }

  bool affordable(std::int64_t simulations, const std::string& what) {
    if (spent_ + simulations <= kSimulations) return true;
    out_.not_reached.push_back(what);
    return false;
  }

  /// Of the first so many layouts.
  std::vector<double> steps_s(const SearchProblem& p, const std::string& what, std::size_t layouts) {
    if (progress_) progress_("comparing layouts", spent_, 0, what);
    std::vector<double> out;
    for (std::size_t i = 0; i < layouts; ++i) {
      spent_ += cost_of_simulating(candidate(i).layout);
      out.push_back(in_seconds(candidate(i).layout, simulate_layout(p, candidate(i).layout)));
    }
    return out;
  }

  const SearchProblem& p_;
  const SearchResult& search_;
  const SearchProgress& progress_;
  RobustChoice out_;
  std::int64_t each_ = 0, spent_ = 0;  ///< simulations of one scenario; so far
};

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string name_of(const Layout& l) {
  return fmt::format("{} ({}, microbatch {})", l.name(), to_string(l.recompute), l.microbatch);
}

/// Why it, and what it gives up.
std::string sentence_of(const SearchProblem& p, const SearchResult& search, const RobustChoice& r) {
  if (r.layouts.size() == 1) return "";
  const std::string compared = fmt::format("{} layouts compared in {}", r.layouts.size(),
                                           counted(static_cast<std::int64_t>(r.table.scenarios.size()), "scenario"));
  if (r.largest() == 0) return compared + ": the chosen one is the fastest in each";
  const Layout& chosen = search.candidates[r.layouts[r.chosen]].layout;
  std::string out =
      fmt::format("{}: the chosen one gives up {} at central prices and is at worst {} behind the best, {}", compared,
                  r.given_up() > 0 ? percent(r.given_up()) : "nothing", percent(r.largest()),
                  r.table.scenarios[r.table.worst(r.chosen)]);
  if (r.given_up() > 0)
    out += fmt::format("; the fastest, {}, is at worst {} behind, {}", name_of(search.candidates[r.layouts[0]].layout),
                       percent(r.table.largest(0)), r.table.scenarios[r.table.worst(0)]);
  double least = r.largest();
  for (std::size_t i = 0; i < r.layouts.size(); ++i) least = std::min(least, r.table.largest(i));
  if (r.largest() > least)
    out += fmt::format(". Within {} of the smallest largest regret, {}, it has the smallest failure domain ({})",
                       percent(p.space.tie), percent(least), counted(chosen.state_ranks(), "GPU"));
  return out;
}

}  // namespace

RobustChoice choose_robust(const SearchProblem& problem, const SearchResult& search, const SearchProgress& progress) {
  RobustChoice out = Comparison(problem, search, progress).run();
  out.sentence = sentence_of(problem, search, out);
  return out;
}

}  // namespace wt
