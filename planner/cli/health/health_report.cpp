#include "planner/cli/health/health_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "configs/base/json_members.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/statistics.hpp"

namespace wt {

using nlohmann::json;

static void to_json(json& out, NodeState state) { out = to_string(state); }
static void to_json(json& out, Ailment ailment) { out = to_string(ailment); }
static void to_json(json& out, Evidence evidence) { out = to_string(evidence); }
WT_TO_JSON(Finding, state, what, reason, action, confidence, evidence)
WT_TO_JSON(NodeVerdict, node, state, findings)
WT_TO_JSON(Diagnosis, ailment, reason, action, confidence, relative_pace, mfu)
WT_TO_JSON(HealthVerdict, comparisons, nodes, shared, missing)

namespace {

Status status_of(NodeState state) {
  return state == NodeState::cordon ? Status::bad : state == NodeState::watch ? Status::warn : Status::good;
}

/// Never rounds to "100 %", which no statistics support.
Cell confidence_cell(const Finding& finding) {
  const double shown = 100 * finding.confidence;
  return {shown, shown > 99.99 ? "> 99.99" : fmt::format("{:.4g}", shown), finding.evidence};
}

json payload_of(const HealthVerdict& verdict) {
  json out = verdict;
  out["kind"] = "health";
  if (verdict.training) out["training"] = *verdict.training;
  return out;
}

std::string answer_of(const HealthVerdict& verdict) {
  const std::size_t cordoned = verdict.count(NodeState::cordon), watched = verdict.count(NodeState::watch),
                    all = verdict.nodes.size();
  std::string names;
  for (const NodeVerdict& node : verdict.nodes)
    if (node.state == NodeState::cordon) names += (names.empty() ? "" : ", ") + node.node;
  std::string out = !verdict.training
                        ? ""
                        : fmt::format("The training run {}. ", verdict.training->ailment == Ailment::fine
                                                                   ? "is fine"
                                                                   : "shows: " + to_string(verdict.training->ailment));
  out += cordoned > 0 ? fmt::format("Cordon {} of {} nodes: {}.", cordoned, all, names)
         : all == 1   ? fmt::format("{} need not be cordoned.", verdict.nodes.front().node)
                      : fmt::format("None of {} nodes needs to be cordoned.", all);
  if (watched > 0) out += fmt::format(" {} to watch.", watched);
  if (!verdict.shared.empty())
    out += fmt::format(" {} that no single node is to blame for.",
                       verdict.shared.size() == 1 ? "One fault" : fmt::format("{} faults", verdict.shared.size()));
  return out;
}

Callout training_callout(const Diagnosis& d) {
  const bool fine = d.ailment == Ailment::fine;
  std::string text = d.reason;
  if (!fine)
    text +=
        fmt::format(". To do: {}. {:.0f} % of the signals that this needs were known.", d.action, 100 * d.confidence);
  return {fine                                                                          ? Status::good
          : d.ailment == Ailment::silent_failure || d.ailment == Ailment::slow_hardware ? Status::bad
                                                                                        : Status::warn,
          to_string(d.ailment), text};
}

}  // namespace

Report health_report(const HealthVerdict& verdict, const JudgeOptions& options) {
  Report report{.title = "Health", .answer = answer_of(verdict)};
  if (verdict.comparisons > 0)
    report.answer_range = fmt::format(
        "{} comparisons; chance alone cordons a node of a healthy fleet in one check of {:.0f} where spreads are "
        "normal, and in one of 25 at most as recorded H100 timings spread",
        verdict.comparisons, 1 / options.cordon_alpha);
  report.status = verdict.exit_status() != 0            ? Status::bad
                  : verdict.count(NodeState::watch) > 0 ? Status::warn
                                                        : Status::good;
  if (verdict.training)
    report.sections.push_back({"training", "The training run", {}, {training_callout(*verdict.training)}});

  const std::vector<Column> columns = {"node", "verdict", "because of", "reason", "to do", numeric("sure", "%")};
  Table nodes{.columns = columns,
              .note =
                  "Sure, of a comparison: that a healthy fleet does not show as much anywhere in this check. Of an "
                  "event (assumed): that the driver's or counter's word is right."};
  for (const NodeVerdict& node : verdict.nodes)
    for (const Finding& f : node.findings)
      nodes.rows.push_back(
          {node.node, {to_string(f.state), status_of(f.state)}, f.what, f.reason, f.action, confidence_cell(f)});
  if (!nodes.rows.empty()) report.sections.push_back({"nodes", "What is held against nodes", {}, {nodes}});
  Table shared{.columns = std::vector<Column>(columns.begin() + 1, columns.end())};
  for (const Finding& f : verdict.shared)
    shared.rows.push_back({{f.state == NodeState::cordon ? "fault" : "watch", status_of(f.state)},
                           f.what,
                           f.reason,
                           f.action,
                           confidence_cell(f)});
  if (!shared.rows.empty()) report.sections.push_back({"shared", "What is no node's fault", {}, {shared}});
  if (!verdict.missing.empty()) report.sections.push_back({"missing", "What was not judged", verdict.missing, {}});
  report.payload = payload_of(verdict);
  return report;
}

namespace {

/// Columns for "measured": median and range of each row.
Table spread_table() { return {.columns = {"measured", numeric("median"), numeric("least"), numeric("most")}}; }

template <typename Text>
void add_spread(Table& table, const std::string& what, const std::vector<double>& values, Text&& text) {
  if (values.empty()) return;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  table.rows.push_back({what, {median(values), text(median(values))}, {*least, text(*least)}, {*most, text(*most)}});
}

}  // namespace

Table measured_table(const NodeObservation& node) {
  Table out = spread_table();
  const auto rate = [](double Bps) { return format_bytes(Bps) + "/s"; };
  for (const DeviceObservation& device : node.devices) {
    add_spread(out, device.id + ", compute stress", device.stress_s, format_seconds);
    add_spread(out, device.id + ", memory", device.memory_Bps, rate);
  }
  add_spread(out, "storage, written", node.storage.write_Bps, rate);
  add_spread(out, "storage, read", node.storage.read_Bps, rate);
  for (const NicObservation& nic : node.nics)
    if (nic.seconds > 0)
      add_spread(out, nic.name + ", traffic", {(nic.received_bytes + nic.sent_bytes) / nic.seconds}, rate);
  return out;
}

Table links_table(const std::vector<LinkObservation>& links) {
  std::map<std::int64_t, std::vector<double>> payloads;
  for (const LinkObservation& link : links)
    if (!link.seconds.empty()) payloads[link.bytes].push_back(median(link.seconds));
  Table out = spread_table();
  for (const auto& [bytes, times] : payloads)
    add_spread(out, fmt::format("{}, {} pairs and rails", format_bytes(static_cast<double>(bytes)), times.size()),
               times, format_seconds);
  return out;
}

}  // namespace wt
