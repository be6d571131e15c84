// The plan's choice under other times and loads than the predicted ones, and what is worth measuring before.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "configs/base/json_members.hpp"
#include "configs/files/layout_words.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/plan/plan_report.hpp"
#include "planner/cli/plan/plan_sections.hpp"

namespace wt {

WT_TO_JSON(Worth, changes, saves, saves_gpu_hours, saves_money, width, joint, minutes, how)

namespace {

using nlohmann::json;

constexpr std::size_t kShownScenarios = 6;

std::string name_of(const PlanInputs& inputs, const Plan& plan, std::size_t layout) {
  const Layout& l = plan.search.candidates[plan.robust.layouts[layout]].layout;
  return fmt::format("{}, {}, microbatch {}", layout_label(l, inputs.stack), to_string(l.recompute), l.microbatch);
}

std::size_t best_in(const RegretTable& table, std::size_t scenario) {
  const std::vector<double>& steps_s = table.steps_s[scenario];
  return static_cast<std::size_t>(std::ranges::min_element(steps_s) - steps_s.begin());
}

Table layouts_table(const PlanInputs& inputs, const Plan& plan) {
  const RobustChoice& r = plan.robust;
  Table table{
      .title = "Layouts compared",
      .columns = {"layout", numeric("behind at predicted times", "%"), numeric("behind at worst", "%"), "where", ""}};
  std::vector<std::size_t> order(r.layouts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return i == r.chosen; });
  for (const std::size_t i : order)
    table.rows.push_back({name_of(inputs, plan, i), percent(r.table.regret(0, i)), percent(r.table.largest(i)),
                          r.table.scenarios[r.table.worst(i)],
                          i == r.chosen ? Cell("chosen", Status::good) : Cell("")});
  return table;
}

}  // namespace

Table regret_table(const PlanInputs& inputs, const Plan& plan) {
  const RobustChoice& r = plan.robust;
  std::vector<std::size_t> order(r.table.scenarios.size());
  for (std::size_t s = 0; s < order.size(); ++s) order[s] = s;
  std::stable_sort(order.begin() + 1, order.end(), [&](std::size_t a, std::size_t b) {
    return r.table.regret(a, r.chosen) > r.table.regret(b, r.chosen);
  });
  order.resize(std::min(order.size(), kShownScenarios));
  Table table{.title = "Where the chosen layout is furthest behind",
              .columns = {"scenario", numeric("its step", "s"), numeric("behind the best", "%"), "the best there"}};
  for (const std::size_t s : order)
    table.rows.push_back({r.table.scenarios[s], Cell(r.table.steps_s[s][r.chosen]),
                          percent(r.table.regret(s, r.chosen)), name_of(inputs, plan, best_in(r.table, s))});
  table.note = plan.next.unit == "days" ? "Steps stand for expected days: what a layout's saves and restarts add "
                                          "beyond the fastest one's counts, too."
                                        : "Steps stand for energy, as far as layouts differ in it.";
  return table;
}

json robust_json(const Plan& plan) {
  const RobustChoice& r = plan.robust;
  json scenarios = json::array();
  for (std::size_t s = 0; s < r.table.scenarios.size(); ++s)
    scenarios.push_back({{"scenario", r.table.scenarios[s]}, {"steps_s", r.table.steps_s[s]}});
  return {{"sentence", r.sentence},
          {"layouts", r.layouts},
          {"given_up", r.given_up()},
          {"largest_regret", r.largest()},
          {"largest_regret_where", r.table.scenarios[r.table.worst(r.chosen)]},
          {"scenarios", scenarios},
          {"at_even_loads", r.even_loads},
          {"decide_nothing", r.left_out},
          {"not_reached", r.not_reached}};
}

Table measure_table(const Plan& plan, std::size_t rows) {
  const std::vector<Worth>& all = plan.next.rows;
  Table table{.title = "What to measure next",
              .columns = {"what", numeric("would change the layout", "%"), numeric("saves", plan.next.unit),
                          numeric("saves", "GPU-hours"), numeric("moves the finish by", "days"),
                          numeric("takes", "min"), "how"}};
  constexpr std::size_t kSpent = 3;
  const bool energy = plan.next.unit != "days";
  if (std::ranges::any_of(all, [](const Worth& w) { return w.saves_money.has_value(); }))
    table.columns[kSpent] = numeric("saves", plan.cost.prices->currency);
  if (energy) {
    table.columns[kSpent + 1] = numeric("moves the energy by", plan.next.unit);
    table.columns.erase(table.columns.begin() + kSpent);
  }
  for (const Worth& w : all) {
    if (rows > 0 && table.rows.size() == rows) break;
    std::vector<Cell> row{w.what, percent(w.changes), Cell(w.saves)};
    if (!energy) row.emplace_back(w.saves_money ? *w.saves_money : *w.saves_gpu_hours);
    row.insert(row.end(), {Cell(w.width), w.minutes ? Cell(*w.minutes) : Cell("-"), w.how});
    table.rows.push_back(std::move(row));
  }
  table.note = plan.next.sentence + ".";
  return table;
}

json measure_json(const Plan& plan) {
  json rows = json::array();
  for (const Worth& w : plan.next.rows) rows.emplace_back(w).update({{"times", w.what}, {"shapes", w.shapes.size()}});
  return {{"sentence", plan.next.sentence}, {"unit", plan.next.unit}, {"rows", rows}};
}

Section robust_section(const PlanInputs& inputs, const Plan& plan) {
  Section s{.id = "robust", .title = "If predicted times are off"};
  s.paragraphs.push_back(
      "The layouts below were simulated with each class of times at both ends of its 80 % interval, one class at a "
      "time, and with each recorded load alone. The plan takes the one whose largest regret is the smallest; of those "
      "within the tie, the smallest failure domain.");
  if (plan.robust.even_loads)
    s.paragraphs.push_back(
        "Times were varied at even loads: simulations of these layouts with their own loads would take too long. Each "
        "step changes in the proportion in which it changes there.");
  if (!plan.robust.not_reached.empty())
    s.paragraphs.push_back(
        fmt::format("The budget of simulations did not reach: {}.", fmt::join(plan.robust.not_reached, ", ")));
  s.items.push_back(layouts_table(inputs, plan));
  s.items.push_back(regret_table(inputs, plan));
  s.items.push_back(measure_table(plan, 0));
  return s;
}

}  // namespace wt
