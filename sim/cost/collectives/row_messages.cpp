#include "sim/cost/collectives/row_messages.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/measurements/interconnect.hpp"

namespace wt {
namespace {

double geometric_mean(const std::vector<double>& logs) {
  return std::exp(std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size()));
}

}  // namespace

double RowMessage::seconds() const { return std::sqrt(low_s * high_s); }

double RowMessage::ratio() const { return std::sqrt(high_s / low_s); }

RowMessages::RowMessages(const std::vector<RowExchangeRow>& rows) {
  for (const RowExchangeRow& row : rows) {
    if (!row.unusable.empty()) continue;
    for (const std::string& transport : {row.transport, std::string()}) {
      Times& times = times_[row.dispatcher][transport];
      (row.low_latency ? times.second : times.first).push_back(std::log(row.seconds_a_row()));
    }
  }
}

std::optional<RowMessage> RowMessages::of(Dispatcher dispatcher, const std::string& transport) const {
  const auto known = times_.find(dispatcher);
  if (known == times_.end() || transport_family(transport) != "EFA") return std::nullopt;
  const auto usable = [](const Times& times) { return !times.first.empty() && !times.second.empty(); };
  for (const std::string& name : {transport, std::string()})
    if (const auto found = known->second.find(name); found != known->second.end() && usable(found->second)) {
      const double normal_s = geometric_mean(found->second.first), alone_s = geometric_mean(found->second.second);
      return RowMessage{std::min(normal_s, alone_s), std::max(normal_s, alone_s)};
    }
  return std::nullopt;
}

CollectivePrice one_by_one(CollectivePrice price, const RowMessage& message, double row_bytes, double nic_Bps) {
  const double efficiency = row_bytes / nic_Bps / message.seconds();
  if (efficiency >= price.efficiency) return price;
  price.efficiency = efficiency;
  price.evidence = Evidence::derived;
  price.relative_spread = std::max(price.relative_spread, std::min(message.ratio() - 1, kWidestSpread));
  return price;
}

}  // namespace wt
