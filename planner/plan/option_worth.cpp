#include "planner/plan/option_worth.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

namespace wt {
namespace {

/// An option's step with a class of prices at the low and high end of its interval, relative to the middle.
std::array<double, 2> factors(const PlannedOption& o, const std::string& prices) {
  const RobustChoice& r = o.plan->robust;
  std::array<double, 2> out{1, 1};
  for (const VariedClass& varied : r.classes)
    if (varied.prices.name == prices)
      for (std::size_t end = 0; end < out.size(); ++end)
        out[end] = r.table.steps_s[varied.scenarios[end]][r.chosen] / r.table.steps_s[0][r.chosen];
  return out;
}

bool asks_prices(const Decision& d) { return d.chosen && d.prefer != Prefer::gpus; }

}  // namespace

std::vector<OptionWorth> option_worths(const Decision& d) {
  std::vector<OptionWorth> out;
  if (!asks_prices(d)) return out;
  std::vector<const PlannedOption*> options;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < d.options.size(); ++i) {
    if (!d.options[i].plan || !d.options[i].feasible()) continue;
    if (i == *d.chosen) chosen = options.size();
    options.push_back(&d.options[i]);
  }
  std::map<std::pair<std::string, std::string>, const Worth*> classes;  // by cluster and prices
  for (const PlannedOption* o : options)
    for (const Worth& w : o->plan->next.rows)
      if (w.measurable()) classes.try_emplace({o->cluster, w.what}, &w);
  for (const auto& [key, row] : classes) {
    const auto& [cluster, prices] = key;
    if (std::ranges::any_of(options, [&known = key](const PlannedOption* o) {
          return o->cluster == known.first && std::ranges::count(o->plan->robust.not_reached, known.second) > 0;
        }))
      continue;  // its effect on that option is unknown
    std::array<std::vector<double>, 3> cases;
    for (const PlannedOption* o : options) {
      const std::array<double, 2> ends = o->cluster == cluster ? factors(*o, prices) : std::array<double, 2>{1, 1};
      const double value = preferred(*o, d.prefer);  // days, money and energy are proportional to the step
      cases[0].push_back(ends[0] * value);
      cases[1].push_back(value);
      cases[2].push_back(ends[1] * value);
    }
    const ValueOfKnowing known = value_of_knowing(cases, chosen, 0);
    if (known.changes > 0)
      out.push_back({cluster, prices, known.changes, known.saves_s, row->minutes, row->how, row->joint});
  }
  std::ranges::stable_sort(out, {}, [](const OptionWorth& w) { return std::pair(w.joint, -w.saves); });
  return out;
}

std::string option_worth_sentence(const Decision& d) {
  if (!asks_prices(d)) return "";
  if (d.next.empty()) {
    const bool all = std::ranges::all_of(d.options, [](const PlannedOption& o) {
      return !o.plan || !o.feasible() || o.plan->robust.not_reached.empty();
    });
    return std::string("No single price that could be measured would change the choice") +
           (all ? "" : ", of those that the budget of simulations reached");
  }
  const OptionWorth& first = d.next.front();
  return fmt::format(
      "Measure {} of {} first: knowing it would change the option in {:.0f} % of cases and saves {} in the mean",
      first.prices, first.cluster, 100 * first.changes, amount_text(first.saves, d.preferred_unit));
}

}  // namespace wt
