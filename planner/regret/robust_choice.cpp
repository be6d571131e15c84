#include "planner/regret/robust_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>

#include "configs/base/text.hpp"
#include "configs/files/layout_words.hpp"
#include "configs/files/search_space.hpp"
#include "planner/regret/contenders.hpp"
#include "planner/search/search_evaluate.hpp"
#include "sim/cluster/child.hpp"
#include "sim/cost/ops/remembered_cost.hpp"
#include "sim/cost/stacks/step_family.hpp"

namespace wt {
namespace {

constexpr std::int64_t kBudget = 96 * kOpsOfSimulation;  // in units of Simulated::work
constexpr std::size_t kFewestCompared = 3;               // the best, the chosen one and one of another kind
constexpr std::int64_t kScenarios = 40;                  // two for each usual class of times

/// The problem with other times and loads. Without loads: even ones.
SearchProblem question(const SearchProblem& p, const OpCost& cost, std::vector<LoadScenario> loads) {
  SearchProblem out = p;
  out.cost = cost, out.scenarios = std::move(loads);
  return out;
}

/// The compared layouts from `first` to `last` - 1.
struct LayoutRange {
  std::size_t first, last;
};

/// A request for step times of some layouts, with a class at an end of its interval.
struct MovedSteps {
  const TimeClass& times;
  IntervalEnd end;
  LayoutRange layouts;
};

/// The problem with a class at an end of its interval, which depends on the family of the layout's step.
struct MovedProblem {
  MovedProblem(const SearchProblem& p, const MovedSteps& moved, const Layout& layout, std::vector<LoadScenario> loads)
      : times(p.cost, moved.times, moved.end, off_by(p, layout)),
        cost(times),
        problem(question(p, cost, std::move(loads))) {}

  const ClassAtEnd times;
  const RememberedCost cost;
  const SearchProblem problem;
};

/// A class, and step times of the first layouts with the class at its slow end.
struct SlowClass {
  TimeClass times;
  std::vector<double> steps_s = {};
};

class Comparison {
 public:
  Comparison(const SearchProblem& problem, const SearchResult& search, const SearchProgress& progress)
      : p_(problem), search_(search), progress_(progress) {}

  RobustChoice run() {
    take_layouts();
    std::vector<double> central_s;
    for (std::size_t i = 0; i < out_.layouts.size(); ++i)
      central_s.push_back(in_seconds(candidate(i).layout, *candidate(i).result));
    add("at predicted times", std::move(central_s));
    compare();
    out_.chosen = least_regret(out_.table, p_.space.tie,
                               [&](std::size_t a, std::size_t b) { return more_robust(candidate(a), candidate(b)); });
    return std::move(out_);
  }

 private:
  /// Takes as many layouts as the budget allows in all scenarios: at their own loads if these are enough layouts, else
  /// at even loads.
  void take_layouts() {
    out_.layouts = contenders(p_, search_);
    const std::size_t fewest = std::min(kFewestCompared, out_.layouts.size());
    const auto affordable = [&](bool even) {
      std::int64_t sum = 0;
      std::size_t layouts = 0;
      while (layouts < out_.layouts.size() && kScenarios * (sum += expected_work(layouts, even)) <= kBudget) ++layouts;
      return layouts;
    };
    std::size_t layouts = affordable(false);
    out_.even_loads = layouts < fewest && !p_.scenarios.empty();
    if (out_.even_loads) layouts = affordable(true);
    out_.layouts.resize(std::max(layouts, fewest));
    std::ranges::stable_sort(out_.layouts, {}, [&](std::size_t i) { return search_.candidates[i].value; });
  }

  /// Expected work of another simulation of a layout. At even loads, one rank per stage is simulated.
  std::int64_t expected_work(std::size_t layout, bool even) const {
    const Simulated& step = *candidate(layout).result;
    return even ? step.work / step.ranks * candidate(layout).layout.pipeline + 2 * kOpsOfStart : step.work;
  }

  /// The step time. For another objective: its value, scaled so that the best layout has its step time.
  double in_seconds(const Layout& layout, const Simulated& step) const {
    const Candidate& best = search_.candidates[search_.best];
    return p_.objective ? p_.objective->of(layout, step) * best.result->step_s / best.value : step.step_s;
  }

  const Candidate& candidate(std::size_t layout) const { return search_.candidates[out_.layouts[layout]]; }
  LayoutRange all() const { return {0, out_.layouts.size()}; }

  std::size_t add(std::string scenario, std::vector<double> steps_s) {
    out_.table.scenarios.push_back(std::move(scenario));
    out_.table.steps_s.push_back(std::move(steps_s));
    return out_.table.scenarios.size() - 1;
  }

  void compare() {
    const TimeClass asked = asked_times();
    std::vector<SlowClass> joint;
    for (TimeClass& times : joint_classes(asked)) joint.push_back({std::move(times)});
    vary(std::move(joint));
    if (!out_.even_loads) compare_loads();
    vary(by_effect(single_classes(asked)));
    if (out_.even_loads) compare_loads();
  }

  /// All times that the layouts use. They are collected in a step at predicted times, with which varied steps are
  /// compared.
  TimeClass asked_times() {
    TimeClass asked;
    asked.slowdown = p_.cost.get().traits().communication_slowdown.share > 0;
    const AskedTimes cost(p_.cost, asked);
    const SearchProblem p = question(p_, cost, loads());
    for (std::size_t i = 0; i < out_.layouts.size(); ++i) {
      say("times");
      const Simulated step = simulate_layout(p, candidate(i).layout);
      work_.push_back(step.work);
      spent_ += step.work;
      central_s_.push_back(in_seconds(candidate(i).layout, step));
    }
    return asked;
  }

  /// The loads with which times are varied.
  std::vector<LoadScenario> loads() const { return out_.even_loads ? std::vector<LoadScenario>{} : p_.scenarios; }

  std::int64_t work(LayoutRange layouts) const {
    return std::accumulate(work_.begin() + static_cast<std::ptrdiff_t>(layouts.first),
                           work_.begin() + static_cast<std::ptrdiff_t>(layouts.last), std::int64_t{0});
  }

  /// Spends the work if the budget still has it.
  bool spend(std::int64_t work, const std::string& what) {
    if (spent_ + work <= kBudget) return spent_ += work, true;
    out_.not_reached.push_back(what);
    return false;
  }

  void compare_loads() {
    if (p_.scenarios.size() < 2) return;
    std::int64_t each = 0;
    for (std::size_t i = 0; i < out_.layouts.size(); ++i) each += expected_work(i, false);
    std::vector<const LoadScenario*> reached;
    for (const LoadScenario& load : p_.scenarios)
      if (spend(each, "loads of " + load.name)) reached.push_back(&load);
    std::vector<std::vector<double>> steps_s = concurrently(
        reached.size(), [&](std::size_t i) { return "loads of " + reached[i]->name; },
        [&](std::size_t i) {
          const SearchProblem p = question(p_, p_.cost, {*reached[i]});
          return steps([&](const Layout&) -> const SearchProblem& { return p; }, all());
        });
    for (std::size_t i = 0; i < reached.size(); ++i)
      out_.loads.push_back(add("with loads of " + reached[i]->name + " alone", std::move(steps_s[i])));
  }

  /// Classes by decreasing effect on the fastest layout. Layouts use the same kernels, so a class of kernels without
  /// effect on the fastest layout has none on the others.
  std::vector<SlowClass> by_effect(std::vector<TimeClass> classes) {
    std::vector<SlowClass> out;
    for (TimeClass& times : classes) out.push_back({std::move(times)});
    const std::int64_t work = static_cast<std::int64_t>(out.size()) * work_[0];
    if (work > (kBudget - spent_) / 2) return out;  // too little would be left for the other scenarios
    spent_ += work;
    extend(out, 1);
    std::erase_if(out, [&](const SlowClass& each) {
      const bool none = !each.times.kernels.empty() && !moves(each.steps_s);
      if (none) out_.left_out.push_back(each.times.name);
      return none;
    });
    std::ranges::stable_sort(out, std::greater<>(), [&](const SlowClass& each) { return effect(each.steps_s, 0); });
    return out;
  }

  void vary(std::vector<SlowClass> classes) {
    std::erase_if(classes, [&](const SlowClass& each) {
      return !spend(work({each.steps_s.size(), all().last}) + work(all()), each.times.name);
    });
    extend(classes, all().last);
    std::erase_if(classes, [&](const SlowClass& each) {
      if (moves(each.steps_s)) return false;
      spent_ -= work(all());
      return out_.left_out.push_back(each.times.name), true;
    });
    std::vector<MovedSteps> fast;
    for (const SlowClass& each : classes) fast.push_back({each.times, IntervalEnd::low, all()});
    std::vector<std::vector<double>> fast_s = moved_steps(fast);
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const std::string& name = classes[i].times.name;
      const std::size_t low = add(fmt::format("with {} at the fast end", name), std::move(fast_s[i]));
      const std::size_t high = add(fmt::format("with {} at the slow end", name), std::move(classes[i].steps_s));
      out_.classes.push_back({std::move(classes[i].times), {low, high}});
    }
  }

  /// Simulates the first `layouts` layouts at each class's slow end.
  void extend(std::vector<SlowClass>& classes, std::size_t layouts) const {
    std::vector<MovedSteps> slow;
    for (const SlowClass& each : classes)
      slow.push_back({each.times, IntervalEnd::high, {each.steps_s.size(), layouts}});
    const std::vector<std::vector<double>> more = moved_steps(slow);
    for (std::size_t i = 0; i < classes.size(); ++i)
      classes[i].steps_s.insert(classes[i].steps_s.end(), more[i].begin(), more[i].end());
  }

  /// Size of the relative change of a layout's step.
  double effect(const std::vector<double>& steps_s, std::size_t layout) const {
    return std::abs(steps_s[layout] / out_.table.steps_s[0][layout] - 1);
  }

  bool moves(const std::vector<double>& steps_s) const {
    for (std::size_t i = 0; i < steps_s.size(); ++i)
      if (effect(steps_s, i) >= RobustChoice::kLeastEffect) return true;
    return false;
  }

  std::vector<std::vector<double>> moved_steps(const std::vector<MovedSteps>& moved) const {
    return concurrently(
        moved.size(), [&](std::size_t i) { return moved[i].times.name; },
        [&](std::size_t i) {
          const MovedSteps& m = moved[i];
          std::map<std::string, MovedProblem> by_family;
          const auto problem_of = [&](const Layout& layout) -> const SearchProblem& {
            return by_family.try_emplace(step_family(p_.model, layout), p_, m, layout, loads()).first->second.problem;
          };
          std::vector<double> out = steps(problem_of, m.layouts);
          if (out_.even_loads)
            for (std::size_t k = 0; k < out.size(); ++k)
              out[k] *= out_.table.steps_s[0][m.layouts.first + k] / central_s_[m.layouts.first + k];
          return out;
        });
  }

  std::vector<double> steps(const std::function<const SearchProblem&(const Layout&)>& problem_of,
                            LayoutRange layouts) const {
    std::vector<double> out;
    for (std::size_t i = layouts.first; i < layouts.last; ++i) {
      const Layout& layout = candidate(i).layout;
      out.push_back(in_seconds(layout, simulate_layout(problem_of(layout), layout)));
    }
    return out;
  }

  /// Calls steps_of(i) for each i concurrently.
  std::vector<std::vector<double>> concurrently(std::size_t count,
                                                const std::function<std::string(std::size_t)>& name_of,
                                                const std::function<std::vector<double>(std::size_t)>& steps_of) const {
    std::vector<std::function<std::string()>> works;
    for (std::size_t i = 0; i < count; ++i)
      works.emplace_back([&steps_of, i] {
        const std::vector<double> steps_s = steps_of(i);
        return std::string(reinterpret_cast<const char*>(steps_s.data()), steps_s.size() * sizeof(double));
      });
    std::vector<std::vector<double>> out;
    for (const std::string& bytes : run_in_children(works, [&](std::size_t i) { say(name_of(i)); })) {
      out.emplace_back(bytes.size() / sizeof(double));
      if (!bytes.empty()) std::memcpy(out.back().data(), bytes.data(), bytes.size());
    }
    return out;
  }

  void say(const std::string& what) const {
    if (progress_) progress_("comparing layouts", said_++, 0, what);
  }

  const SearchProblem& p_;
  const SearchResult& search_;
  const SearchProgress& progress_;
  RobustChoice out_;
  std::vector<std::int64_t> work_;  ///< of simulating each layout with varied times
  std::vector<double> central_s_;   ///< the layout's step at predicted times in that setting
  std::int64_t spent_ = 0;          ///< of kBudget
  mutable std::int64_t said_ = 0;
};

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string name_of(const Layout& l, const StackSpec& stack) {
  return fmt::format("{} ({}, microbatch {})", layout_label(l, stack), to_string(l.recompute), l.microbatch);
}

/// The reason for the choice, and its loss.
std::string sentence_of(const SearchProblem& p, const SearchResult& search, const RobustChoice& r) {
  if (r.layouts.size() == 1) return "";
  const std::string compared = fmt::format("{} layouts compared in {}{}", r.layouts.size(),
                                           counted(static_cast<std::int64_t>(r.table.scenarios.size()), "scenario"),
                                           r.even_loads ? ", times varied at even loads" : "");
  if (r.largest() == 0) return compared + ": the chosen one is the best in each";
  const Layout& chosen = search.candidates[r.layouts[r.chosen]].layout;
  std::string out =
      fmt::format("{}: the chosen one gives up {} at predicted times and is at worst {} behind the best, {}", compared,
                  r.given_up() > 0 ? percent(r.given_up()) : "nothing", percent(r.largest()),
                  r.table.scenarios[r.table.worst(r.chosen)]);
  if (r.given_up() > 0)
    out += fmt::format("; the best at predicted times, {}, is at worst {} behind, {}",
                       name_of(search.candidates[r.layouts[0]].layout, p.stack), percent(r.table.largest(0)),
                       r.table.scenarios[r.table.worst(0)]);
  double least = r.largest();
  for (std::size_t i = 0; i < r.layouts.size(); ++i) least = std::min(least, r.table.largest(i));
  if (r.largest() > least)
    out += fmt::format(
        ". The least that any is behind at worst is {}; of those up to {:.1f} points above it, the chosen one has the "
        "smallest failure domain ({})",
        percent(least), 100 * p.space.tie, counted(chosen.state_ranks(), "GPU"));
  return out;
}

}  // namespace

RobustChoice choose_robust(const SearchProblem& problem, const SearchResult& search, const SearchProgress& progress) {
  RobustChoice out = Comparison(problem, search, progress).run();
  out.sentence = sentence_of(problem, search, out);
  return out;
}

}  // namespace wt
