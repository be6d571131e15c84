#include "planner/watch/ledger.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "configs/base/json_reader.hpp"

namespace wt {

using nlohmann::json;

namespace {

WatchSignal signal_from(const JsonReader& in) {
  WatchSignal out;
  out.rule = in.at("rule").string();
  const auto metric = metric_from(in.at("metric").string());
  if (!metric) in.at("metric").fail(in.at("metric").string(), "a metric of the rules");
  out.metric = *metric;
  const JsonReader value = in.at("value");
  out.value = value.value().is_null() ? std::numeric_limits<double>::quiet_NaN() : value.finite();
  out.reference = in.at("reference").finite(), out.limit = in.at("limit").finite();
  out.first_step = in.at("first_step").integer(), out.last_step = in.at("last_step").integer();
  return out;
}

json to_json(const StartedTrial& trial) {
  return {{"signal", wt::to_json(trial.signal)},
          {"unix_s", trial.unix_s},
          {"excluded", trial.excluded},
          {"way", trial.option ? json(to_string(*trial.option)) : json()},
          {"layout", trial.layout},
          {"step_factor", trial.step_factor}};
}

CauseCount count_from(const JsonReader& in) {
  CauseCount out{in.at("restarts").integer(), in.at("step").integer(), in.has("helped") && in.at("helped").boolean()};
  if (in.has("back_to")) out.back_to = in.at("back_to").integer();
  return out;
}

/// Throws unless ascending, as united() returns them.
std::vector<BatchRange> ranges_from(const JsonReader& in) {
  std::vector<BatchRange> out;
  for (const JsonReader& each : in.elements()) {
    const std::vector<JsonReader> ends = each.elements();
    if (ends.size() != 2) each.fail(each.value().dump(), "the first and the last batch");
    out.push_back({ends[0].integer(), ends[1].integer()});
    const std::int64_t before = out.size() > 1 ? out[out.size() - 2].last : 0;
    if (out.back().first <= before || out.back().last < out.back().first)
      each.fail(each.value().dump(), "ascending batches from 1 on");
  }
  return out;
}

Rollback rollback_from(const JsonReader& in) {
  const std::vector<BatchRange> skipped = ranges_from(in.at("skipped"));
  if (skipped.size() != 1) in.at("skipped").fail(in.at("skipped").value().dump(), "one range of batches");
  return {in.at("step").integer(), in.at("bad_step").integer(), skipped.front()};
}

StartedTrial trial_from(const JsonReader& in) {
  StartedTrial out;
  out.signal = signal_from(in.at("signal")), out.unix_s = in.at("unix_s").non_negative();
  for (const JsonReader& node : in.at("excluded").elements()) out.excluded.push_back(node.string());
  if (const JsonReader way = in.at("way"); !way.value().is_null()) {
    out.option = recovery_option_from(way.string());
    if (!out.option) way.fail(way.string(), "one of the alternatives");
  }
  out.layout = in.at("layout").string(), out.step_factor = in.at("step_factor").non_negative();
  return out;
}

}  // namespace

json to_json(const WatchSignal& s) {
  return {{"rule", s.rule},
          {"metric", to_string(s.metric)},
          {"value", std::isfinite(s.value) ? json(s.value) : json()},
          {"reference", s.reference},
          {"limit", s.limit},
          {"first_step", s.first_step},
          {"last_step", s.last_step}};
}

json to_json(const Rollback& r) {
  return {{"step", r.step}, {"bad_step", r.bad_step}, {"skipped", to_json(std::vector{r.skipped})}};
}

json to_json(const std::vector<BatchRange>& ranges) {
  json out = json::array();
  for (const BatchRange& range : ranges) out.push_back({range.first, range.last});
  return out;
}

std::vector<std::string> NodeLedger::excluded() const {
  std::vector<std::string> out;
  for (const auto& [node, state] : cordoned)
    if (!state.back) out.push_back(node);
  return out;
}

json to_json(const NodeLedger& ledger) {
  json cordoned = json::object(), causes = json::object();
  for (const auto& [node, state] : ledger.cordoned) cordoned[node] = {{"unix_s", state.unix_s}, {"back", state.back}};
  for (const auto& [cause, count] : ledger.causes) {
    causes[cause] = {{"restarts", count.restarts}, {"step", count.step}, {"helped", count.helped}};
    if (count.back_to) causes[cause]["back_to"] = *count.back_to;
  }
  return {{"cordoned", cordoned},
          {"causes", causes},
          {"spares_used", ledger.spares_used},
          {"layout", ledger.layout},
          {"step_factor", ledger.step_factor},
          {"skipped", to_json(ledger.skipped)},
          {"rollback", ledger.rollback ? to_json(*ledger.rollback) : json()},
          {"breaker", ledger.breaker},
          {"trial", ledger.trial ? to_json(*ledger.trial) : json()}};
}

NodeLedger ledger_from_json(const json& document, const std::string& origin) {
  const JsonReader root(document, origin);
  root.allow_only(
      {"cordoned", "causes", "spares_used", "layout", "step_factor", "skipped", "rollback", "breaker", "trial"});
  NodeLedger out;
  for (const auto& [node, state] : root.at("cordoned").items())
    out.cordoned[node] = {state.at("unix_s").non_negative(), state.at("back").boolean()};
  for (const auto& [cause, count] : root.at("causes").items()) out.causes[cause] = count_from(count);
  out.spares_used = root.at("spares_used").integer();
  out.layout = root.at("layout").string();
  out.step_factor = root.at("step_factor").non_negative();
  if (root.has("skipped")) out.skipped = ranges_from(root.at("skipped"));
  if (root.has("rollback") && !root.at("rollback").value().is_null()) out.rollback = rollback_from(root.at("rollback"));
  out.breaker = root.at("breaker").string();
  if (root.has("trial") && !root.at("trial").value().is_null()) out.trial = trial_from(root.at("trial"));
  return out;
}

}  // namespace wt
