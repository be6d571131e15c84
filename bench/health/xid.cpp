#include "bench/health/xid.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <regex>
#include <sstream>

#include "configs/base/enum_words.hpp"
#include "configs/base/text.hpp"

namespace wt {
namespace {

struct Row {
  Remedy action;
  const char* meaning;
};

/// NVIDIA's catalog; codes with the same advice share a row.
const std::map<int, Row>& table() {
  static const std::map<int, Row> rows = [] {
    std::map<int, Row> out;
    const auto add = [&](Remedy action, std::initializer_list<std::pair<int, const char*>> codes) {
      for (const auto& [code, meaning] : codes) out[code] = {action, meaning};
    };
    add(Remedy::restart_application, {{11, "invalid or corrupted push buffer"},
                                      {13, "graphics engine exception"},
                                      {25, "invalid or illegal push buffer"},
                                      {31, "GPU memory page fault"},
                                      {32, "invalid or corrupted push buffer"},
                                      {94, "contained memory error"}});
    add(Remedy::find_earlier, {{43, "GPU stopped processing"}, {45, "preemptive cleanup"}});
    add(Remedy::none, {{63, "row remapping recorded"},
                       {92, "high single-bit error rate"},
                       {137, "illegal peer access, an error of the application"},
                       {157, ""},
                       {171, "the double-bit error was in DRAM"},
                       {172, "the double-bit error was in SRAM"}});
    add(Remedy::reset_gpu, {{46, "GPU stopped processing"},
                            {48, "double-bit memory error"},
                            {62, "internal microcontroller halt"},
                            {95, "uncontained memory error"},
                            {109, "context switch timeout"},
                            {110, ""},
                            {119, "GSP timeout"},
                            {120, "GSP error"},
                            {136, ""},
                            {140, "unrecovered memory error"},
                            {143, ""},
                            {156, ""},
                            {158, ""}});
    add(Remedy::replace, {{64, "row remapping failed"}});
    add(Remedy::nvlink_workflow, {{74, "NVLink error"}});
    for (int code = 144; code <= 150; ++code) out[code] = {Remedy::decode_registers, "NVLink error"};
    add(Remedy::restart_node, {{79, "fallen off the bus"}});
    return out;
  }();
  return rows;
}

NodeState state_of(Remedy action) {
  switch (action) {
    case Remedy::none:
    case Remedy::restart_application:
    case Remedy::find_earlier:
      return NodeState::healthy;
    case Remedy::decode_registers:
    case Remedy::look_up:
    case Remedy::nvlink_workflow:
    case Remedy::drain_peers:
    case Remedy::look_up_switch:
      return NodeState::watch;
    default:
      return NodeState::cordon;
  }
}

/// The recovery action in the text of XID 154; drivers spell the last action in two ways.
Remedy recovery_action(const std::string& text) {
  const std::size_t to = text.rfind(" to ");
  const std::string verdict = to == std::string::npos ? text : text.substr(to);
  const std::array<std::pair<const char*, Remedy>, 6> words = {{{"Drain and Reset", Remedy::drain_and_reset},
                                                                {"Drain P2P", Remedy::drain_peers},
                                                                {"GPU Reset", Remedy::reset_gpu},
                                                                {"Node Reboot", Remedy::restart_node},
                                                                {"OS Reboot", Remedy::restart_node},
                                                                {"(None)", Remedy::none}}};
  for (const auto& [word, action] : words)
    if (verdict.find(word) != std::string::npos) return action;
  return Remedy::look_up;
}

/// Lines of the drivers that say nothing of a node's health: what they print when they are loaded, and the rest of an
/// event.
bool is_harmless(const std::string& line) {
  static const std::array<const char*, 12> kWords = {"loading NVIDIA",
                                                     "Nvlink Core is being",
                                                     "Probing device",
                                                     "open (major",
                                                     "using MSI",
                                                     "GPU at PCI:",
                                                     "GPU Board Serial",
                                                     "GPU serial number",
                                                     "crash dump",
                                                     "(PCI ID:",
                                                     "installed in this system",
                                                     "fallen off the bus"};
  return std::ranges::any_of(kWords, [&](const char* words) { return line.find(words) != std::string::npos; });
}

/// Where the driver's own text begins; npos = not a line of NVIDIA's drivers.
std::size_t driver_text(const std::string& line) {
  return std::min({line.find("NVRM:"), line.find("nvidia-nvswitch"), line.find("nvidia-nvlink")});
}

}  // namespace

KernelLog read_kernel_log(const std::string& text) {
  static const std::regex numbered(
      R"(NVRM: Xid \((?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-9a-fA-F])?\): (\d{1,4})(?:, ?(.*))?$)");
  // "NVRM: The NVIDIA GPU 0000:b3:00.0", and two lines later "NVRM: fallen off the bus and is not responding".
  static const std::regex gone(R"(NVRM: The NVIDIA GPU ([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}))");
  static const std::regex of_switch(
      R"(nvidia-nvswitch\d{1,4}: SXid \((?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-9a-fA-F])?\): (\d{1,5}), ?(.*)$)");
  KernelLog out;
  std::string lost;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = driver_text(line);  // a cheap test first: regexes are slow, kernel logs long
    if (begin == std::string::npos) continue;
    line = line.substr(begin, 1024);  // longer than kernel lines; std::regex recurses by character
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    std::smatch found;
    if (std::regex_search(line, found, numbered)) {
      out.events.push_back({std::stoi(found[2]), lower(found[1]), found[3]});
    } else if (std::regex_search(line, found, of_switch)) {
      const std::string said = found[3];
      if (!said.starts_with("Severity") && !said.starts_with("Data"))
        out.events.push_back({std::stoi(found[2]), lower(found[1]), said, true});
    } else if (std::regex_search(line, found, gone)) {
      lost = found[1];
    } else if (!lost.empty() && line.find("fallen off the bus") != std::string::npos) {
      out.events.push_back({79, lost, "fallen off the bus and is not responding to commands"});
      lost.clear();
    } else if (!is_harmless(line)) {
      std::string said = line.substr(0, 120);
      for (char& c : said) {
        const auto byte = static_cast<unsigned char>(c);
        c = std::isdigit(byte) ? '#' : byte < 0x20 || byte > 0x7e ? '?' : c;
      }
      ++out.not_understood[said];
    }
  }
  return out;
}

XidAdvice advice(const XidEvent& event, const std::vector<int>& with) {
  const auto also = [&](int code) { return std::ranges::find(with, code) != with.end(); };
  XidAdvice out;
  const bool fatal = event.text.find("Fatal") != std::string::npos;  // otherwise "Nonfatal", of switches "Non-fatal"
  if (event.nvswitch) {
    out = {fatal ? Remedy::reset_switches : Remedy::look_up_switch, NodeState::healthy,
           fatal ? "fatal error of an NVSwitch" : "error of an NVSwitch"};
  } else if (event.code == 154) {
    out = {recovery_action(event.text), NodeState::healthy, "the driver's own verdict"};
  } else if (const auto row = table().find(event.code); row != table().end()) {
    out = {row->second.action, NodeState::healthy, row->second.meaning};
    if (event.code == 48 && (also(63) || also(64))) out.action = Remedy::drain_and_reset;
    if (out.action == Remedy::decode_registers && fatal) out.action = Remedy::reset_gpu;
    if (event.code == 172 && event.text.find("hreshold") != std::string::npos) out.action = Remedy::replace;
  }
  out.state = state_of(out.action);
  return out;
}

std::string to_string(Remedy action) {
  return word_for(action, std::array{"nothing", "restart the application", "look for the event before it",
                                     "decode the registers in the message", "look it up in NVIDIA's catalog",
                                     "follow NVIDIA's NVLink workflow", "drain jobs that use peer-to-peer traffic",
                                     "reset the GPU; replace it if this comes back", "drain the node and reset the GPU",
                                     "restart the bare-metal node", "replace the GPU",
                                     "drain the node; reset its GPUs and NVSwitches",
                                     "look it up in NVIDIA's Fabric Manager guide; check the link"});
}

std::string to_string(NodeState state) {
  return state == NodeState::cordon ? "cordon" : state == NodeState::watch ? "watch" : "healthy";
}

}  // namespace wt
