// Offers of clusters compared by what one study costs on each. The cheapest has the least P50 of money. Draw by draw,
// all offers have the same failures and the same error of the model about the step; steps of other machines have an
// error of their own beside it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/files/offer.hpp"
#include "planner/plan/plan.hpp"

namespace wt {

/// An offer is a tie with the cheapest where it is no dearer in at least this share of the draws: one end of an 80 %
/// interval, as those of step times are.
inline constexpr double kTieChance = 0.1;
/// Standard deviation of the log of predicted over true ratio of two machines' steps: the root mean square over 24
/// pairs of GPUs with published runs of one model and stack, 10 models (bench/studies/offers/ratio_error.py).
inline constexpr double kRatioError = 0.1;

enum class OfferVerdict { no_plan, cheapest, tie, dearer };

struct OfferRow {
  OfferSpec offer;
  PlanInputs inputs;
  std::optional<Plan> plan;  ///< none where nothing fits
  std::string misfit;        ///< why
  Code failure = Code::finding;
  OfferVerdict verdict = OfferVerdict::no_plan;
  double dearer = 0;  ///< P50 of its money over the cheapest one's, minus 1
  double chance = 0;  ///< share of draws in which it is no dearer than the cheapest, with kRatioError
  /// Price of a GPU-hour at which its P50 is the cheapest one's; of the cheapest that of the next; none where no price
  /// is low enough, or there is no other.
  std::optional<double> break_even;
};

struct OfferComparison {
  std::string study, currency;
  std::vector<OfferRow> rows;           ///< as given
  std::optional<std::size_t> cheapest;  ///< none where nothing fits on any
};

/// Verdicts and break-even prices of rows with plans.
void judge_offers(OfferComparison& comparison);
/// Plans the study on each. Throws Error{usage} naming the offer before the first is planned: where one cannot be read,
/// or shares nothing with the study. Prices of a study's own are left out.
OfferComparison compare_offers(const StudySpec& study, std::vector<OfferSpec> offers, bool allow_assumed,
                               const SearchProgress& progress = {});

}  // namespace wt
