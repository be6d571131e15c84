#include "bench/health/node_events.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace wt {
namespace {

constexpr double kSure = 0.99, kLikely = 0.9, kPossible = 0.5;  // see node_events.hpp

Finding event(NodeState state, const std::string& node, std::string what, std::string reason, std::string action,
              double confidence) {
  return {.state = state,
          .node = node,
          .what = std::move(what),
          .reason = std::move(reason),
          .action = std::move(action),
          .confidence = confidence,
          .evidence = Evidence::assumed};
}

void judge_xids(const NodeObservation& node, std::vector<Finding>& out) {
  std::map<std::pair<std::string, int>, std::vector<const XidEvent*>> same;  // by GPU or switch, and code
  std::map<std::string, std::vector<int>> codes;
  for (const XidEvent& x : node.xids) {
    same[{x.pci_bus, x.code}].push_back(&x);
    codes[x.pci_bus].push_back(x.code);
  }
  for (const auto& [key, events] : same) {
    const XidEvent& last = *events.back();
    const XidAdvice found = advice(last, codes.at(last.pci_bus));
    if (found.action == Remedy::none) continue;
    const bool repeated = found.action == Remedy::reset_gpu && events.size() > 1;
    std::string reason = last.pci_bus.empty() ? "" : last.pci_bus;
    const std::string said = last.text.empty() ? found.meaning : last.text;
    if (!said.empty()) reason += (reason.empty() ? "" : ": ") + said;
    if (events.size() > 1) reason += fmt::format(" ({} times)", events.size());
    out.push_back(event(found.state, node.name, fmt::format("{} {}", last.nvswitch ? "SXid" : "XID", last.code), reason,
                        to_string(repeated ? Remedy::replace : found.action),
                        found.state == NodeState::cordon ? (last.text.empty() ? kLikely : kSure) : kPossible));
  }
}

void judge_device(const NodeObservation& node, const DeviceObservation& d, std::vector<Finding>& out) {
  if (d.wrong_results > 0)
    out.push_back(event(NodeState::cordon, node.name, "results",
                        fmt::format("{}: {} repetitions of the same product or copy differ", d.id, d.wrong_results),
                        "take it out: it corrupts data silently; go back to a checkpoint from before", kSure));
  if (d.row_remap_failed)
    out.push_back(event(NodeState::cordon, node.name, "ECC", fmt::format("{}: a row could not be remapped", d.id),
                        to_string(Remedy::replace), kSure));
  if (d.ecc_double_bit > 0)
    out.push_back(event(NodeState::cordon, node.name, "ECC",
                        fmt::format("{}: {} uncorrectable errors since the driver was loaded", d.id, d.ecc_double_bit),
                        to_string(Remedy::reset_gpu), kLikely));
}

void judge_throttle(const NodeObservation& node, std::vector<Finding>& out) {
  std::set<std::string> reasons;
  std::vector<const DeviceObservation*> held;
  double hottest_C = 0;
  for (const DeviceObservation& d : node.devices) {
    if (std::ranges::none_of(d.throttle, is_hardware_throttle)) continue;
    held.push_back(&d);
    std::copy_if(d.throttle.begin(), d.throttle.end(), std::inserter(reasons, reasons.end()), is_hardware_throttle);
    hottest_C = std::max(hottest_C, d.temperature_C.value_or(0));
  }
  if (held.empty()) return;
  const std::string who =
      held.size() == 1 ? held.front()->id : fmt::format("{} of {} devices", held.size(), node.devices.size());
  out.push_back(event(NodeState::watch, node.name, "throttle",
                      fmt::format("{}: {}{}", who, fmt::join(reasons, ", "),
                                  hottest_C > 0 ? fmt::format(", up to {:.0f} C", hottest_C) : ""),
                      "check cooling and power", kLikely));
}

void judge_nic(const NodeObservation& node, const NicObservation& nic, std::vector<Finding>& out) {
  // Only for InfiniBand: machines often have unused Ethernet ports.
  if (!nic.up && nic.infiniband)
    out.push_back(event(NodeState::cordon, node.name, "NIC", fmt::format("{}: the port is not active", nic.name),
                        "check cable, transceiver and switch port", kSure));
  std::string rose;
  bool flapped = false;
  for (const auto& [counter, increase] : nic.errors) {
    if (increase == 0) continue;
    rose += fmt::format("{}{} +{}", rose.empty() ? "" : ", ", counter, increase);
    flapped |= counter == "link_downed" || counter == "carrier_down_count";
  }
  if (rose.empty()) return;
  // A lost carrier is critical on InfiniBand and a warning on Ethernet, as in Meta's gcm.
  const bool grave = flapped && nic.infiniband;
  out.push_back(
      event(grave ? NodeState::cordon : NodeState::watch, node.name, "NIC",
            fmt::format("{}: {} in {:.3g} s", nic.name, rose, nic.seconds),
            flapped ? "the link flaps: check cable and transceiver" : "check cable and transceiver; clean the optics",
            grave ? kSure : kPossible));
}

/// Nodes with fewer devices of a model than nearly all others, or none at all. Nodes with another model, and nodes that
/// could not be measured, are not compared.
void judge_counts(const FleetObservation& whole, std::vector<Finding>& out) {
  FleetObservation fleet;
  std::copy_if(whole.nodes.begin(), whole.nodes.end(), std::back_inserter(fleet.nodes),
               [](const NodeObservation& node) { return node.failures.empty(); });
  std::map<std::string, std::vector<std::pair<const NodeObservation*, std::size_t>>> models;
  for (const NodeObservation& node : fleet.nodes) {
    std::map<std::string, std::size_t> own;
    for (const DeviceObservation& d : node.devices) ++own[d.model];
    for (const auto& [model, count] : own) models[model].emplace_back(&node, count);
  }
  const auto nearly_all = [](std::size_t part, std::size_t all) { return all >= 4 && 4 * part >= 3 * all; };
  for (const auto& [model, nodes] : models) {
    std::map<std::size_t, std::size_t> nodes_with;
    for (const auto& [node, count] : nodes) ++nodes_with[count];
    const auto usual = std::ranges::max_element(nodes_with, {}, [](const auto& each) { return each.second; });
    if (!nearly_all(usual->second, nodes.size())) continue;
    for (const auto& [node, count] : nodes)
      if (count < usual->first)
        out.push_back(event(NodeState::cordon, node->name, "devices",
                            fmt::format("{} of {} devices{} are there; {} of {} nodes have them all", count,
                                        usual->first, model.empty() ? "" : " " + model, usual->second, nodes.size()),
                            to_string(Remedy::restart_node), kLikely));
  }
  const auto with_any =
      static_cast<std::size_t>(std::ranges::count_if(fleet.nodes, [](const auto& n) { return !n.devices.empty(); }));
  for (const NodeObservation& node : fleet.nodes)
    if (node.devices.empty() && nearly_all(with_any, fleet.nodes.size()))
      out.push_back(event(NodeState::cordon, node.name, "devices",
                          fmt::format("no device is there; {} of {} nodes have some", with_any, fleet.nodes.size()),
                          to_string(Remedy::restart_node), kLikely));
}

/// Wrong sums between two nodes, rail by rail. A node is at fault if its sums are wrong with all partners on the rail,
/// and it has at least two; otherwise the fault is at either end or on the path between.
void judge_sums(const FleetObservation& fleet, std::vector<Finding>& out) {
  using End = std::pair<std::string, std::string>;  // rail, node
  std::map<End, std::set<std::string>> partners, wrong;
  for (const LinkObservation& link : fleet.links)
    for (const auto& [own, other] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
      partners[{link.rail, own}].insert(other);
      if (link.wrong_results > 0) wrong[{link.rail, own}].insert(other);
    }
  const auto guilty = [&](const End& end) {
    return wrong.count(end) > 0 && wrong[end].size() > 1 && wrong[end] == partners[end];
  };
  for (const auto& [end, with] : std::map(wrong)) {
    const std::string& rail = end.first;
    const std::string where = rail.empty() ? "" : " on rail " + rail;
    if (guilty(end))
      out.push_back(event(NodeState::cordon, end.second, "results",
                          fmt::format("all-reduces{} gave wrong sums with all {} partners", where, with.size()),
                          "take it out: it corrupts data silently; go back to a checkpoint from before", kSure));
    else if (std::ranges::none_of(with, [&](const std::string& other) { return guilty({rail, other}); }))
      out.push_back(event(NodeState::watch, end.second, "results",
                          fmt::format("all-reduces{} gave wrong sums with {}, and no pair says whose fault it is",
                                      where, fmt::join(with, ", ")),
                          "measure it with another partner before either trains", kPossible));
  }
}

}  // namespace

std::vector<Finding> event_findings(const FleetObservation& fleet) {
  std::vector<Finding> out;
  for (const NodeObservation& node : fleet.nodes) {
    judge_xids(node, out);
    for (const DeviceObservation& device : node.devices) judge_device(node, device, out);
    judge_throttle(node, out);
    for (const NicObservation& nic : node.nics) judge_nic(node, nic, out);
  }
  judge_counts(fleet, out);
  judge_sums(fleet, out);
  return out;
}

}  // namespace wt
