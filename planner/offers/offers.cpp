#include "planner/offers/offers.hpp"

#include <algorithm>

#include "configs/base/hash.hpp"
#include "planner/plan/other_gpus.hpp"
#include "planner/plan/paired_days.hpp"

namespace wt {
namespace {

double money_p50(const OfferRow& row) { return row.plan->cost.money->p50; }

/// Rows with plans, the cheapest first; equal ones in the order given.
std::vector<std::size_t> by_money(const OfferComparison& comparison) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < comparison.rows.size(); ++i)
    if (comparison.rows[i].plan) order.push_back(i);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return money_p50(comparison.rows[a]) < money_p50(comparison.rows[b]);
  });
  return order;
}

double draw_money(const Cost& cost, std::size_t i) { return money_at(cost.draws[i], cost.prices->gpu_hour->middle()); }

/// Share of draws in which `row` costs no more than `least`.
double chance_of(const OfferRow& row, const OfferRow& least) {
  const std::vector<double> factors =
      ratio_factors(row.inputs, *row.plan, least.inputs, *least.plan, hash_of(row.offer.name));
  std::size_t no_dearer = 0;
  for (std::size_t i = 0; i < factors.size(); ++i)
    no_dearer += draw_money(row.plan->cost, i) * factors[i] <= draw_money(least.plan->cost, i);
  return static_cast<double>(no_dearer) / static_cast<double>(factors.size());
}

OfferRow read_row(const StudySpec& study, OfferSpec offer, bool allow_assumed) {
  try {
    PlanInputs inputs = read_plan_inputs(study_on(study, offer), allow_assumed);
    check_schedule(inputs);
    return {.offer = std::move(offer), .inputs = std::move(inputs), .plan = {}, .misfit = "", .break_even = {}};
  } catch (const Error& e) {
    throw_error(e.code(), "offer {} ({}): {}; nothing was planned", offer.name, offer.file, e.what());
  }
}

void plan_row(OfferRow& row, const SearchProgress& progress) {
  try {
    row.plan = make_plan_or_say(row.inputs, progress);
  } catch (const Error& e) {
    row.misfit = e.what();
    row.failure = e.code();
  }
}

}  // namespace

void judge_offers(OfferComparison& comparison) {
  const std::vector<std::size_t> order = by_money(comparison);
  if (order.empty()) return;
  comparison.cheapest = order[0];
  const Cost& least = comparison.rows[order[0]].plan->cost;
  for (const std::size_t i : order) {
    OfferRow& row = comparison.rows[i];
    row.dearer = money_p50(row) / least.money->p50 - 1;
    row.chance = chance_of(row, comparison.rows[order[0]]);
    row.verdict = i == order[0]              ? OfferVerdict::cheapest
                  : row.chance >= kTieChance ? OfferVerdict::tie
                                             : OfferVerdict::dearer;
    row.break_even = break_even_gpu_hour(row.plan->cost, least.money->p50);
    if (row.verdict != OfferVerdict::dearer) comparison.tied.push_back(i);
  }
  if (comparison.tied.size() > 1) comparison.rows[order[0]].verdict = OfferVerdict::tie;
  OfferRow& cheapest = comparison.rows[order[0]];
  cheapest.break_even.reset();
  if (order.size() > 1)
    cheapest.break_even = break_even_gpu_hour(cheapest.plan->cost, money_p50(comparison.rows[order[1]]));
}

OfferComparison compare_offers(const StudySpec& study, std::vector<OfferSpec> offers, bool allow_assumed,
                               const SearchProgress& progress) {
  OfferComparison out{.study = study.name, .currency = offers.at(0).prices->currency, .rows = {}, .cheapest = {}};
  const auto total = static_cast<std::int64_t>(offers.size());
  for (OfferSpec& offer : offers) {
    if (progress) progress("reading inputs", static_cast<std::int64_t>(out.rows.size()), total, offer.name);
    out.rows.push_back(read_row(study, std::move(offer), allow_assumed));
  }
  for (std::size_t i = 0; i < out.rows.size(); ++i) {
    const auto part = [&](const std::string& what, std::int64_t, std::int64_t, const std::string& layout) {
      progress("planning offers", static_cast<std::int64_t>(i), total, what + (layout.empty() ? "" : ", " + layout));
    };
    plan_row(out.rows[i], progress ? SearchProgress(part) : SearchProgress());
  }
  judge_offers(out);
  return out;
}

}  // namespace wt
