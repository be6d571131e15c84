#include "bench/health/observation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "configs/base/error.hpp"
#include "configs/base/json_members.hpp"
#include "configs/base/json_reader.hpp"

namespace wt {
namespace {

using nlohmann::json;

constexpr const char* kSchema = "windtunnel.health/1";

std::vector<double> positive_list(const JsonReader& reader) {
  std::vector<double> out;
  for (const JsonReader& each : reader.elements()) {
    out.push_back(each.finite());
    if (out.back() <= 0) each.fail(each.value().dump(), "a number above 0");
  }
  return out;
}

std::int64_t count(const JsonReader& reader) {
  const std::int64_t value = reader.integer();
  if (value < 0) reader.fail(std::to_string(value), "0 or more");
  return value;
}

std::string name(const JsonReader& reader) {
  std::string text = reader.string();
  if (text.empty()) reader.fail("an empty name", "a name");
  return text;
}

DeviceObservation device_from(const JsonReader& r) {
  r.allow_only({"id", "model", "pci_bus", "stress_s", "wrong_results", "memory_Bps", "utilisation", "sm_clock_MHz",
                "temperature_C", "throttle", "ecc_double_bit", "row_remap_failed"});
  DeviceObservation out{.id = name(r.at("id"))};
  if (r.has("model")) out.model = r.at("model").string();
  if (r.has("pci_bus")) out.pci_bus = r.at("pci_bus").string();
  if (r.has("stress_s")) out.stress_s = positive_list(r.at("stress_s"));
  if (r.has("wrong_results")) out.wrong_results = count(r.at("wrong_results"));
  if (r.has("memory_Bps")) out.memory_Bps = positive_list(r.at("memory_Bps"));
  if (r.has("utilisation")) {
    out.utilisation = r.at("utilisation").non_negative();
    if (*out.utilisation > 1) r.at("utilisation").fail(r.at("utilisation").value().dump(), "a share from 0 to 1");
  }
  if (r.has("sm_clock_MHz")) out.sm_clock_MHz = r.at("sm_clock_MHz").non_negative();
  if (r.has("temperature_C")) out.temperature_C = r.at("temperature_C").finite();
  if (r.has("throttle"))
    for (const JsonReader& word : r.at("throttle").elements()) {
      const auto& known = throttle_words();
      if (std::ranges::find(known, word.string()) == known.end())
        word.fail("'" + word.string() + "'", fmt::format("{}", fmt::join(known, ", ")));
      out.throttle.push_back(word.string());
    }
  if (r.has("ecc_double_bit")) out.ecc_double_bit = count(r.at("ecc_double_bit"));
  if (r.has("row_remap_failed")) out.row_remap_failed = r.at("row_remap_failed").boolean();
  return out;
}

NicObservation nic_from(const JsonReader& r) {
  r.allow_only({"name", "kind", "up", "rail", "speed_Bps", "seconds", "received_bytes", "sent_bytes", "errors"});
  NicObservation out{.name = name(r.at("name"))};
  const std::string kind = r.at("kind").string();
  if (kind != "ethernet" && kind != "infiniband") r.at("kind").fail("'" + kind + "'", "ethernet, infiniband");
  out.infiniband = kind == "infiniband";
  if (r.has("up")) out.up = r.at("up").boolean();
  if (r.has("rail")) out.rail = r.at("rail").string();
  if (r.has("speed_Bps")) out.speed_Bps = r.at("speed_Bps").non_negative();
  if (r.has("seconds")) out.seconds = r.at("seconds").non_negative();
  if (r.has("received_bytes")) out.received_bytes = r.at("received_bytes").non_negative();
  if (r.has("sent_bytes")) out.sent_bytes = r.at("sent_bytes").non_negative();
  if (r.has("errors"))
    for (const auto& [counter, value] : r.at("errors").items()) out.errors[counter] = count(value);
  return out;
}

NodeObservation node_from(const JsonReader& r) {
  r.allow_only({"name", "devices", "storage", "nics", "xids", "not_understood", "failures"});
  NodeObservation out;
  out.name = name(r.at("name"));
  std::set<std::string> ids;
  if (r.has("devices"))
    for (const JsonReader& each : r.at("devices").elements()) {
      out.devices.push_back(device_from(each));
      if (!ids.insert(out.devices.back().id).second)
        each.fail("device '" + out.devices.back().id + "' twice", "each once");
    }
  if (r.has("storage")) {
    const JsonReader storage = r.at("storage");
    storage.allow_only({"write_Bps", "read_Bps"});
    if (storage.has("write_Bps")) out.storage.write_Bps = positive_list(storage.at("write_Bps"));
    if (storage.has("read_Bps")) out.storage.read_Bps = positive_list(storage.at("read_Bps"));
  }
  if (r.has("nics"))
    for (const JsonReader& each : r.at("nics").elements()) out.nics.push_back(nic_from(each));
  if (r.has("xids"))
    for (const JsonReader& each : r.at("xids").elements()) {
      each.allow_only({"code", "pci_bus", "text", "nvswitch"});
      out.xids.push_back(
          {static_cast<int>(count(each.at("code"))), each.has("pci_bus") ? each.at("pci_bus").string() : "",
           each.has("text") ? each.at("text").string() : "", each.has("nvswitch") && each.at("nvswitch").boolean()});
    }
  if (r.has("not_understood"))
    for (const auto& [line, times] : r.at("not_understood").items()) out.not_understood[line] = count(times);
  if (r.has("failures"))
    for (const JsonReader& each : r.at("failures").elements()) out.failures.push_back(name(each));
  return out;
}

void check_names(const FleetObservation& fleet, const std::string& origin) {
  std::set<std::string> names;
  for (const NodeObservation& node : fleet.nodes)
    if (!names.insert(node.name).second)
      throw_usage("{}: found node '{}' twice, allowed once in a fleet; leave one of its files out", origin, node.name);
  for (const LinkObservation& link : fleet.links) {
    for (const std::string& end : {link.a, link.b})
      if (!names.count(end))
        throw_usage("{}: links: found node '{}', allowed are the {} of nodes[]", origin, end, names.size());
    if (link.a == link.b) throw_usage("{}: links: found '{}' linked with itself; needs two nodes", origin, link.a);
  }
}

FleetObservation parts_from_json(const json& document, const std::string& origin) {
  const JsonReader r(document, origin);
  r.allow_only({"schema", "nodes", "links", "training"});
  if (r.at("schema").string() != kSchema)
    r.at("schema").fail("'" + r.at("schema").string() + "'", fmt::format("'{}'", kSchema));
  FleetObservation out;
  for (const JsonReader& each : r.at("nodes").elements()) out.nodes.push_back(node_from(each));
  if (r.has("links"))
    for (const JsonReader& each : r.at("links").elements()) {
      each.allow_only({"a", "b", "rail", "bytes", "seconds", "wrong_results"});
      out.links.push_back({name(each.at("a")), name(each.at("b")), each.has("rail") ? each.at("rail").string() : "",
                           count(each.at("bytes")), positive_list(each.at("seconds")),
                           each.has("wrong_results") ? count(each.at("wrong_results")) : 0});
    }
  if (r.has("training")) out.training = training_from_json(r.at("training"));
  return out;
}

}  // namespace

static void to_json(json& out, const DeviceObservation& d) {
  out = {{"id", d.id},
         {"model", d.model},
         {"stress_s", d.stress_s},
         {"wrong_results", d.wrong_results},
         {"memory_Bps", d.memory_Bps}};
  if (!d.pci_bus.empty()) out["pci_bus"] = d.pci_bus;
  if (d.utilisation) out["utilisation"] = *d.utilisation;
  if (d.sm_clock_MHz) out["sm_clock_MHz"] = *d.sm_clock_MHz;
  if (d.temperature_C) out["temperature_C"] = *d.temperature_C;
  if (!d.throttle.empty()) out["throttle"] = d.throttle;
  if (d.ecc_double_bit > 0) out["ecc_double_bit"] = d.ecc_double_bit;
  if (d.row_remap_failed) out["row_remap_failed"] = true;
}
static void to_json(json& out, const NicObservation& nic) {
  out = {{"name", nic.name},
         {"kind", nic.infiniband ? "infiniband" : "ethernet"},
         {"up", nic.up},
         {"rail", nic.rail},
         {"speed_Bps", nic.speed_Bps},
         {"seconds", nic.seconds},
         {"received_bytes", nic.received_bytes},
         {"sent_bytes", nic.sent_bytes},
         {"errors", nic.errors}};
}
WT_TO_JSON(StorageObservation, write_Bps, read_Bps)
static void to_json(json& out, const XidEvent& x) {
  out = {{"code", x.code}, {"pci_bus", x.pci_bus}, {"text", x.text}};
  if (x.nvswitch) out["nvswitch"] = true;
}
static void to_json(json& out, const NodeObservation& n) {
  out = {{"name", n.name}, {"devices", n.devices}, {"nics", n.nics}, {"xids", n.xids}, {"storage", n.storage}};
  if (!n.not_understood.empty()) out["not_understood"] = n.not_understood;
  if (!n.failures.empty()) out["failures"] = n.failures;
}
static void to_json(json& out, const LinkObservation& link) {
  out = {{"a", link.a}, {"b", link.b}, {"rail", link.rail}, {"bytes", link.bytes}, {"seconds", link.seconds}};
  if (link.wrong_results > 0) out["wrong_results"] = link.wrong_results;
}

json to_json(const FleetObservation& fleet) {
  json out = {{"schema", kSchema}, {"nodes", fleet.nodes}, {"links", fleet.links}};
  if (fleet.training) out["training"] = to_json(*fleet.training);
  return out;
}

FleetObservation fleet_from_json(const json& document, const std::string& origin) {
  FleetObservation out = parts_from_json(document, origin);
  if (out.nodes.empty())
    throw_usage("{}: /nodes: found none, needs at least one; windtunnel health -o FILE writes this node's", origin);
  check_names(out, origin);
  return out;
}

FleetObservation read_fleet(const std::vector<std::filesystem::path>& files) {
  FleetObservation out;
  for (const std::filesystem::path& file : files) {
    FleetObservation part = parts_from_json(read_json(file), file.string());
    out.nodes.insert(out.nodes.end(), part.nodes.begin(), part.nodes.end());
    out.links.insert(out.links.end(), part.links.begin(), part.links.end());
    if (part.training && out.training)
      throw_usage("{}: /training: found a second one, allowed one in a fleet; leave it out of one file", file.string());
    if (part.training) out.training = std::move(part.training);
  }
  const std::string origin = files.size() == 1 ? files.front().string() : fmt::format("these {} files", files.size());
  if (out.nodes.empty())
    throw_usage("{}: found no node, needs at least one; windtunnel health -o FILE writes this node's", origin);
  check_names(out, origin);
  return out;
}

const std::vector<std::string>& throttle_words() {
  static const std::vector<std::string> words = {"hw_slowdown",  "hw_thermal", "hw_power_brake",     "sw_thermal",
                                                 "sw_power_cap", "sync_boost", "application_clocks", "idle"};
  return words;
}

bool is_hardware_throttle(const std::string& word) {
  const auto& words = throttle_words();
  return std::find(words.begin(), words.begin() + 4, word) != words.begin() + 4;
}

}  // namespace wt
