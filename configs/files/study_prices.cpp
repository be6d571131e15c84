#include "configs/files/study_prices.hpp"

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <ctime>
#include <regex>

#include "configs/base/error.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/text.hpp"
#include "configs/base/yaml.hpp"

namespace wt {
namespace {

const std::vector<std::string> kPriceKeys{"gpu_hour", "spare_gpu_hour", "storage_tb_month", "egress_tb",
                                          "pue",      "carbon_kg_kwh"};

void set_price(YAML::Node prices, const std::string& key, const std::string& given, const std::string& flag) {
  static const std::regex kAmount(R"(\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z]{1,8})?\s*)");
  std::smatch m;
  if (given.size() > 60 || !std::regex_match(given, m, kAmount))
    throw_usage("{}: found '{}', needs an amount as 2.80, or 2.80 EUR", flag, shortened(given));
  if (m[2].matched) {
    const std::string before = prices["currency"].IsScalar() ? prices["currency"].Scalar() : m[2].str();
    if (before != m[2])
      throw_usage("{}: found {}, and other prices are in {}; needs one currency", flag, m[2].str(), before);
    prices["currency"] = m[2].str();
  }
  YAML::Node price(YAML::NodeType::Map);
  price["amount"] = m[1].str();
  price["date"] = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  price["source"] = "assumed: given on the command line";
  prices[key] = price;
}

}  // namespace

std::string with_prices(const std::string& text, const GivenPrices& given, const std::string& origin) {
  if (given.gpu_hour.empty() && given.others.empty()) return text;
  YAML::Node root = load_yaml(text, origin);
  if (!root.IsMap() || (root["prices"].IsDefined() && !root["prices"].IsMap()))
    throw_usage("{}: found no map of keys, or prices that are none; needs a study", origin);
  YAML::Node prices = root["prices"].IsDefined() ? YAML::Clone(root["prices"]) : YAML::Node(YAML::NodeType::Map);
  if (!given.gpu_hour.empty()) set_price(prices, "gpu_hour", given.gpu_hour, "--gpu-hour");
  for (const std::string& one : given.others) {
    const std::size_t equals = one.find('=');
    const std::string key = one.substr(0, equals);
    if (equals == std::string::npos || std::ranges::find(kPriceKeys, key) == kPriceKeys.end())
      throw_usage("--price: found '{}'{}, needs KEY=AMOUNT with one of {}", shortened(one),
                  did_you_mean(key, kPriceKeys), fmt::join(kPriceKeys, ", "));
    set_price(prices, key, one.substr(equals + 1), "--price " + key);
  }
  if (!prices["currency"].IsDefined()) prices["currency"] = "USD";
  if (prices["gpu_hour"].IsDefined() && !prices["spares"].IsDefined() && !prices["spare_gpu_hour"].IsDefined())
    prices["spares"] = "as_gpus";
  if (prices["spare_gpu_hour"].IsDefined()) prices.remove("spares");
  root["prices"] = prices;
  YAML::Emitter out;
  out << root;
  return std::string(out.c_str()) + "\n";
}

}  // namespace wt
