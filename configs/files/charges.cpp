#include "configs/files/charges.hpp"

#include <charconv>
#include <chrono>
#include <cmath>

#include "configs/base/error.hpp"
#include "configs/base/parsed.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/yaml.hpp"

namespace wt {
namespace {

using Parse = double (*)(const std::string& text, const std::string& where);

constexpr double kMost = 1e9;  // of any currency, for an hour or a terabyte; a larger amount is a typing error

double parse_plain(const std::string& text, const std::string& where) {
  const auto value = parsed<double>(text);
  if (!value || !std::isfinite(*value))
    throw_usage("{}: found '{}', needs a number, or two as [low, high]", where, text);
  return *value;
}

/// The default date and source of a map's amounts.
struct Quote {
  std::optional<std::string> date;
  std::optional<Provenance> source;
};

Quote read_quote(YamlMap& map, const Quote& around = {}) {
  Quote quote = around;
  if (map.has("date")) quote.date = read_date(map, "date");
  if (map.has("source")) quote.source = read_source(map);
  return quote;
}

struct Bounds {
  double least = 0;
  bool more_than_least = false;
};

void check_amount(const YamlMap& map, const std::string& key, const PriceAmount& amount, const Bounds& bounds) {
  if (amount.low > amount.high) map.fail(key, "found [{:g}, {:g}], needs the lower end first", amount.low, amount.high);
  if (amount.low < bounds.least || (bounds.more_than_least && amount.low == bounds.least) || amount.high > kMost)
    map.fail(key, "found {:g}{}, needs {} {:g} and at most {:g}", amount.low,
             amount.high == amount.low ? "" : fmt::format(" to {:g}", amount.high),
             bounds.more_than_least ? "more than" : "at least", bounds.least, kMost);
}

/// Reads a value or [low, high].
void read_range(YamlMap& map, const std::string& key, Parse parse, PriceAmount& amount) {
  const YAML::Node node = map.node(key);
  if (node.IsScalar()) {
    amount.low = amount.high = parse(node.Scalar(), map.where(key));
    return;
  }
  if (!node.IsSequence() || node.size() != 2 || !node[0].IsScalar() || !node[1].IsScalar())
    map.fail(key, "needs one value, or two as [low, high], an 80 % interval");
  amount.low = parse(node[0].Scalar(), map.where(key, 0));
  amount.high = parse(node[1].Scalar(), map.where(key, 1));
}

/// Reads a value, a range, or a map with `amount` and its own date and source.
PriceAmount read_amount(YamlMap& map, const std::string& key, const Quote& quote, const Bounds& bounds,
                        Parse parse = parse_plain) {
  PriceAmount amount;
  Quote own = quote;
  if (map.node(key).IsMap()) {
    YamlMap inside = map.map(key);
    own = read_quote(inside, quote);
    read_range(inside, "amount", parse, amount);
    check_amount(inside, "amount", amount, bounds);
    inside.finish();
  } else {
    read_range(map, key, parse, amount);
    check_amount(map, key, amount, bounds);
  }
  if (!own.date) map.fail(key, "found without a date; needs `date: 2026-03-01` beside it, or in a map of its own");
  if (!own.source) map.fail(key, "found without a source; needs `source: 'published: ...'` beside it, or in a map");
  amount.date = *own.date;
  amount.evidence = *own.source;
  return amount;
}

void read_if_there(YamlMap& map, const std::string& key, const Quote& quote, const Bounds& bounds,
                   std::optional<PriceAmount>& amount) {
  if (map.has(key)) amount = read_amount(map, key, quote, bounds);
}

PowerSpec read_power(YamlMap map, const Quote& around) {
  const Quote quote = read_quote(map, around);
  PowerSpec power;
  for (const auto& [key, amount] : {std::pair{"compute", &power.compute_W},
                                    {"communicate", &power.communicate_W},
                                    {"idle", &power.idle_W},
                                    {"host", &power.host_W}})
    *amount = read_amount(map, key, quote, {}, parse_watts);
  map.finish();
  return power;
}

void read_currency(YamlMap& map, PriceSpec& prices) {
  const bool money = prices.gpu_hour || prices.spare_gpu_hour || prices.storage_tb_month || prices.egress_tb;
  prices.currency = map.text("currency", "");
  if (money && prices.currency.empty()) map.fail("currency", "missing beside prices; needs one word, as USD or EUR");
  if (prices.currency.size() > 8 || prices.currency.find_first_of(" \t\n") != std::string::npos)
    map.fail("currency", "found '{}', needs one word of at most 8 letters, as USD", prices.currency);
}

void read_spares(YamlMap& map, const Quote& quote, PriceSpec& prices) {
  if (map.has("spares")) {
    map.choice("spares", {"as_gpus"});
    if (map.has("spare_gpu_hour")) map.fail("spares", "found beside spare_gpu_hour; needs one of the two");
    if (!prices.gpu_hour) map.fail("spares", "found as_gpus without gpu_hour, which GPUs are charged at");
    prices.spares_as_gpus = true;
    prices.spare_gpu_hour = prices.gpu_hour;
  }
  read_if_there(map, "spare_gpu_hour", quote, {}, prices.spare_gpu_hour);
  if (prices.gpu_hour && !prices.spare_gpu_hour)
    map.fail("gpu_hour",
             "found without a price of spare nodes, which a plan holds; needs `spares: as_gpus`, or spare_gpu_hour (0 "
             "where they are free)");
  if (prices.spare_gpu_hour && !prices.gpu_hour) map.fail("spare_gpu_hour", "found without gpu_hour; needs both");
}

}  // namespace

std::string read_date(YamlMap& map, const std::string& key) {
  const std::string text = map.text(key);
  int year = 0;
  unsigned month = 0, day = 0;
  const auto part = [&](std::size_t at, std::size_t size, auto& value) {
    const char* const end = text.data() + at + size;
    return std::from_chars(text.data() + at, end, value).ptr == end;
  };
  const bool read =
      text.size() == 10 && text[4] == '-' && text[7] == '-' && part(0, 4, year) && part(5, 2, month) && part(8, 2, day);
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month}, std::chrono::day{day}};
  if (!read || year < 1 || !date.ok()) map.fail(key, "found '{}', needs a date as 2026-03-01: year, month, day", text);
  return text;
}

PriceSpec prices_from_yaml(YamlMap map) {
  const Quote quote = read_quote(map);
  PriceSpec prices;
  read_if_there(map, "gpu_hour", quote, {.more_than_least = true}, prices.gpu_hour);
  read_spares(map, quote, prices);
  read_if_there(map, "storage_tb_month", quote, {}, prices.storage_tb_month);
  read_if_there(map, "egress_tb", quote, {}, prices.egress_tb);
  read_currency(map, prices);
  if (map.has("power")) prices.power = read_power(map.map("power"), quote);
  read_if_there(map, "pue", quote, {.least = 1}, prices.pue);
  read_if_there(map, "carbon_kg_kwh", quote, {}, prices.carbon_kg_kwh);
  for (const char* key : {"pue", "carbon_kg_kwh"})
    if (map.has(key) && !prices.power) map.fail(key, "found without power; needs power, or there is no energy");
  map.finish();
  if (!prices.gpu_hour && !prices.storage_tb_month && !prices.egress_tb && !prices.power)
    map.fail("", "found prices of nothing; needs gpu_hour, storage_tb_month, egress_tb or power");
  return prices;
}

}  // namespace wt
