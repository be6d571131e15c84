#include "bench/health/dcgm.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "configs/base/error.hpp"
#include "configs/base/lookup.hpp"
#include "configs/base/parsed.hpp"
#include "configs/base/text.hpp"

namespace wt {
namespace {

bool name_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':'; }

/// Parser of one line, left to right.
class Line {
 public:
  Line(const std::string& text, std::string where) : text_(text), where_(std::move(where)) {}

  MetricSample sample() {
    MetricSample out;
    out.name = name();
    if (peek() == '{') labels(out.labels);
    out.value = number();
    skip_blanks();
    if (!ended()) number();  // the optional timestamp
    skip_blanks();
    if (!ended()) fail("more behind the timestamp");
    return out;
  }

 private:
  bool ended() const { return at_ == text_.size(); }
  char peek() const { return ended() ? '\0' : text_[at_]; }
  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  [[noreturn]] void fail(const std::string& found) const {
    throw_usage("{}: column {}: found {}, needs name{{label=\"value\"}} number, as DCGM-exporter prints it", where_,
                at_ + 1, found);
  }
  std::string name() {
    const std::size_t from = at_;
    while (name_character(peek())) ++at_;
    if (at_ == from) fail(ended() ? "the end of the line" : fmt::format("'{}'", peek()));
    return text_.substr(from, at_ - from);
  }
  void expect(char c) {
    skip_blanks();
    if (peek() != c) fail(ended() ? "the end of the line" : fmt::format("'{}' for '{}'", peek(), c));
    ++at_;
  }
  std::string quoted() {
    expect('"');
    std::string out;
    while (peek() != '"') {
      if (ended()) fail("a label that does not end");
      char c = text_[at_++];
      if (c == '\\' && !ended()) {
        c = text_[at_++];
        if (c == 'n') c = '\n';
      }
      out += c;
    }
    ++at_;
    return out;
  }
  void labels(std::map<std::string, std::string>& out) {
    expect('{');
    for (skip_blanks(); peek() != '}'; skip_blanks()) {
      const std::string key = name();
      expect('=');
      out[key] = quoted();
      skip_blanks();
      if (peek() == ',')
        ++at_;
      else if (peek() != '}')
        fail(ended() ? "the end of the line" : fmt::format("'{}'", peek()));
    }
    ++at_;
  }
  double number() {
    skip_blanks();
    const char* from = text_.c_str() + at_;
    char* end = nullptr;
    const double value = std::strtod(from, &end);  // also NaN, +Inf and -Inf, which the format allows
    if (end == from) fail(ended() ? "no value" : fmt::format("'{}' for a number", text_.substr(at_, 12)));
    at_ += static_cast<std::size_t>(end - from);
    return value;
  }

  const std::string& text_;
  std::string where_;
  std::size_t at_ = 0;
};

/// Whether it is a "blank" of dcgm_fields.h: for int32, fp64 and int64, one value and a few above it that give a
/// reason.
bool is_blank(double value) {
  return !std::isfinite(value) || value >= 9.2e18 || (value >= 140737488355328.0 && value <= 140737488355344.0) ||
         (value >= 2147483632.0 && value <= 2147483647.0);
}

/// nvml.h, nvmlClocksEventReason*.
std::vector<std::string> throttle_reasons(std::uint64_t mask) {
  constexpr std::pair<std::uint64_t, const char*> kBits[] = {
      {0x8, "hw_slowdown"},  {0x40, "hw_thermal"}, {0x80, "hw_power_brake"},    {0x20, "sw_thermal"},
      {0x4, "sw_power_cap"}, {0x10, "sync_boost"}, {0x2, "application_clocks"}, {0x1, "idle"}};
  std::vector<std::string> out;
  for (const auto& [bit, word] : kBits)
    if (mask & bit) out.emplace_back(word);
  return out;
}

DeviceObservation& device_of(NodeObservation& node, const MetricSample& sample) {
  const auto label = [&](const char* key) { return value_or(sample.labels, key); };
  const std::string id = label("UUID").empty() ? "gpu " + label("gpu") : label("UUID");
  for (DeviceObservation& device : node.devices)
    if (device.id == id) return device;
  DeviceObservation device{.id = id, .model = label("modelName")};
  // The kernel log has "0000:3b:00" for "00000000:3B:00.0".
  std::string bus = lower(label("pci_bus_id"));
  if (bus.size() > 12) bus = bus.substr(bus.size() - 12);
  device.pci_bus = bus.substr(0, bus.find('.'));
  return node.devices.emplace_back(std::move(device));
}

/// Once a device: the last XID may be among the counted ones.
void add_xid(NodeObservation& node, const DeviceObservation& device, double code) {
  if (!(code > 0 && code < 10000)) return;
  const XidEvent event{static_cast<int>(code), device.pci_bus.empty() ? device.id : device.pci_bus, ""};
  const bool known = std::ranges::any_of(
      node.xids, [&](const XidEvent& x) { return x.code == event.code && x.pci_bus == event.pci_bus; });
  if (!known) node.xids.push_back(event);
}

void take(NodeObservation& node, const MetricSample& sample, const std::string& origin) {
  DeviceObservation& device = device_of(node, sample);
  const double value = sample.value;
  if (is_blank(value)) return;
  if (value < 0 || (sample.name == "DCGM_FI_DEV_GPU_UTIL" && value > 100))
    throw_usage("{}: {}: found {}, allowed {}", origin, sample.name, value,
                sample.name == "DCGM_FI_DEV_GPU_UTIL" ? "0 to 100" : "0 or more");
  if (sample.name == "DCGM_FI_DEV_GPU_UTIL")
    device.utilisation = value / 100;
  else if (sample.name == "DCGM_FI_DEV_SM_CLOCK")
    device.sm_clock_MHz = value;
  else if (sample.name == "DCGM_FI_DEV_GPU_TEMP")
    device.temperature_C = value;
  else if (sample.name == "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS" || sample.name == "DCGM_FI_DEV_CLOCKS_EVENT_REASONS")
    device.throttle = throttle_reasons(static_cast<std::uint64_t>(value));
  else if (sample.name == "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL")
    device.ecc_double_bit = static_cast<std::int64_t>(value);
  else if (sample.name == "DCGM_FI_DEV_ROW_REMAP_FAILURE")
    device.row_remap_failed = value > 0;
  else if (sample.name == "DCGM_FI_DEV_XID_ERRORS")
    add_xid(node, device, value);
  else if (sample.name == "DCGM_EXP_XID_ERRORS_COUNT" && value > 0)  // within a window, with the XID as a label
    add_xid(node, device, parsed<int>(value_or(sample.labels, "xid")).value_or(0));
}

}  // namespace

std::vector<MetricSample> read_exposition(const std::string& text, const std::string& origin) {
  std::vector<MetricSample> out;
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    line = line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
    out.push_back(Line(line, fmt::format("{}:{}", origin, number)).sample());
  }
  return out;
}

std::vector<NodeObservation> nodes_from_dcgm(const std::string& text, const std::string& origin,
                                             const std::string& this_node) {
  std::vector<NodeObservation> out;
  for (const MetricSample& sample : read_exposition(text, origin)) {
    if ((!sample.name.starts_with("DCGM_FI_") && !sample.name.starts_with("DCGM_EXP_XID")) ||
        (!sample.labels.count("gpu") && !sample.labels.count("UUID")))
      continue;
    const std::string host = value_or(sample.labels, "Hostname"), name = host.empty() ? this_node : host;
    auto node = std::ranges::find_if(out, [&](const NodeObservation& n) { return n.name == name; });
    if (node == out.end()) {
      out.emplace_back().name = name;
      node = out.end() - 1;
    }
    take(*node, sample, origin);
  }
  if (out.empty())
    throw_usage(
        "{}: found no metric DCGM_FI_... of a gpu, needs what DCGM-exporter serves: curl -s localhost:9400/metrics",
        origin);
  return out;
}

void merge_node(NodeObservation& into, const NodeObservation& seen) {
  for (const DeviceObservation& device : seen.devices) {
    const auto same = std::ranges::find_if(into.devices, [&](const DeviceObservation& d) {
      return d.id == device.id || (!d.pci_bus.empty() && d.pci_bus == device.pci_bus);
    });
    if (same == into.devices.end()) {
      into.devices.push_back(device);
      continue;
    }
    same->utilisation = device.utilisation;
    same->sm_clock_MHz = device.sm_clock_MHz;
    same->temperature_C = device.temperature_C;
    same->throttle = device.throttle;
    same->ecc_double_bit = device.ecc_double_bit;
    same->row_remap_failed = device.row_remap_failed;
    if (same->model.empty()) same->model = device.model;
    if (same->pci_bus.empty()) same->pci_bus = device.pci_bus;
  }
  for (const XidEvent& event : seen.xids) {
    // DCGM repeats the last XID of a device, which the kernel log may already have, with its text.
    const bool known = std::ranges::any_of(
        into.xids, [&](const XidEvent& x) { return x.code == event.code && x.pci_bus == event.pci_bus; });
    if (!known) into.xids.push_back(event);
  }
}

}  // namespace wt
