// Counters of network devices from Linux's /sys.
#include <algorithm>
#include <fstream>

#include "bench/health/collect.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// The file's number; 0 where it is missing or has none, as with drivers that lack the counter.
double number(const fs::path& file) {
  std::ifstream in(file);
  double value = 0;
  return in >> value ? value : 0;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(folder, absent)) out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

void count(NicObservation& nic, const fs::path& file) {
  if (fs::exists(file)) nic.errors[file.filename().string()] = static_cast<std::int64_t>(number(file));
}

NicObservation ethernet(const fs::path& device) {
  NicObservation out{.name = device.filename().string(),
                     .up = first_line(device / "operstate") != "down",
                     .speed_Bps = std::max(0.0, number(device / "speed") * 1e6 / 8)};  // Mb/s; -1 = not known
  out.received_bytes = number(device / "statistics" / "rx_bytes");
  out.sent_bytes = number(device / "statistics" / "tx_bytes");
  for (const char* counter : {"rx_errors", "tx_errors", "rx_crc_errors", "rx_frame_errors"})
    count(out, device / "statistics" / counter);
  count(out, device / "carrier_down_count");
  return out;
}

NicObservation infiniband(const fs::path& device, const fs::path& port) {
  NicObservation out{.name = device.filename().string() + ":" + port.filename().string(),
                     .infiniband = true,
                     .up = first_line(port / "state").find("ACTIVE") != std::string::npos,
                     .speed_Bps = number(port / "rate") * 1e9 / 8};  // "400 Gb/sec (4X NDR)"
  // Unit: words of four bytes (InfiniBand specification, PortCounters).
  out.received_bytes = 4 * number(port / "counters" / "port_rcv_data");
  out.sent_bytes = 4 * number(port / "counters" / "port_xmit_data");
  for (const char* counter :
       {"link_downed", "link_error_recovery", "symbol_error", "port_rcv_errors", "local_link_integrity_errors"})
    count(out, port / "counters" / counter);
  for (const char* counter : {"packet_seq_err", "out_of_sequence", "local_ack_timeout_err"})
    count(out, port / "hw_counters" / counter);
  return out;
}

}  // namespace

std::vector<NicObservation> read_nics(const fs::path& sysfs) {
  std::vector<NicObservation> out;
  // Virtual devices (bridges, loopback) have no "device" entry.
  for (const fs::path& device : entries(sysfs / "class" / "net"))
    if (fs::exists(device / "device") && first_line(device / "operstate") != "down") out.push_back(ethernet(device));
  for (const fs::path& device : entries(sysfs / "class" / "infiniband"))
    for (const fs::path& port : entries(device / "ports")) out.push_back(infiniband(device, port));
  return out;
}

std::vector<NicObservation> increases_between(const std::vector<NicObservation>& before,
                                              std::vector<NicObservation> after, double seconds) {
  for (NicObservation& nic : after) {
    nic.seconds = seconds;
    const auto was = std::ranges::find_if(before, [&](const NicObservation& n) { return n.name == nic.name; });
    if (was != before.end()) {
      nic.received_bytes = std::max(0.0, nic.received_bytes - was->received_bytes);
      nic.sent_bytes = std::max(0.0, nic.sent_bytes - was->sent_bytes);
      for (auto& [counter, value] : nic.errors)
        if (const auto then = was->errors.find(counter); then != was->errors.end())
          value = std::max<std::int64_t>(0, value - then->second);
    }
    std::erase_if(nic.errors, [](const auto& counter) { return counter.second == 0; });
  }
  return after;
}

}  // namespace wt
