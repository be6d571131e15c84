#include "sim/cost/collectives/interconnect.hpp"

#include <fmt/core.h>

#include <array>
#include <optional>
#include <regex>

#include "configs/files/data_sheet.hpp"

namespace wt {
namespace {

/// AWS instances with EFA, by their pages: rate of a node's adapters in bytes a second, one direction, and EFA's
/// generation. Hosts of p6e-gb200 have four GPUs; 18 hosts have 28.8 Tb/s together.
struct Instance {
  const char* name;  ///< regular expression of a word, in any case
  double node_Bps;
  const char* transport;
};
constexpr std::array<Instance, 6> kInstances = {{{"p4de?", 50e9, "EFA v1"},
                                                 {"p5e?", 400e9, "EFA v2"},
                                                 {"p5en", 400e9, "EFA v3"},
                                                 {"p6-b200", 400e9, "EFA v4"},
                                                 {"p6-b300", 800e9, "EFA v4"},
                                                 {"p6e-gb200", 200e9, "EFA v4"}}};

const Instance* instance_of(const std::string& text) {
  static const auto words = [] {
    std::array<std::regex, kInstances.size()> out;
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i].assign(std::string("\\b") + kInstances[i].name + "\\b", std::regex::icase);
    return out;
  }();
  for (std::size_t i = 0; i < words.size(); ++i)
    if (std::regex_search(text, words[i])) return &kInstances[i];
  return nullptr;
}

std::string transport_of(const std::string& text, const Instance* instance) {
  static const std::regex efa(R"(EFA ?(v\d)?)");
  std::smatch found;
  if (std::regex_search(text, found, efa))
    return found[1].matched ? "EFA " + found[1].str() : instance ? instance->transport : "EFA";
  if (text.find("TCPX") != std::string::npos) return "TCPX";
  static const std::regex slingshot("Slingshot", std::regex::icase);
  if (std::regex_search(text, slingshot)) return "Slingshot";
  return instance ? instance->transport : "IB";
}

/// Bytes a second of all adapters of a node.
std::optional<double> adapters_Bps(const std::string& clause, std::int64_t gpus_per_node) {
  static const std::regex times(R"((\d{1,3})\s*x\s*(\d{1,5}(?:\.\d{1,2})?)\s*G(B?))"),
      named(R"((\d{1,2})\s*x\s*[EHNX]DR[ -]?(\d{3}))"),
      several(R"((\d{1,2})\s*(?:NICs|adapters|HCAs|ports)\D{1,12}(\d{2,4})\s*G)"), rate(R"((\d{1,5})\s*Gb)"),
      terabits(R"((\d{1,2}(?:\.\d{1,2})?)\s*Tb)"), each("per (GPU|NIC|port|rail)");
  constexpr double kGigabit = 1e9 / 8;
  std::smatch found;
  if (std::regex_search(clause, found, times))
    return std::stod(found[1]) * std::stod(found[2]) * (found[3].length() > 0 ? 1e9 : kGigabit);
  if (std::regex_search(clause, found, named) || std::regex_search(clause, found, several))
    return std::stod(found[1]) * std::stod(found[2]) * kGigabit;
  if (std::regex_search(clause, found, rate))
    return std::stod(found[1]) * kGigabit *
           (std::regex_search(clause, each) ? static_cast<double>(gpus_per_node) : 1.0);
  if (std::regex_search(clause, found, terabits)) return 1000 * std::stod(found[1]) * kGigabit;
  return std::nullopt;
}

/// GPUs of a rack behind one NVLink switch. NVL3 and NVL4 are generations of NVLink, not racks.
std::optional<std::int64_t> rack_of(const std::string& text) {
  static const std::regex rack(R"(\bNVL(?:ink)?[ -]?(36|72|144|576)\b)", std::regex::icase);
  std::smatch found;
  if (!std::regex_search(text, found, rack)) return std::nullopt;
  return std::stoll(found[1]);
}

}  // namespace

std::int64_t gpus_of_host(const std::string& gpu) {
  const auto sheet = data_sheet(gpu);
  return sheet && (sheet->name.starts_with("GB") || sheet->name.starts_with("GH")) ? 4 : 8;
}

std::string transport_family(const std::string& transport) { return transport.substr(0, transport.find(' ')); }

Interconnect read_interconnect(const std::string& said, std::int64_t gpus_per_node) {
  Interconnect out;
  out.fabric = said;
  out.gpus_per_node = gpus_per_node;
  out.nvlink_domain = rack_of(said).value_or(gpus_per_node);
  const Instance* instance = instance_of(said);
  out.transport = transport_of(said, instance);
  static const std::regex clauses(R"([^,;+]+)"), nvlink("NVLink|NVSwitch|XGMI|Infinity Fabric", std::regex::icase);
  for (std::sregex_iterator it(said.begin(), said.end(), clauses), end; it != end && out.node_Bps == 0; ++it)
    if (const std::string clause = it->str(); !std::regex_search(clause, nvlink))
      out.node_Bps = adapters_Bps(clause, gpus_per_node).value_or(0);
  if (out.node_Bps == 0 && instance != nullptr) out.node_Bps = instance->node_Bps;
  return out;
}

Interconnect interconnect_of(const std::string& said, const std::string& gpu, std::int64_t gpus_per_node) {
  Interconnect out = read_interconnect(said, gpus_per_node);
  const auto sheet = data_sheet(gpu);
  if (sheet && sheet->name.starts_with("GB") && !rack_of(said)) {
    out.nvlink_domain = 72;
    out.domain_assumed = true;
  }
  if (out.node_Bps > 0) return out;
  const bool ultra = sheet && !sheet->amd && sheet->name.ends_with("300");  // ConnectX-8 on B300 and GB300 boards
  const double adapter_Bps = ultra ? 100e9 : sheet && sheet->generation >= 9 ? 50e9 : 25e9;
  out.node_Bps = static_cast<double>(gpus_per_node) * adapter_Bps;
  out.adapters_assumed = true;
  return out;
}

std::string Interconnect::assumed(std::int64_t gpus) const {
  std::string out;
  if (domain_assumed && gpus > gpus_per_node) out = fmt::format("racks of {} GPUs", nvlink_domain);
  if (adapters_assumed && gpus > nvlink_domain)
    out += fmt::format("{}fabric of {}x{:.0f}G {}", out.empty() ? "" : ", ", gpus_per_node,
                       node_Bps * 8e-9 / static_cast<double>(gpus_per_node), transport);
  return out;
}

}  // namespace wt
