#include "planner/cli/compare_offers/offers_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "configs/base/enum_words.hpp"
#include "configs/base/json_members.hpp"
#include "planner/cli/parts/cells.hpp"
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
      return {row.failure == Code::finding ? "does not fit" : "cannot be planned", Status::bad};
    case OfferVerdict::cheapest:
      return {"cheapest", Status::good};
    case OfferVerdict::tie:
      return {fmt::format("tie (+{:.1f} %; cheaper in {:.0f} % of the draws)", 100 * row.dearer, 100 * row.chance),
              Status::good};
    case OfferVerdict::dearer:
      return {percent_dearer(row)};
  }
  return {};
}

std::vector<Cell> offer_cells(const OfferRow& row) {
  const Cost& cost = row.plan->cost;
  std::vector<Cell> cells{row.offer.name, whole(row.inputs.study.gpus)};
  for (const double value : {cost.days.p50, cost.days.p95, cost.gpu_hours.p50, cost.money->p50, cost.money->p95})
    cells.emplace_back(value);
  cells.push_back(cost.energy ? Cell(cost.energy->p50 / 1000) : Cell("-"));
  cells.push_back(row.break_even ? Cell(*row.break_even) : Cell("-"));
  cells.emplace_back(cost.prices->gpu_hour->middle());
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
  return note + " " + evidence_sentence(row.plan->step.evidence) + ".";
}

/// Whether one offer charges for an item that another one does not mention.
bool prices_differ(const OfferComparison& comparison) {
  const auto parts = [](const OfferRow& row) {
    return std::pair{row.offer.prices->storage_tb_month.has_value(), row.offer.prices->egress_tb.has_value()};
  };
  return std::ranges::any_of(comparison.rows,
                             [&](const OfferRow& row) { return parts(row) != parts(comparison.rows[0]); });
}

std::string cheapest_offer(const OfferComparison& comparison) {
  if (!comparison.cheapest) return fmt::format("{} fits on none of the offers.", comparison.study);
  const OfferRow& least = comparison.rows[*comparison.cheapest];
  return fmt::format("Cheapest is {}: {} (P50; P95 {}), done in {:.1f} days.", least.offer.name,
                     format_money(least.plan->cost.money->p50, comparison.currency),
                     format_money(least.plan->cost.money->p95, comparison.currency), least.plan->cost.days.p50);
}

std::string other_offers(const OfferComparison& comparison) {
  if (!comparison.cheapest) return "";
  std::string others;
  for (const OfferRow& row : comparison.rows) {
    if (row.verdict == OfferVerdict::cheapest) continue;
    const std::string said = row.verdict == OfferVerdict::tie
                                 ? fmt::format("is a tie with it ({:.1f} % dearer, within the error)", 100 * row.dearer)
                             : row.verdict == OfferVerdict::dearer ? "is " + percent_dearer(row)
                             : row.failure == Code::finding        ? "does not fit"
                                                                   : "cannot be planned";
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
         {"failures", row.inputs.study.failures},
         {"verdict", to_word(row.verdict)}};
  if (!row.plan) {
    out["reason"] = row.misfit;
    return;
  }
  const Plan& p = *row.plan;
  out.update({{"spare_nodes", p.schedule.cadence.spares.value},
              {"layout", p.layout.name()},
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
  Table table{.title = "Offers for " + comparison.study, .columns = {"offer"}};
  const std::string& currency = comparison.currency;
  for (const auto& [name, unit] : {std::pair<std::string, std::string>{"GPUs", ""},
                                   {"time P50", "days"},
                                   {"time P95", "days"},
                                   {"GPU-hours", ""},
                                   {"money P50", currency},
                                   {"money P95", currency},
                                   {"energy P50", "MWh"},
                                   {"break-even", currency + "/GPU-h"},
                                   {"price", currency + "/GPU-h"}})
    table.columns.push_back(numeric(name, unit));
  table.columns.push_back({"verdict"});
  for (const OfferRow& row : comparison.rows) {
    if (row.plan) {
      table.rows.push_back(offer_cells(row));
      continue;
    }
    std::vector<Cell> cells{row.offer.name, whole(row.inputs.study.gpus)};
    while (cells.size() + 1 < table.columns.size()) cells.emplace_back("-");
    cells.push_back(verdict_cell(row));
    table.rows.push_back(std::move(cells));
  }
  table.note = fmt::format(
      "Days and money are over the simulated runs and the interval of the step. Break-even: the price of a GPU-hour at "
      "which an offer costs as much as the cheapest; of the cheapest, as the next. Tie: no dearer than the cheapest in "
      "at least {:.0f} % of the draws.",
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
                .status = comparison.cheapest ? Status::good : Status::warn};
  Section section{"offers", "The offers", {}, {offers_table(comparison)}};
  if (const std::string others = other_offers(comparison); !others.empty()) section.paragraphs.push_back(others);
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
          {"tie_chance", kTieChance},
          {"notes", offers_notes(comparison)},
          {"offers", comparison.rows}};
}

}  // namespace wt
