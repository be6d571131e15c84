#include "bench/health/events.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace wt {
namespace {

constexpr double kSure = 0.99, kLikely = 0.9, kPossible = 0.5;  // events.hpp

Finding event(NodeState state, const std::string& node, std::string what, std::string reason, std::string action, double confidence) {
  return {state, node, std::move(what), std::move(reason), std::move(action), confidence, Evidence::assumed};
}

void judge_xids(const NodeObservation& node, std::vector<Finding>& out) {
  std::map<std::pair<std::string, int>, std::vector<const XidEvent*>> same;  // the same code of the same GPU
  std::map<std::string, std::vector<int>> codes;
  for (const XidEvent& x : node.xids) {
    same[{x.pci_bus, x.code}].push_back(&x);
    codes[x.pci_bus].push_back(x.code);
  }
  for (const auto& [key, events] : same) {
    const XidEvent& last = *events.back();
    const XidAdvice found = advice(last, codes.at(last.pci_bus));
    if (found.action == Remedy::none) continue;
    const bool again = found.action == Remedy::reset_gpu && events.size() > 1;
    std::string reason = last.pci_bus.empty() ? "" : last.pci_bus;
    const std::string said = last.text.empty() ? found.meaning : last.text;
    if (!said.empty()) reason += (reason.empty() ? "" : ": ") + said;
    if (events.size() > 1) reason += fmt::format(" ({} times)", events.size());
    out.push_back(event(found.state, node.name, fmt::format("XID {}", last.code), reason, to_string(again ? Remedy::replace : found.action),
                        found.state == NodeState::cordon ? (last.text.empty() ? kLikely : kSure) : kPossible));
  }
}

void judge_device(const NodeObservation& node, const DeviceObservation& d, std::vector<Finding>& out) {
  if (d.wrong_results > 0)
    out.push_back(event(NodeState::cordon, node.name, "results", fmt::format("{}: {} repetitions of the same product differ", d.id, d.wrong_results),
                        "take it out: it corrupts data silently; go back to a checkpoint from before", kSure));
  if (d.row_remap_failed)
    out.push_back(event(NodeState::cordon, node.name, "ECC", fmt::format("{}: a row could not be remapped", d.id), to_string(Remedy::replace), kSure));
  if (d.ecc_double_bit > 0)
    out.push_back(event(NodeState::cordon, node.name, "ECC", fmt::format("{}: {} uncorrectable errors since the driver was loaded", d.id, d.ecc_double_bit),
                        to_string(Remedy::reset_gpu), kLikely));
  std::string reasons;
  for (const std::string& word : d.throttle)
    if (is_hardware_throttle(word)) reasons += (reasons.empty() ? "" : ", ") + word;
  if (!reasons.empty())
    out.push_back(event(NodeState::watch, node.name, "throttle",
                        fmt::format("{}: {}{}", d.id, reasons, d.temperature_C ? fmt::format(" at {:.0f} C", *d.temperature_C) : ""),
                        "check cooling and power", kLikely));
}

void judge_nic(const NodeObservation& node, const NicObservation& nic, std::vector<Finding>& out) {
  // A port of InfiniBand is there to be used; machines have Ethernet ports that never were.
  if (!nic.up && nic.infiniband)
    out.push_back(event(NodeState::cordon, node.name, "NIC", fmt::format("{}: the port is not active", nic.name), "check cable, transceiver and switch port", kSure));
  std::string rose;
  bool flapped = false;
  for (const auto& [counter, increase] : nic.errors) {
    if (increase == 0) continue;
    rose += fmt::format("{}{} +{}", rose.empty() ? "" : ", ", counter, increase);
    flapped |= counter == "link_downed" || counter == "carrier_down_count";
  }
  if (rose.empty()) return;
  // Carrier lost: critical on InfiniBand, a warning on Ethernet, as Meta's gcm has it.
  const bool grave = flapped && nic.infiniband;
  out.push_back(event(grave ? NodeState::cordon : NodeState::watch, node.name, "NIC", fmt::format("{}: {} in {:.3g} s", nic.name, rose, nic.seconds),
                      flapped ? "the link flaps: check cable and transceiver" : "check cable and transceiver; clean the optics", grave ? kSure : kPossible));
}

/// Nodes with fewer devices of a model than nearly all the others have.
void judge_counts(const FleetObservation& fleet, std::vector<Finding>& out) {
  const auto count = [](const NodeObservation& node, const std::string& model) {
    return static_cast<std::size_t>(std::count_if(node.devices.begin(), node.devices.end(), [&](const auto& d) { return d.model == model; }));
  };
  std::set<std::string> models;
  for (const NodeObservation& node : fleet.nodes)
    for (const DeviceObservation& d : node.devices) models.insert(d.model);
  for (const std::string& model : models) {
    std::map<std::size_t, std::size_t> nodes;
    for (const NodeObservation& node : fleet.nodes) ++nodes[count(node, model)];
    const auto usual = std::max_element(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (fleet.nodes.size() < 4 || 4 * usual->second < 3 * fleet.nodes.size()) continue;  // no rule that an exception could break
    for (const NodeObservation& node : fleet.nodes)
      if (const std::size_t found = count(node, model); found < usual->first)
        out.push_back(event(NodeState::cordon, node.name, "devices",
                            fmt::format("{} of {} devices{} are there; {} of {} nodes have them all", found, usual->first, model.empty() ? "" : " " + model,
                                        usual->second, fleet.nodes.size()),
                            to_string(Remedy::restart_node), kLikely));
  }
}

}  // namespace

std::vector<Finding> event_findings(const FleetObservation& fleet) {
  std::vector<Finding> out;
  for (const NodeObservation& node : fleet.nodes) {
    judge_xids(node, out);
    for (const DeviceObservation& device : node.devices) judge_device(node, device, out);
    for (const NicObservation& nic : node.nics) judge_nic(node, nic, out);
  }
  judge_counts(fleet, out);
  return out;
}

}  // namespace wt
