// What a health check observed of a fleet, as data, so that judging can happen elsewhere and later. One JSON document,
// schema "windtunnel.health/1"; only names are required:
//   nodes[]     name
//     devices[] id, model, pci_bus, stress_s[], wrong_results, memory_Bps[], utilisation (0..1), sm_clock_MHz,
//               temperature_C, throttle[] (names of throttle_words()), ecc_double_bit, row_remap_failed
//     storage   write_Bps[], read_Bps[]
//     nics[]    name, kind (ethernet | infiniband), up, rail, speed_Bps, seconds, received_bytes, sent_bytes,
//               errors {counter: increase}
//     xids[]    code, pci_bus, text, nvswitch (true: an SXid)
//     not_understood {line of the driver: times}
//     failures[] texts: what could not be measured, and why
//   links[]     a, b (nodes), rail, bytes, seconds[], wrong_results: all-reduces of that payload between two nodes
//   training    see training.hpp
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/health/training.hpp"
#include "bench/health/xid.hpp"

namespace wt {

/// A GPU, or a core of a node without one. Devices of one `model` do the same work in the same check.
struct DeviceObservation {
  std::string id = {};                     ///< "GPU-604ac76c-...", "core 3"
  std::string model = {};                  ///< "NVIDIA H100 80GB HBM3"
  std::string pci_bus = {};                ///< "0000:3b:00", as in XID lines; "" where unknown
  std::vector<double> stress_s = {};       ///< one per repetition of the compute stress
  std::int64_t wrong_results = 0;          ///< repetitions of a product or copy that differ in some bit from the first
  std::vector<double> memory_Bps = {};     ///< copies; bytes read plus bytes written
  std::optional<double> utilisation = {};  ///< 0..1, by the driver's definition: a spinning kernel is busy
  std::optional<double> sm_clock_MHz = {}, temperature_C = {};
  std::vector<std::string> throttle = {};  ///< reasons during the check
  std::int64_t ecc_double_bit = 0;         ///< uncorrectable memory errors since the driver was loaded
  bool row_remap_failed = false;
};

struct StorageObservation {
  std::vector<double> write_Bps = {};  ///< including fsync
  std::vector<double> read_Bps = {};   ///< after the pages were dropped
};

struct NicObservation {
  std::string name = {};
  bool infiniband = false;
  bool up = true;
  std::string rail = {};                            ///< as in links[].rail; "" where unknown
  double speed_Bps = 0;                             ///< per direction; 0 = unknown
  double seconds = 0;                               ///< time between the two readings of the counters
  double received_bytes = 0, sent_bytes = 0;        ///< in that time
  std::map<std::string, std::int64_t> errors = {};  ///< increases in that time, without zeros
};

struct NodeObservation {
  std::string name;
  std::vector<DeviceObservation> devices;
  StorageObservation storage;
  std::vector<NicObservation> nics;
  std::vector<XidEvent> xids;
  std::map<std::string, std::int64_t> not_understood = {};  ///< KernelLog::not_understood
  std::vector<std::string> failures = {};                   ///< what could not be measured, and why: "rank 3: ..."
};

struct LinkObservation {
  std::string a, b;
  std::string rail = {};  ///< "" = over all rails at once
  std::int64_t bytes = 0;
  std::vector<double> seconds;
  std::int64_t wrong_results = 0;  ///< repetitions with a wrong sum
};

struct FleetObservation {
  std::vector<NodeObservation> nodes;
  std::vector<LinkObservation> links;
  std::optional<TrainingObservation> training;
};

nlohmann::json to_json(const FleetObservation& fleet);
/// Throws Error{usage} with origin and JSON pointer: unknown keys, no node, times and rates that are not positive,
/// shares outside 0..1, unknown throttle words, duplicate names of nodes or of a node's devices, links of unknown
/// nodes.
FleetObservation fleet_from_json(const nlohmann::json& document, const std::string& origin);
/// Merges several files (one per node) into a fleet. Throws as above, and where two files have the same node or both
/// have `training`.
FleetObservation read_fleet(const std::vector<std::filesystem::path>& files);

/// hw_slowdown, hw_thermal, hw_power_brake, sw_thermal (hardware protects itself); sw_power_cap, sync_boost,
/// application_clocks (settings); idle.
const std::vector<std::string>& throttle_words();
/// Whether the word is one of the first four.
bool is_hardware_throttle(const std::string& word);

}  // namespace wt
