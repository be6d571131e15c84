// Compares offers of clusters by the cost of one study on each. The cheapest has the least P50 of money. In each draw,
// all offers have the same failures and the same model error of the step. Steps of different machines have an
// additional error of their own.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/files/offer.hpp"
#include "planner/plan/plan.hpp"

namespace wt {

/// An offer ties with the cheapest if it costs no more in at least this share of draws: one end of an 80 % interval, as
/// for step times.
inline constexpr double kTieChance = 0.1;

/// tie: not told apart from another one that may be the cheapest. The cheapest is one itself if any other ties with it.
enum class OfferVerdict { no_plan, cheapest, tie, dearer };

struct OfferRow {
  OfferSpec offer;
  PlanInputs inputs;
  std::optional<Plan> plan;  ///< empty if no layout fits
  std::string misfit;        ///< why none fits
  Code failure = Code::finding;
  OfferVerdict verdict = OfferVerdict::no_plan;
  double dearer = 0;  ///< P50 of its money over that of the cheapest, minus 1
  double chance = 0;  ///< share of draws in which it costs no more than the cheapest, with kRatioError
  /// Price of a GPU-hour at which its P50 equals that of the cheapest. For the cheapest: that of the next. Empty if no
  /// price is low enough, or without another offer.
  std::optional<double> break_even;
};

struct OfferComparison {
  std::string study, currency;
  std::vector<OfferRow> rows;           ///< in the order given
  std::optional<std::size_t> cheapest;  ///< by P50; empty if no offer has a plan
  /// The cheapest, and those that tie with it, the cheapest first; one = there is no tie.
  std::vector<std::size_t> tied = {};
};

/// Sets verdicts and break-even prices of rows with plans.
void judge_offers(OfferComparison& comparison);
/// Plans the study on each offer; the study's own prices are ignored. Throws Error{usage} naming the offer, before any
/// is planned, if one cannot be read or does not match the study.
OfferComparison compare_offers(const StudySpec& study, std::vector<OfferSpec> offers, bool allow_assumed,
                               const SearchProgress& progress = {});

}  // namespace wt
