// The cost of a run: a sentence, a section of a plan's report, and a part of its document.
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
/// "Cost: 12.3M USD (P50; P95 12.9M USD), 4.56 GWh (P95 4.7 GWh), 2.3M GPU-hours."; without prices only GPU-hours and a
/// note.
std::string cost_sentence(const Cost& cost);
/// "2.5 USD a GPU-hour, 20 USD a TB and month (2026-03-01, published: ...)": consecutive prices with the same date and
/// source share a sentence.
std::vector<std::string> price_sentences(const PriceSpec& prices);
/// "Not priced: storage (storage_tb_month)."; "" where everything is priced.
std::string not_priced_sentence(const Cost& cost);
/// Money by cause, or GPU-hours where any of the costs has no money: one bar per named cost, stacked by goodput bucket
/// and additional charges. Means over the simulated runs.
Chart cost_stack(const std::vector<std::pair<std::string, const Cost*>>& costs);
/// Every goodput bucket in GPU-hours, money and energy.
Section cost_section(const Cost& cost);
nlohmann::json cost_json(const Cost& cost);

}  // namespace wt
