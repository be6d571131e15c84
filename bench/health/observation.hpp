// What a health check saw of a fleet, as data: collecting writes it, judging reads it, and both can be done elsewhere
// and later. One JSON document, schema "windtunnel.health/1"; every field but names may be missing:
//   nodes[]     name
//     devices[] id, model, pci_bus, stress_s[], wrong_results, memory_Bps[], utilisation (0..1), sm_clock_MHz,
//               temperature_C, throttle[] (names of throttle_words()), ecc_double_bit, row_remap_failed
//     storage   write_Bps[], read_Bps[]
//     nics[]    name, kind (ethernet | infiniband), up, rail, speed_Bps, seconds, received_bytes, sent_bytes,
//               errors {counter: increase}
//     xids[]    code, pci_bus, text
//     failures[] why something of it could not be measured, in words
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
  std::string pci_bus = {};                ///< "0000:3b:00", which XID lines name; "" where not known
  std::vector<double> stress_s = {};       ///< one repetition of the compute stress each
  std::int64_t wrong_results = 0;          ///< repetitions of a product or copy that differ in some bit from the first
  std::vector<double> memory_Bps = {};     ///< copies; bytes read plus bytes written
  std::optional<double> utilisation = {};  ///< 0..1, as the driver counts it: a kernel that spins is busy
  std::optional<double> sm_clock_MHz = {}, temperature_C = {};
  std::vector<std::string> throttle = {};  ///< reasons that held while it was looked at
  std::int64_t ecc_double_bit = 0;         ///< uncorrectable memory errors since the driver was loaded
  bool row_remap_failed = false;
};

struct StorageObservation {
  std::vector<double> write_Bps = {};  ///< until fsync returned
  std::vector<double> read_Bps = {};   ///< with the pages dropped before
};

struct NicObservation {
  std::string name = {};
  bool infiniband = false;
  bool up = true;
  std::string rail = {};                            ///< as links[].rail; "" where not known
  double speed_Bps = 0;                             ///< a direction; 0 = not known
  double seconds = 0;                               ///< that the counters were watched
  double received_bytes = 0, sent_bytes = 0;        ///< meanwhile
  std::map<std::string, std::int64_t> errors = {};  ///< counters that rose meanwhile, and by how much
};

struct NodeObservation {
  std::string name;
  std::vector<DeviceObservation> devices;
  StorageObservation storage;
  std::vector<NicObservation> nics;
  std::vector<XidEvent> xids;
  std::vector<std::string> failures = {};  ///< why something of it could not be measured: "rank 3: ..."
};

struct LinkObservation {
  std::string a, b;
  std::string rail = {};  ///< "" = over all rails at once
  std::int64_t bytes = 0;
  std::vector<double> seconds;
  std::int64_t wrong_results = 0;  ///< repetitions whose sum was wrong somewhere
};

struct FleetObservation {
  std::vector<NodeObservation> nodes;
  std::vector<LinkObservation> links;
  std::optional<TrainingObservation> training;
};

nlohmann::json to_json(const FleetObservation& fleet);
/// Throws Error{usage} with origin and JSON pointer: unknown keys, no node, times and rates that are not positive,
/// shares outside 0..1, unknown throttle words, two devices of a node or two nodes of one name, links of unknown nodes.
FleetObservation fleet_from_json(const nlohmann::json& document, const std::string& origin);
/// Several files (a node each) are one fleet. Throws as above, and where two files name the same node or both training.
FleetObservation read_fleet(const std::vector<std::filesystem::path>& files);

/// hw_slowdown, hw_thermal, hw_power_brake, sw_thermal (hardware protects itself); sw_power_cap, sync_boost,
/// application_clocks (settings); idle.
const std::vector<std::string>& throttle_words();
/// The first four.
bool is_hardware_throttle(const std::string& word);

}  // namespace wt
