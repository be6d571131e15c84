#include "planner/watch/ledger.hpp"

#include <nlohmann/json.hpp>

#include "configs/spec/support/json_reader.hpp"

namespace wt {

using nlohmann::json;

std::vector<std::string> NodeLedger::excluded() const {
  std::vector<std::string> out;
  for (const auto& [node, state] : cordoned)
    if (!state.back) out.push_back(node);
  return out;
}

json to_json(const NodeLedger& ledger) {
  json cordoned = json::object(), causes = json::object();
  for (const auto& [node, state] : ledger.cordoned) cordoned[node] = {{"unix_s", state.unix_s}, {"back", state.back}};
  for (const auto& [cause, count] : ledger.causes) causes[cause] = {{"restarts", count.restarts}, {"step", count.step}};
  return {{"cordoned", cordoned},
          {"causes", causes},
          {"spares_used", ledger.spares_used},
          {"layout", ledger.layout},
          {"step_factor", ledger.step_factor},
          {"breaker", ledger.breaker}};
}

NodeLedger ledger_from_json(const json& document, const std::string& origin) {
  const JsonReader root(document, origin);
  root.allow_only({"cordoned", "causes", "spares_used", "layout", "step_factor", "breaker"});
  NodeLedger out;
  for (const auto& [node, state] : root.at("cordoned").items())
    out.cordoned[node] = {state.at("unix_s").non_negative(), state.at("back").boolean()};
  for (const auto& [cause, count] : root.at("causes").items())
    out.causes[cause] = {count.at("restarts").integer(), count.at("step").integer()};
  out.spares_used = root.at("spares_used").integer();
  out.layout = root.at("layout").string();
  out.step_factor = root.at("step_factor").non_negative();
  out.breaker = root.at("breaker").string();
  return out;
}

}  // namespace wt
