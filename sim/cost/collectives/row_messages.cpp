#include "sim/cost/collectives/row_messages.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/files/fitted_constants.hpp"
#include "sim/cost/collectives/interconnect.hpp"

namespace wt {

double RowMessage::seconds() const { return std::sqrt(low_s * high_s); }

double RowMessage::ratio() const { return std::sqrt(high_s / low_s); }

std::optional<RowMessage> RowMessages::of(Dispatcher dispatcher, const std::string& transport) const {
  const auto known = times_.find(dispatcher);
  if (known == times_.end() || transport_family(transport) != "EFA") return std::nullopt;
  for (const std::string& name : {transport, std::string()})
    if (const auto found = known->second.find(name); found != known->second.end()) return found->second;
  return std::nullopt;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RowMessage, low_s, high_s)

void to_json(nlohmann::json& json, const RowMessages& messages) {
  json = nlohmann::json::object();
  for (const auto& [dispatcher, by_transport] : messages.times()) json[to_string(dispatcher)] = by_transport;
}

void from_json(const nlohmann::json& json, RowMessages& messages) {
  RowMessages::Times times;
  for (const auto& [word, by_transport] : json.items()) {
    const auto dispatcher = dispatcher_from_string(word);
    if (!dispatcher) throw_unfitted("row_messages", "no dispatcher '" + word + "'");
    times[*dispatcher] = by_transport.get<std::map<std::string, RowMessage>>();
  }
  messages = RowMessages(std::move(times));
}

CollectiveEstimate one_by_one(CollectiveEstimate estimate, const RowMessage& message, double row_bytes,
                              double nic_Bps) {
  const double efficiency = row_bytes / nic_Bps / message.seconds();
  if (efficiency >= estimate.efficiency) return estimate;
  estimate.efficiency = efficiency;
  estimate.evidence = Evidence::derived;
  estimate.relative_spread = std::max(estimate.relative_spread, std::min(message.ratio() - 1, kWidestSpread));
  return estimate;
}

}  // namespace wt
