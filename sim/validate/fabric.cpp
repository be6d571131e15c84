#include "sim/validate/fabric.hpp"

#include <array>
#include <regex>
#include <string_view>
#include <utility>

namespace wt {
namespace {

bool has(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

// AWS instance pages: adapters of a node, bytes a second in one direction.
constexpr std::array<std::pair<std::string_view, double>, 5> kInstances = {
    {{"p4d", 50e9}, {"p5en", 400e9}, {"p5", 400e9}, {"p6-b200", 400e9}, {"P6-B200", 400e9}}};

double node_bandwidth(const std::string& fabric) {
  static const std::regex adapters(R"((\d{1,3})\s*x\s*(\d{1,5})\s*G)");
  std::smatch found;
  if (std::regex_search(fabric, found, adapters)) return std::stod(found[1]) * std::stod(found[2]) * 1e9 / 8;
  for (const auto& [name, Bps] : kInstances)
    if (has(fabric, name)) return Bps;
  return 0;
}

}  // namespace

std::optional<Fabric> fabric_of(const CollectiveRow& row) {
  Fabric out;
  out.node_Bps = node_bandwidth(row.fabric);
  if (out.node_Bps <= 0) return std::nullopt;
  static const std::regex efa(R"(EFA ?(v\d)?)");
  std::smatch found;
  if (has(row.source, "5-95 pct") || has(row.note, "p5=")) {
    out.family = out.transport = kSharedFabric;
  } else if (std::regex_search(row.fabric, found, efa)) {
    out.family = "EFA";
    out.transport = found[1].matched ? "EFA " + found[1].str() : "EFA";
  } else if (has(row.fabric, "TCPX")) {
    out.family = out.transport = "TCPX";
  } else {
    out.family = out.transport = "IB";
  }
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
