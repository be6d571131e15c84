#include "bench/health/judge.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/health/node_events.hpp"
#include "bench/health/outliers.hpp"
#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/statistics.hpp"
#include "configs/base/text.hpp"

namespace wt {
namespace {

/// One value of a group, with its node and device.
struct Member {
  std::string node, device;
  double time;  ///< or seconds per byte: larger is worse
  std::vector<std::string> throttle = {};
};

struct Measure {
  std::string what, group;
  MeasureLimits limits;
  std::vector<Member> members;
};

constexpr std::size_t kFewest = 3;          // values that deviations() needs
constexpr double kMeasurementFailed = 0.9;  // assumed confidence: the failure is certain, the node's fault less so

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// By device model. Nodes keep the order of the fleet, which makes the verdict deterministic.
std::vector<Measure> measures_of(const FleetObservation& fleet, const JudgeOptions& options) {
  std::map<std::pair<std::string, std::string>, Measure> groups;
  const auto add = [&](const std::string& what, const std::string& group, const MeasureLimits& limits, Member member) {
    Measure& measure = groups.try_emplace({what, group}, Measure{what, group, limits, {}}).first->second;
    measure.members.push_back(std::move(member));
  };
  for (const NodeObservation& node : fleet.nodes) {
    for (const DeviceObservation& device : node.devices) {
      if (!device.stress_s.empty())
        add("compute", device.model, options.compute, {node.name, device.id, median(device.stress_s), device.throttle});
      if (!device.memory_Bps.empty())
        add("memory", device.model, options.memory, {node.name, device.id, 1 / median(device.memory_Bps)});
    }
    if (!node.storage.write_Bps.empty())
      add("storage write", "", options.storage, {node.name, "", 1 / median(node.storage.write_Bps)});
    if (!node.storage.read_Bps.empty())
      add("storage read", "", options.storage, {node.name, "", 1 / median(node.storage.read_Bps)});
  }
  std::vector<Measure> out;
  out.reserve(groups.size());
  for (auto& [key, measure] : groups) out.push_back(std::move(measure));
  return out;
}

/// A slow member of a measure, before its node is judged.
struct Slow {
  const Member* member;
  double slowdown, chance;
  NodeState state;
};

std::string action_for(const std::string& what, const std::vector<const Slow*>& slow, std::size_t of) {
  const bool throttled = std::ranges::any_of(
      slow, [](const Slow* s) { return std::ranges::any_of(s->member->throttle, is_hardware_throttle); });
  if (what == "compute" && throttled) return "check cooling and power";
  if (what == "compute")
    return slow.size() == of && of > 1 ? "check power cap, clocks and cooling of the node"
                                       : "run the vendor's diagnostics on the device";
  if (what == "memory") return "run the vendor's memory diagnostics";
  return "check disk, mount and path to the file system";
}

/// One finding per node, with all of its slow devices.
Finding finding_of(const Measure& measure, const std::string& node, const std::vector<const Slow*>& slow,
                   std::size_t of) {
  Finding out{.node = node, .what = measure.what};
  double least = slow.front()->slowdown, most = 0, chance = 1;
  std::string throttle;
  for (const Slow* each : slow) {
    least = std::min(least, each->slowdown), most = std::max(most, each->slowdown),
    chance = std::min(chance, each->chance);
    out.state = std::max(out.state, each->state);
    for (const std::string& word : each->member->throttle)
      if (is_hardware_throttle(word) && throttle.find(word) == std::string::npos)
        throttle += (throttle.empty() ? "" : ", ") + word;
  }
  const std::string& device = slow.front()->member->device;
  const std::string who = device.empty()     ? "the node"
                          : slow.size() == 1 ? device
                                             : fmt::format("{} of {} devices", slow.size(), of);
  out.reason =
      fmt::format("{}: {} slower than the median of {}", who,
                  slow.size() == 1 ? percent(most) : percent(least) + " to " + percent(most), measure.members.size());
  if (!throttle.empty()) out.reason += fmt::format("; throttled ({})", throttle);
  out.action = action_for(measure.what, slow, of);
  out.confidence = 1 - chance;
  return out;
}

void judge_measure(const Measure& measure, double comparisons, std::size_t nodes, const JudgeOptions& options,
                   HealthVerdict& out, std::vector<Finding>& findings) {
  if (measure.members.size() < kFewest) {
    out.missing.push_back(fmt::format("{}: {} to compare{}; needs 3", measure.what,
                                      measure.members.size() == 1 ? "one value" : "two values",
                                      measure.group.empty() ? "" : " of " + measure.group));
    return;
  }
  std::vector<double> times;
  for (const Member& member : measure.members) times.push_back(member.time);
  const std::vector<Deviation> found = deviations(times, measure.limits.usual_spread);
  std::vector<Slow> slow;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double chance = std::min(1.0, found[i].p * comparisons);
    if (chance >= options.watch_alpha || found[i].slowdown < measure.limits.watch_floor) continue;
    const bool grave = chance < options.cordon_alpha && found[i].slowdown >= measure.limits.cordon_floor;
    slow.push_back({&measure.members[i], found[i].slowdown, chance, grave ? NodeState::cordon : NodeState::watch});
  }
  std::map<std::string, std::vector<const Slow*>> by_node;
  for (const Slow& each : slow) by_node[each.member->node].push_back(&each);
  const bool common = by_node.size() > 1 &&
                      static_cast<double>(by_node.size()) > options.common_cause_share * static_cast<double>(nodes);
  NodeState worst = NodeState::watch;
  double surest = 0;
  for (const auto& [node, own] : by_node) {
    const auto of =
        std::ranges::count_if(measure.members, [&, &name = node](const Member& m) { return m.node == name; });
    Finding finding = finding_of(measure, node, own, static_cast<std::size_t>(of));
    worst = std::max(worst, finding.state), surest = std::max(surest, finding.confidence);
    if (common) finding.state = NodeState::watch;
    findings.push_back(std::move(finding));
  }
  if (common)
    out.shared.push_back(
        {.state = worst,
         .what = measure.what,
         .reason = fmt::format("{} of {} nodes are slower than the others: a cause in common", by_node.size(), nodes),
         .action = "look for what they share: rack, power cap, cooling, software",
         .confidence = surest});
}

/// If more nodes failed than a common cause allows, they are only watched, as in judge_measure().
void judge_failures(const FleetObservation& fleet, const JudgeOptions& options, HealthVerdict& out,
                    std::vector<Finding>& findings) {
  const auto failed = std::ranges::count_if(fleet.nodes, [](const auto& n) { return !n.failures.empty(); });
  const bool common =
      failed > 1 && static_cast<double>(failed) > options.common_cause_share * static_cast<double>(fleet.nodes.size());
  for (const NodeObservation& node : fleet.nodes) {
    if (node.failures.empty()) continue;
    const std::size_t others = node.failures.size() - 1;
    findings.push_back({.state = common ? NodeState::watch : NodeState::cordon,
                        .node = node.name,
                        .what = "measurement",
                        .reason = node.failures.front() + (others > 0 ? fmt::format(" (and {} more)", others) : ""),
                        .action = "fix what the message names, and check the node again",
                        .confidence = kMeasurementFailed,
                        .evidence = Evidence::assumed});
  }
  if (common)
    out.shared.push_back(
        {.state = NodeState::cordon,
         .what = "measurement",
         .reason =
             fmt::format("{} of {} nodes could not be measured in full: a cause in common", failed, fleet.nodes.size()),
         .action = "look for what they share: the folder given with --storage, the driver, how ranks were started",
         .confidence = kMeasurementFailed,
         .evidence = Evidence::assumed});
}

void judge_links(const FleetObservation& fleet, const JudgeOptions& options, HealthVerdict& out,
                 std::vector<Finding>& findings) {
  using Kind = LinkFinding::Kind;
  const auto comparisons = static_cast<double>(out.comparisons);
  const auto pairs = judge_pairs(fleet.links, options.all_reduce.usual_spread, options.cordon_alpha / comparisons,
                                 options.all_reduce.cordon_floor);
  if (pairs.empty())
    out.missing.push_back("all-reduce: no pair of nodes was measured");
  else if (pairs.size() < 5)
    out.missing.push_back(
        fmt::format("all-reduce: {} pairs and rails; a slow node is in two of them, needs 5", pairs.size()));
  for (const LinkFinding& found : solve_pairs(pairs)) {
    const std::string rail = found.rail.empty() ? "" : fmt::format(" on rail {}", found.rail);
    const JudgedPair& worst = found.pairs.front();
    Finding f{.state = NodeState::cordon,
              .node = found.node,
              .what = "all-reduce",
              .confidence = 1 - std::min(1.0, found.p * comparisons)};
    const std::string slower = fmt::format("{} slower than the median ({})", percent(found.slowdown),
                                           format_bytes(static_cast<double>(worst.bytes)));
    switch (found.kind) {
      case Kind::node:
        f.reason = fmt::format("slow with all {} partners{}, of whom {} {} fast with others: {}", found.pairs.size(),
                               rail, found.fast_partners, found.fast_partners == 1 ? "is" : "are", slower);
        f.action = found.rail.empty() ? "check NICs, cables and PCIe of the node"
                                      : fmt::format("check the NIC and cable of rail {}", found.rail);
        findings.push_back(f);
        break;
      case Kind::ambiguous:
        f.state = NodeState::watch;
        f.action = "measure it with another partner";
        for (const std::string& node : {found.node, found.other}) {
          if (node.empty()) continue;
          f.node = node;
          f.reason = fmt::format("slow with {}{}, and no pair says whose fault it is: {}",
                                 worst.a == node ? worst.b : worst.a, rail, slower);
          findings.push_back(f);
        }
        break;
      case Kind::cable:
        f.node = "";
        f.reason = fmt::format("{} with {}{}: {}; both are fast with others", found.node, found.other, rail, slower);
        f.action = "check the path between them";
        out.shared.push_back(f);
        break;
      case Kind::rail:
        f.node = "";
        f.reason = fmt::format("{} of its pairs{} are slow: {}; no node's fault", found.pairs.size(), rail, slower);
        f.action = "check the rail's switch and its routes";
        out.shared.push_back(f);
        break;
    }
  }
}

void check_options(const JudgeOptions& o) {
  if (!(o.cordon_alpha > 0) || !(o.cordon_alpha <= o.watch_alpha) || !(o.watch_alpha < 1))
    throw_usage("health: found cordon_alpha {} and watch_alpha {}, allowed 0 < cordon_alpha <= watch_alpha < 1",
                o.cordon_alpha, o.watch_alpha);
  for (const MeasureLimits& m : {o.compute, o.memory, o.all_reduce, o.storage})
    if (!(m.usual_spread > 0) || !(m.watch_floor > 0) || !(m.watch_floor <= m.cordon_floor))
      throw_usage(
          "health: found spread {} and floors {} and {}, allowed above 0, and the floor of watch not above that of "
          "cordon",
          m.usual_spread, m.watch_floor, m.cordon_floor);
}

/// Counts the lines of a node's kernel log that nobody judged, and shows the most frequent ones.
void add_not_understood(const NodeObservation& node, std::vector<std::string>& missing) {
  constexpr std::size_t kShown = 3;
  if (node.not_understood.empty()) return;
  std::vector<std::pair<std::int64_t, std::string>> lines;
  std::int64_t all = 0;
  for (const auto& [line, times] : node.not_understood) lines.emplace_back(times, line), all += times;
  std::ranges::stable_sort(lines, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text =
      fmt::format("kernel log of {}: {} of NVIDIA's drivers not understood", node.name, counted(all, "line"));
  for (std::size_t i = 0; i < std::min(kShown, lines.size()); ++i)
    text += fmt::format("{} '{}' ({}x)", i == 0 ? ":" : ",", lines[i].second, lines[i].first);
  missing.push_back(lines.size() > kShown ? text + " ..." : text);
}

}  // namespace

std::size_t HealthVerdict::count(NodeState state) const {
  return static_cast<std::size_t>(std::ranges::count_if(nodes, [&](const NodeVerdict& n) { return n.state == state; }));
}

int HealthVerdict::exit_status() const {
  const bool grave = std::ranges::any_of(shared, [](const Finding& f) { return f.state == NodeState::cordon; });
  return grave || count(NodeState::cordon) > 0 ? static_cast<int>(Code::finding) : 0;
}

HealthVerdict judge(const FleetObservation& fleet, const JudgeOptions& options) {
  check_options(options);
  HealthVerdict out;
  std::vector<Finding> findings = event_findings(fleet);
  const std::vector<Measure> measures = measures_of(fleet, options);
  for (const Measure& measure : measures)
    if (measure.members.size() >= kFewest) out.comparisons += measure.members.size();
  out.comparisons += fleet.links.size();
  const auto comparisons = static_cast<double>(out.comparisons);
  if (std::ranges::none_of(measures, [](const Measure& m) { return m.what == "compute"; }))
    out.missing.push_back("compute: no device was stressed");
  for (const Measure& measure : measures)
    judge_measure(measure, comparisons, fleet.nodes.size(), options, out, findings);
  judge_failures(fleet, options, out, findings);
  judge_links(fleet, options, out, findings);
  for (const NodeObservation& node : fleet.nodes) add_not_understood(node, out.missing);
  if (fleet.training) out.training = diagnose(*fleet.training, options.diagnosis);

  for (const NodeObservation& node : fleet.nodes) {
    NodeVerdict verdict{node.name, NodeState::healthy, {}};
    for (const Finding& finding : findings)
      if (finding.node == node.name)
        verdict.findings.push_back(finding), verdict.state = std::max(verdict.state, finding.state);
    std::ranges::stable_sort(verdict.findings, [](const Finding& a, const Finding& b) {
      return a.state != b.state ? a.state > b.state : a.confidence > b.confidence;
    });
    out.nodes.push_back(std::move(verdict));
  }
  std::ranges::stable_sort(out.nodes, [](const NodeVerdict& a, const NodeVerdict& b) {
    return a.state != b.state ? a.state > b.state : a.node < b.node;
  });
  return out;
}

}  // namespace wt
