// What a run costs: a sentence, a section of a plan's report, and a part of its document.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "planner/money/cost.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// "12.3M USD", "845 USD".
std::string format_money(double amount, const std::string& currency);
/// "4.56 GWh"
std::string format_energy(double kWh);
/// "Cost: 12.3M USD (P50; P95 12.9M USD), 4.56 GWh (P95 4.7 GWh), 2.3M GPU-hours."; without prices GPU-hours alone, and
/// that no prices are given.
std::string cost_sentence(const Cost& cost);
/// "2.5 USD a GPU-hour, 20 USD a TB and month (2026-03-01, published: ...)": one for all neighbours of one date and
/// source.
std::vector<std::string> price_sentences(const PriceSpec& prices);
/// "Not priced: storage (storage_tb_month)."; "" where all is.
std::string not_priced_sentence(const Cost& cost);
/// Where money goes, or GPU-hours where any of them has no money: a bar for each of the named costs, stacked by goodput
/// bucket and what is charged beside it. Means over the simulated runs.
Chart cost_stack(const std::vector<std::pair<std::string, const Cost*>>& costs);
/// Every goodput bucket in GPU-hours, money and energy.
Section cost_section(const Cost& cost);
nlohmann::json cost_json(const Cost& cost);

}  // namespace wt
