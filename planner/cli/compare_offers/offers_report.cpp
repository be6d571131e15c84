#include "planner/cli/compare_offers/offers_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "configs/base/enum_words.hpp"
#include "configs/base/json_members.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/number.hpp"
#include "configs/files/layout_words.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/parts/option_cells.hpp"
#include "planner/cli/parts/provenance.hpp"
#include "planner/cli/plan/cost_report.hpp"
#include "planner/cli/plan/plan_report.hpp"

namespace wt {
namespace {

using nlohmann::json;

std::string to_word(OfferVerdict verdict) {
  return word_for(verdict, std::array{"no plan", "cheapest", "tie", "dearer"});
}

std::string percent_dearer(const OfferRow& row) { return fmt::format("{:.1f} % dearer", 100 * row.dearer); }

Cell verdict_cell(const OfferRow& row) {
  switch (row.verdict) {
    case OfferVerdict::no_plan:
      return no_plan_cell(row.misfit, row.failure);
    case OfferVerdict::cheapest:
      return {"cheapest", Status::good};
    case OfferVerdict::tie:
      return {row.dearer == 0
                  ? "tie, the least at P50"
                  : fmt::format("tie (+{:.1f} %; no dearer in {:.0f} %)", 100 * row.dearer, 100 * row.chance),
              Status::warn};
    case OfferVerdict::dearer:
      return {percent_dearer(row)};
  }
  return {};
}

/// Fewer GPUs than are offered are flagged: the batch divides by no more.
Cell gpus_cell(const OfferRow& row) {
  const std::int64_t planned = row.inputs.study.gpus;
  if (planned == row.offer.gpus) return whole(planned);
  return {as_double(planned), fmt::format("{} of {}", planned, row.offer.gpus), {}, Status::warn};
}

bool gpus_differ(const OfferComparison& comparison) {
  return std::ranges::any_of(comparison.rows, [&](const OfferRow& row) {
    return row.inputs.study.gpus != comparison.rows.front().inputs.study.gpus || row.inputs.study.gpus < row.offer.gpus;
  });
}

std::vector<Cell> first_cells(const OfferRow& row, bool batch) {
  std::vector<Cell> cells{row.offer.name, gpus_cell(row)};
  if (batch) cells.push_back(batch_cell(row.inputs.study));
  return cells;
}

std::vector<Cell> offer_cells(const OfferRow& row, bool batch) {
  const Cost& cost = row.plan->cost;
  std::vector<Cell> cells = first_cells(row, batch);
  for (const double value : {cost.days.p50, cost.days.p95, cost.gpu_hours.p50, cost.money->p50, cost.money->p95})
    cells.emplace_back(value);
  cells.push_back(cost.energy ? Cell(cost.energy->p50 / 1000) : Cell("-"));
  cells.push_back(row.break_even ? Cell(*row.break_even) : Cell("-"));
  cells.emplace_back(cost.prices->gpu_hour->middle());
  cells.emplace_back(100 * row.plan->search.certificate.could_be_better());
  cells.push_back(verdict_cell(row));
  return cells;
}

std::string offer_note(const OfferRow& row) {
  std::string note = fmt::format("{} ({}): {}", row.offer.name, to_string(row.offer.source),
                                 fmt::join(price_sentences(*row.offer.prices), "; "));
  if (!row.offer.valid_until.empty()) note += "; valid until " + row.offer.valid_until;
  note += ".";
  if (row.inputs.study.gpus < row.offer.gpus)
    note += fmt::format(" {} of its {} GPUs are planned: the batch divides by no more in whole nodes.",
                        row.inputs.study.gpus, row.offer.gpus);
  if (!row.plan) return note + " No plan: " + row.misfit;
  if (const std::string missing = not_priced_sentence(row.plan->cost); !missing.empty()) note += " " + missing;
  return fmt::format("{} Layout: {}. {}.", note, layout_words(row.plan->layout, row.inputs.stack),
                     evidence_sentence(row.plan->step.evidence));
}

/// Whether one offer charges for an item that another one does not mention.
bool prices_differ(const OfferComparison& comparison) {
  const auto parts = [](const OfferRow& row) {
    return std::pair{row.offer.prices->storage_tb_month.has_value(), row.offer.prices->egress_tb.has_value()};
  };
  return std::ranges::any_of(comparison.rows,
                             [&](const OfferRow& row) { return parts(row) != parts(comparison.rows[0]); });
}

std::vector<std::string> tied_names(const OfferComparison& comparison) {
  return mapped(comparison.tied, [&](std::size_t i) { return comparison.rows[i].offer.name; });
}

std::string cheapest_offer(const OfferComparison& comparison) {
  if (!comparison.cheapest) return fmt::format("{} fits on none of the offers.", comparison.study);
  const OfferRow& least = comparison.rows[*comparison.cheapest];
  const std::string figures = fmt::format(
      "{} (P50; P95 {}), done in {:.1f} days", format_money(least.plan->cost.money->p50, comparison.currency),
      format_money(least.plan->cost.money->p95, comparison.currency), least.plan->cost.days.p50);
  if (comparison.tied.size() < 2) return fmt::format("Cheapest is {}: {}.", least.offer.name, figures);
  return fmt::format("A tie: {} cannot be told apart. {} is the least at P50: {}.",
                     joined(tied_names(comparison), " and "), least.offer.name, figures);
}

std::string other_offers(const OfferComparison& comparison) {
  if (!comparison.cheapest) return "";
  std::string others;
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    if (i == *comparison.cheapest) continue;
    const OfferRow& row = comparison.rows[i];
    const std::string said = row.verdict == OfferVerdict::tie
                                 ? fmt::format("is a tie with it ({:.1f} % dearer, within the error)", 100 * row.dearer)
                             : row.verdict == OfferVerdict::dearer ? "is " + percent_dearer(row)
                                                                   : no_plan_cell(row.misfit, row.failure).text;
    others += fmt::format("{}{} {}", others.empty() ? "" : "; ", row.offer.name, said);
  }
  return others.empty() ? "" : others + ".";
}

}  // namespace

static void to_json(json& out, const OfferRow& row) {
  out = {{"offer", row.offer.name},
         {"source", to_string(row.offer.source)},
         {"valid_until", row.offer.valid_until.empty() ? json() : json(row.offer.valid_until)},
         {"cluster", row.inputs.study.cluster.name},
         {"gpus", row.inputs.study.gpus},
         {"gpus_offered", row.offer.gpus},
         {"global_train_batch_size", row.inputs.study.global_batch},
         {"failures", row.inputs.study.failures},
         {"verdict", to_word(row.verdict)}};
  if (!row.plan) {
    out["reason"] = row.misfit;
    return;
  }
  const Plan& p = *row.plan;
  out.update({{"spare_nodes", p.schedule.cadence.spares.value},
              {"layout", p.layout.name()},
              {"layout_words", layout_words(p.layout, row.inputs.stack)},
              {"could_be_better", p.search.certificate.could_be_better()},
              {"step_s", p.step.step_s},
              {"low_s", p.step.low_s},
              {"high_s", p.step.high_s},
              {"evidence", evidence_json(p.step.evidence)},
              {"p50_days", p.cost.days.p50},
              {"p95_days", p.cost.days.p95},
              {"cost", cost_json(p.cost)},
              {"break_even_gpu_hour", row.break_even},
              {"dearer", row.dearer},
              {"chance_no_dearer", row.chance}});
}

std::string offers_answer(const OfferComparison& comparison) {
  const std::string others = other_offers(comparison);
  return cheapest_offer(comparison) + (others.empty() ? "" : " " + others);
}

Table offers_table(const OfferComparison& comparison) {
  Table table{.title = "Offers for " + comparison.study, .columns = {"offer", numeric("GPUs")}};
  const std::string& currency = comparison.currency;
  const bool batch = gpus_differ(comparison);
  if (batch) table.columns.push_back(numeric("batch", "sequences"));
  for (const auto& [name, unit] : {std::pair<std::string, std::string>{"time P50", "days"},
                                   {"time P95", "days"},
                                   {"GPU-hours", ""},
                                   {"money P50", currency},
                                   {"money P95", currency},
                                   {"energy P50", "MWh"},
                                   {"break-even", currency + "/GPU-h"},
                                   {"price", currency + "/GPU-h"},
                                   {"could be better by", "%"}})
    table.columns.push_back(numeric(name, unit));
  table.columns.push_back({"verdict"});
  for (const OfferRow& row : comparison.rows) {
    if (row.plan) {
      table.rows.push_back(offer_cells(row, batch));
      continue;
    }
    std::vector<Cell> cells = first_cells(row, batch);
    while (cells.size() + 1 < table.columns.size()) cells.emplace_back("-");
    cells.push_back(verdict_cell(row));
    table.rows.push_back(std::move(cells));
  }
  table.note = fmt::format(
      "Days and money are over the simulated runs and the interval of the step. Break-even: the price of a GPU-hour at "
      "which an offer costs as much as the cheapest; of the cheapest, as the next. Tie: no dearer than the cheapest in "
      "at least {:.0f} % of the draws. Could be better by: how many fewer days, or kWh, a layout that was not "
      "simulated "
      "may take; 0 is proved.",
      100 * kTieChance);
  return table;
}

std::vector<std::string> offers_notes(const OfferComparison& comparison) {
  std::vector<std::string> out;
  if (prices_differ(comparison))
    out.emplace_back("The offers do not price the same parts; money leaves out what an offer does not price.");
  for (const OfferRow& row : comparison.rows) out.push_back(offer_note(row));
  return out;
}

Report offers_report(const OfferComparison& comparison) {
  Report report{.title = "Offers for " + comparison.study,
                .answer = cheapest_offer(comparison),
                .answer_range = other_offers(comparison),
                .status = !comparison.cheapest         ? Status::bad
                          : comparison.tied.size() > 1 ? Status::warn
                                                       : Status::good};
  Section section{"offers", "The offers", {}, {offers_table(comparison)}};
  std::vector<std::pair<std::string, const Cost*>> costs;
  for (const OfferRow& row : comparison.rows)
    if (row.plan) costs.emplace_back(row.offer.name, &row.plan->cost);
  if (!costs.empty()) section.items.emplace_back(cost_stack(costs));
  report.sections.push_back(std::move(section));
  report.sections.push_back({"basis", "What it rests on", offers_notes(comparison), {}});
  report.provenance = provenance({{"study", comparison.study}, {"times", comparison.rows.front().inputs.basis}});
  report.payload = offers_json(comparison);
  return report;
}

json offers_json(const OfferComparison& comparison) {
  return {{"schema", "windtunnel.offers/1"},
          {"study", comparison.study},
          {"answer", offers_answer(comparison)},
          {"currency", comparison.currency},
          {"cheapest", comparison.cheapest ? json(comparison.rows[*comparison.cheapest].offer.name) : json()},
          {"tie", comparison.tied.size() > 1 ? tied_names(comparison) : std::vector<std::string>{}},
          {"tie_chance", kTieChance},
          {"notes", offers_notes(comparison)},
          {"offers", comparison.rows}};
}

}  // namespace wt
