// A comparison of clusters on offer: a sentence, a table for people and a document for machines.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/offers/offers.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// "Cheapest is harbor: 1.2M USD (P50; P95 1.3M USD), done in 31.2 days. atoll is 12 % dearer; ...". Offers that tie
/// are all named first.
std::string offers_answer(const OfferComparison& comparison);
/// One row per offer, in the given order.
Table offers_table(const OfferComparison& comparison);
/// Notes on each row: its prices with dates and sources, their validity, what has no price, and why it has no plan.
std::vector<std::string> offers_notes(const OfferComparison& comparison);
/// The whole comparison, with each offer's costs by cause.
Report offers_report(const OfferComparison& comparison);
/// Schema "windtunnel.offers/1".
nlohmann::json offers_json(const OfferComparison& comparison);

}  // namespace wt
