#include "sim/measurements/fabric.hpp"

#include <array>
#include <regex>
#include <string_view>

namespace wt {
namespace {

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

/// AWS's instances with EFA, by their pages: adapters of a node, bytes a second in one direction, and their generation.
struct Instance {
  const char* name;  ///< a word, in whatever case
  double node_Bps;
  const char* transport;
};
constexpr std::array<Instance, 4> kInstances = {
    {{"p4de?", 50e9, "EFA v1"}, {"p5e?", 400e9, "EFA v2"}, {"p5en", 400e9, "EFA v3"}, {"p6-b200", 400e9, "EFA v4"}}};

const Instance* instance_of(const std::string& fabric) {
  static const auto words = [] {
    std::array<std::regex, kInstances.size()> out;
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i].assign(std::string("\\b") + kInstances[i].name + "\\b", std::regex::icase);
    return out;
  }();
  for (std::size_t i = 0; i < words.size(); ++i)
    if (std::regex_search(fabric, words[i])) return &kInstances[i];
  return nullptr;
}

double node_bandwidth(const std::string& fabric) {
  static const std::regex adapters(R"((\d{1,3})\s*x\s*(\d{1,5})\s*G)");
  std::smatch found;
  if (std::regex_search(fabric, found, adapters)) return std::stod(found[1]) * std::stod(found[2]) * 1e9 / 8;
  const Instance* instance = instance_of(fabric);
  return instance ? instance->node_Bps : 0;
}

}  // namespace

bool names_instance(const std::string& fabric) { return instance_of(fabric) != nullptr; }

std::string transport_of(const std::string& fabric) {
  static const std::regex efa(R"(EFA ?(v\d)?)");
  std::smatch found;
  const Instance* instance = instance_of(fabric);
  if (std::regex_search(fabric, found, efa))
    return found[1].matched ? "EFA " + found[1].str() : instance ? instance->transport : "EFA";
  if (has(fabric, "TCPX")) return "TCPX";
  return instance ? instance->transport : "IB";
}

std::optional<Fabric> fabric_of(const CollectiveRow& row) {
  Fabric out;
  out.node_Bps = node_bandwidth(row.fabric);
  if (out.node_Bps <= 0) return std::nullopt;
  const bool shared = has(row.source, "5-95 pct") || has(row.note, "p5=");
  out.transport = shared ? kSharedFabric : transport_of(row.fabric);
  out.family = has(out.transport, "EFA") ? "EFA" : out.transport;
  return out;
}

bool reduces_in_network(const CollectiveRow& row) { return row.nodes > 1 && has(row.fabric, "SHARP"); }

bool forced_ring(const CollectiveRow& row) {
  static const std::regex ring(R"(NVLS_ENABLE=0|NVLS off|peak, Ring)");
  return std::regex_search(row.note, ring);
}

bool timed_from_python(const CollectiveRow& row) {
  return has(row.source, "stas00/ml-engineering") && !has(row.source, "slide");
}

}  // namespace wt
