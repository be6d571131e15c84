// The contents of a machine model as plain data: measured times, fits, op factors and collectives. calibrate() makes
// it, machine.json keeps it, MachineModel reads it. All times are in seconds, of one rank.
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/storage_rates.hpp"
#include "sim/cost/collectives/collective_estimator.hpp"
#include "sim/cost/ops/op_cost.hpp"

namespace wt {

/// A shape without its rows. `rows` is the size that varies with batch and routing.
struct ItemKey {
  Kernel kernel = Kernel::copy;
  Pass pass = Pass::forward;
  Precision precision = Precision::fp32;
  std::array<std::int64_t, 4> dims{};
  auto operator<=>(const ItemKey&) const = default;
};

struct TimePoint {
  double rows = 0;
  double seconds = 0;            ///< median of the samples
  double low_s = 0, high_s = 0;  ///< 80 % interval of the samples
  Evidence evidence = Evidence::assumed;
  std::string source;
  std::optional<Evidence> root = {};  ///< evidence of the measurement behind it (fp16 for bf16); none = evidence
};

/// The class of items that one fit covers.
struct ClassKey {
  Kernel kernel = Kernel::copy;
  Pass pass = Pass::forward;
  Precision precision = Precision::fp32;
  auto operator<=>(const ClassKey&) const = default;
};
std::string to_string(const ClassKey& key);  ///< "gemm/forward/bf16"

/// seconds = launch + compute + memory, or launch + max(compute, memory): the form with the smaller residual. launch =
/// launch_s * launches, compute = s_per_flop * flops + s_per_wave_flop * (flops of full waves of tiles), memory =
/// s_per_byte * bytes. A grouped product has one launch per group, everything else one.
struct KernelFit {
  bool overlap = false;  ///< max instead of sum
  double launch_s = 0, s_per_flop = 0, s_per_wave_flop = 0, s_per_byte = 0;
  double low_ratio = 0, high_ratio = 0;              ///< 80 % interval of measured over predicted, on left-out shapes
  double table_low_ratio = 0, table_high_ratio = 0;  ///< the same for the staircase, on left-out points
  std::int64_t points = 0;
  Evidence evidence = Evidence::assumed;  ///< the weakest of its points
  std::optional<Evidence> root = {};      ///< the weakest root of its points; none = evidence
};

struct OpKey {
  Action action = Action::load_batch;
  Direction direction = Direction::forward;
  Group group = Group::none;
  auto operator<=>(const OpKey&) const = default;
};
std::string to_string(const OpKey& key);  ///< "attention.fwd/dense"

/// seconds of an op = overhead_s + factor * (sum of its items' times), from traces of training runs.
struct OpFactor {
  double factor = 1;
  double overhead_s = 0;
  double low_ratio = 1, high_ratio = 1;  ///< 80 % interval of measured over predicted
  std::int64_t points = 0;
  Evidence evidence = Evidence::assumed;
  std::string source;
};

/// Measurements of collectives: fits for ranks that communicate by CPU, points for GPUs.
struct CollectiveData {
  std::vector<CpuCollective> cpu;
  CollectiveMachine machine;  ///< on which the points were measured
  std::vector<CollectivePoint> points;
  bool empty() const { return cpu.empty() && points.empty(); }
};

struct MachineData {
  std::map<std::string, std::string> fingerprint;  ///< of the profiles it was calibrated on
  bool synchronous_host = false;
  bool allow_assumed = false;        ///< use a roofline for kernels that were not measured
  std::int64_t row_tile = 1;         ///< rows of a product are rounded up to this: 128 on GPUs, 1 on CPUs
  std::int64_t multiprocessors = 0;  ///< 0 = no wave quantisation
  std::map<ItemKey, std::vector<TimePoint>> table;  ///< rows ascending, each once
  std::map<ClassKey, KernelFit> fits;
  std::map<OpKey, OpFactor> ops;
  CollectiveData collectives;
  CommunicationSlowdown communication_slowdown;
  std::map<std::int64_t, double> crowding;  ///< MachineTraits::crowding
  double variation = 0;                     ///< MachineTraits::variation, from traces
  std::vector<StorageRates> storage;        ///< one entry per store of checkpoints
  /// Whether only storage was measured. Such data cannot time a step.
  bool storage_only() const { return table.empty() && fits.empty() && ops.empty() && collectives.empty(); }
};

/// Schema "windtunnel.machine/2".
nlohmann::json to_json(const MachineData& data);
/// Strict, as profile_from_json. Throws Error{usage} with file, JSON pointer, found and allowed values.
MachineData machine_from_json(const nlohmann::json& document, const std::string& origin);
MachineData read_machine(const std::filesystem::path& file);
/// Writes the file atomically.
void write_machine(const MachineData& data, const std::filesystem::path& file);

}  // namespace wt
