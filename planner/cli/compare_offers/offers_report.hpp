// Offers of clusters compared: a sentence, a table for people and a document for machines.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/offers/offers.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// "Cheapest is harbor: 1.2M USD (P50; P95 1.3M USD), done in 31.2 days. atoll is 12 % dearer; ..."
std::string offers_answer(const OfferComparison& comparison);
/// One row an offer, in the order given.
Table offers_table(const OfferComparison& comparison);
/// What each row rests on: its prices with dates and sources, until when they hold, what has none, and why it has no
/// plan.
std::vector<std::string> offers_notes(const OfferComparison& comparison);
/// All of it on a page, with what each offer's money is spent on.
Report offers_report(const OfferComparison& comparison);
/// Schema "windtunnel.offers/1".
nlohmann::json offers_json(const OfferComparison& comparison);

}  // namespace wt
