#include "planner/watch/ledger.hpp"

#include <cmath>
#include <limits>

#include "configs/base/json_members.hpp"
#include "configs/base/json_reader.hpp"

namespace wt {

using nlohmann::json;

static void to_json(json& out, const CauseCount& count) {
  out = {{"restarts", count.restarts}, {"step", count.step}, {"helped", count.helped}};
  if (count.back_to) out["back_to"] = *count.back_to;
}
static void to_json(json& out, const StartedTrial& trial) {
  out = {{"signal", trial.signal},     {"unix_s", trial.unix_s},
         {"excluded", trial.excluded}, {"way", trial.option ? json(to_string(*trial.option)) : json()},
         {"layout", trial.layout},     {"step_factor", trial.step_factor}};
}
WT_TO_JSON(CordonedNode, unix_s, back)

namespace {

WatchSignal signal_from(const JsonReader& in) {
  WatchSignal out{.rule = in.at("rule").string()};
  const auto metric = metric_from(in.at("metric").string());
  if (!metric) in.at("metric").fail(in.at("metric").string(), "a metric of the rules");
  out.metric = *metric;
  using limits = std::numeric_limits<double>;
  const auto finite_or = [&](const char* key, double otherwise) {
    return in.at(key).value().is_null() ? otherwise : in.at(key).finite();
  };
  out.value = finite_or("value", limits::quiet_NaN()), out.reference = finite_or("reference", limits::quiet_NaN());
  out.limit = finite_or("limit", limits::infinity());
  out.first_step = in.at("first_step").integer(), out.last_step = in.at("last_step").integer();
  return out;
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
  out.excluded = in.at("excluded").strings();
  if (const JsonReader way = in.at("way"); !way.value().is_null()) {
    out.option = recovery_option_from(way.string());
    if (!out.option) way.fail(way.string(), "one of the alternatives");
  }
  out.layout = in.at("layout").string(), out.step_factor = in.at("step_factor").non_negative();
  return out;
}

json finite_or_null(double value) { return std::isfinite(value) ? json(value) : json(); }

}  // namespace

void to_json(json& out, const WatchSignal& s) {
  out = {{"rule", s.rule},
         {"metric", to_string(s.metric)},
         {"value", finite_or_null(s.value)},
         {"reference", finite_or_null(s.reference)},
         {"limit", finite_or_null(s.limit)},
         {"first_step", s.first_step},
         {"last_step", s.last_step}};
}

void to_json(json& out, const Rollback& r) {
  out = {{"step", r.step}, {"bad_step", r.bad_step}, {"skipped", std::vector{r.skipped}}};
}

void to_json(json& out, const BatchRange& range) { out = {range.first, range.last}; }

std::vector<std::string> NodeLedger::excluded() const {
  std::vector<std::string> out;
  for (const auto& [node, state] : cordoned)
    if (!state.back) out.push_back(node);
  return out;
}

void to_json(json& out, const NodeLedger& ledger) {
  out = {{"cordoned", ledger.cordoned}, {"causes", ledger.causes},           {"spares_used", ledger.spares_used},
         {"layout", ledger.layout},     {"step_factor", ledger.step_factor}, {"skipped", ledger.skipped},
         {"rollback", ledger.rollback}, {"breaker", ledger.breaker},         {"trial", ledger.trial}};
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
