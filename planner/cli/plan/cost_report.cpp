#include "planner/cli/plan/cost_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "configs/base/json_members.hpp"
#include "planner/cli/plan/plan_sections.hpp"

namespace wt {

WT_TO_JSON(CostRange, p05, p50, p95, mean)
WT_TO_JSON(Cost, gpu_hours, spare_gpu_hours, money, storage_money, egress_money, not_priced)

namespace {

using nlohmann::json;

/// Three digits and a suffix: "845", "12.3k", "4.56M".
std::string short_number(double value) {
  const char* suffix = "";
  for (const char* next : {"k", "M", "G"})
    if (value >= 999.5) value /= 1000, suffix = next;
  return fmt::format("{:.{}f}{}", value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, suffix);
}

struct NamedAmount {
  const char* key;
  std::string unit;
  const PriceAmount* amount;
};

/// The given amounts, in the order of docs/files.md.
std::vector<NamedAmount> named_amounts(const PriceSpec& p) {
  std::vector<NamedAmount> out;
  const auto add = [&](const char* key, const std::string& unit, const std::optional<PriceAmount>& amount) {
    if (amount) out.push_back({key, unit, &*amount});
  };
  add("gpu_hour", p.currency + (p.spares_as_gpus ? " a GPU-hour, of spare nodes too" : " a GPU-hour"), p.gpu_hour);
  if (!p.spares_as_gpus) add("spare_gpu_hour", p.currency + " a GPU-hour of spare nodes", p.spare_gpu_hour);
  add("storage_tb_month", p.currency + " a TB and month", p.storage_tb_month);
  add("egress_tb", p.currency + " a TB taken out", p.egress_tb);
  if (p.power)
    for (const auto& [key, unit, amount] :
         {std::tuple{"power.compute", "W a GPU that computes", &p.power->compute_W},
          {"power.communicate", "W a GPU that waits for a collective", &p.power->communicate_W},
          {"power.idle", "W an idle GPU", &p.power->idle_W},
          {"power.host", "W a node without its GPUs", &p.power->host_W}})
      out.push_back({key, unit, amount});
  add("pue", "times the servers' energy (PUE)", p.pue);
  add("carbon_kg_kwh", "kg CO2e a kWh", p.carbon_kg_kwh);
  return out;
}

std::string amount_text(const PriceAmount& amount) {
  return amount.low == amount.high ? fmt::format("{:g}", amount.low)
                                   : fmt::format("{:g} to {:g}", amount.low, amount.high);
}

std::string currency_of(const Cost& cost) { return cost.prices ? cost.prices->currency : ""; }

Table ranges_table(const Cost& cost) {
  Table table{.title = "In all",
              .columns = {"what", numeric("P5"), numeric("P50"), numeric("P95"), numeric("mean")},
              .note = "Over the simulated runs, the interval of the step's time, and the ranges of the prices."};
  const auto row = [&](const std::string& what, const CostRange& r) {
    table.rows.push_back({what, Cell(r.p05), Cell(r.p50), Cell(r.p95), Cell(r.mean)});
  };
  row("GPU-hours", cost.gpu_hours);
  if (cost.money) row(currency_of(cost), *cost.money);
  if (cost.energy) row("kWh", *cost.energy);
  if (cost.carbon) row("kg CO2e", *cost.carbon);
  return table;
}

/// A row of the table of buckets, with one cell per priced column.
std::vector<Cell> bucket_row(const Cost& cost, const std::string& name, const BucketCost& of, bool hours_and_energy) {
  std::vector<Cell> cells{name, hours_and_energy ? Cell(of.gpu_hours) : Cell("-")};
  if (cost.money) cells.emplace_back(of.money);
  if (cost.energy) cells.push_back(hours_and_energy ? Cell(of.kWh) : Cell("-"));
  return cells;
}

Table buckets_table(const Cost& cost) {
  Table table{.title = "Where it goes", .columns = {"time spent on", numeric("GPU-hours")}};
  if (cost.money) table.columns.push_back(numeric("money", currency_of(cost)));
  if (cost.energy) table.columns.push_back(numeric("energy", "kWh"));
  BucketCost all;
  for (std::size_t b = 0; b < kBuckets; ++b) {
    const BucketCost& bucket = cost.buckets[b];
    all.gpu_hours += bucket.gpu_hours, all.money += bucket.money, all.kWh += bucket.kWh;
    if (bucket.gpu_hours > 0)
      table.rows.push_back(bucket_row(cost, bucket_words(static_cast<Bucket>(b)), bucket, true));
  }
  for (const auto& [name, money] :
       {std::pair{"stored checkpoints", cost.storage_money}, {"last checkpoint taken out", cost.egress_money}}) {
    all.money += money;
    if (money > 0) table.rows.push_back(bucket_row(cost, name, {.money = money}, false));
  }
  table.rows.push_back(bucket_row(cost, "all", all, true));
  table.note = "Means over the simulated runs.";
  if (cost.money || cost.energy)
    table.note += fmt::format(" Money and energy include spare nodes, which stand by for {} GPU-hours.",
                              format_number(cost.spare_gpu_hours));
  return table;
}

Table prices_table(const PriceSpec& prices) {
  Table table{.title = "Prices", .columns = {"what", numeric("amount"), "date", "source"}};
  for (const NamedAmount& each : named_amounts(prices))
    table.rows.push_back({each.unit, Cell(each.amount->middle(), amount_text(*each.amount)), each.amount->date,
                          to_string(each.amount->evidence)});
  table.note = "Two numbers are an 80 % interval.";
  return table;
}

}  // namespace

std::string format_money(double amount, const std::string& currency) { return short_number(amount) + " " + currency; }

std::string format_energy(double kWh) {
  return kWh >= 1e6   ? fmt::format("{:.3g} GWh", kWh / 1e6)
         : kWh >= 1e3 ? fmt::format("{:.3g} MWh", kWh / 1e3)
                      : fmt::format("{:.3g} kWh", kWh);
}

std::string cost_sentence(const Cost& cost) {
  const std::string hours = short_number(cost.gpu_hours.p50) + " GPU-hours";
  if (!cost.money && !cost.energy)
    return fmt::format("Cost: {} (P50; P95 {}); no prices are given.", hours, short_number(cost.gpu_hours.p95));
  std::string out = "Cost: ";
  const std::string currency = currency_of(cost);
  if (cost.money)
    out += fmt::format("{} (P50; P95 {}), ", format_money(cost.money->p50, currency),
                       format_money(cost.money->p95, currency));
  if (cost.energy)
    out += fmt::format("{} ({}P95 {}), ", format_energy(cost.energy->p50), cost.money ? "" : "P50; ",
                       format_energy(cost.energy->p95));
  return out + hours + ".";
}

std::vector<std::string> price_sentences(const PriceSpec& prices) {
  std::vector<std::string> out;
  std::string said;  // amounts with the same date and source
  const auto quote = [](const PriceAmount& a) { return fmt::format(" ({}, {})", a.date, to_string(a.evidence)); };
  const std::vector<NamedAmount> amounts = named_amounts(prices);
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    said += fmt::format("{}{} {}", said.empty() ? "" : ", ", amount_text(*amounts[i].amount), amounts[i].unit);
    if (i + 1 < amounts.size() && quote(*amounts[i + 1].amount) == quote(*amounts[i].amount)) continue;
    out.push_back(said + quote(*amounts[i].amount));
    said.clear();
  }
  return out;
}

std::string not_priced_sentence(const Cost& cost) {
  return cost.not_priced.empty() ? "" : fmt::format("Not priced: {}.", fmt::join(cost.not_priced, ", "));
}

Chart cost_stack(const std::vector<std::pair<std::string, const Cost*>>& costs) {
  const bool money = std::ranges::all_of(costs, [](const auto& each) { return each.second->money.has_value(); });
  double largest = 0;
  for (const auto& [name, cost] : costs) largest = std::max(largest, money ? cost->money->mean : cost->gpu_hours.mean);
  const bool millions = largest >= 1e6;
  const std::string scale = millions ? "million " : "thousand ";
  Chart chart{.kind = ChartKind::stacked_bar,
              .title = money ? "What the money is spent on" : "What the GPU-hours are spent on",
              .unit = scale + (money ? currency_of(*costs.front().second) : "GPU-hours"),
              .horizontal = true};
  for (const auto& [name, cost] : costs) chart.labels.push_back(name);
  const auto add = [&](const std::string& name, const auto& of) {
    Series series{.name = name};
    for (const auto& [label, cost] : costs) series.values.push_back(of(*cost) / (millions ? 1e6 : 1e3));
    if (std::ranges::any_of(series.values, [](double value) { return value > 0; }))
      chart.series.push_back(std::move(series));
  };
  for (std::size_t b = 0; b < kBuckets; ++b)
    add(bucket_words(static_cast<Bucket>(b)),
        [&](const Cost& cost) { return money ? cost.buckets[b].money : cost.buckets[b].gpu_hours; });
  if (money) {
    add("stored checkpoints", [](const Cost& cost) { return cost.storage_money; });
    add("last checkpoint taken out", [](const Cost& cost) { return cost.egress_money; });
  }
  return chart;
}

Section cost_section(const Cost& cost) {
  Section s{.id = "cost", .title = "Cost", .paragraphs = {cost_sentence(cost)}};
  if (!cost.prices)
    s.paragraphs.emplace_back("A `prices` map in the study or in its cluster gives money and energy.");
  else if (const std::string missing = not_priced_sentence(cost); !missing.empty())
    s.paragraphs.push_back(missing);
  s.items.emplace_back(ranges_table(cost));
  s.items.emplace_back(cost_stack({{"this plan", &cost}}));
  s.items.emplace_back(buckets_table(cost));
  if (cost.prices) s.items.emplace_back(prices_table(*cost.prices));
  return s;
}

json cost_json(const Cost& cost) {
  json buckets = json::object(), prices = json::array();
  for (std::size_t b = 0; b < kBuckets; ++b) {
    const BucketCost& bucket = cost.buckets[b];
    json& one = buckets[to_string(static_cast<Bucket>(b))] = {{"gpu_hours", bucket.gpu_hours}};
    one["money"] = cost.money ? json(bucket.money) : json();
    one["kwh"] = cost.energy ? json(bucket.kWh) : json();
  }
  if (cost.prices)
    for (const NamedAmount& each : named_amounts(*cost.prices))
      prices.push_back({{"key", each.key},
                        {"low", each.amount->low},
                        {"high", each.amount->high},
                        {"date", each.amount->date},
                        {"evidence", to_string(each.amount->evidence.kind)},
                        {"source", each.amount->evidence.source}});
  json out = cost;
  out.update({{"sentence", cost_sentence(cost)},
              {"currency", currency_of(cost).empty() ? json() : json(currency_of(cost))},
              {"kwh", cost.energy},
              {"carbon_kg", cost.carbon},
              {"buckets", buckets},
              {"prices", prices}});
  return out;
}

}  // namespace wt
