// A profile: measurements with a fingerprint of the machine they came from, as one JSON document
// (schema "windtunnel.profile/1"). Written by the trainer and the suites, read by calibrate, gate and reports.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "configs/files/evidence.hpp"

namespace wt {

/// One thing that was timed. `kernel` and the keys of `shape` are those of sim/program/work_item.hpp for compute
/// ("gemm": m, n, k), of the collective for communication ("all_gather": bytes, ranks, nodes), or a suite's own.
struct Measurement {
  std::string kernel;
  std::string pass = "forward";  ///< forward | backward | "" where there is no such thing
  std::string dtype;             ///< fp32 | bf16 | ...
  std::map<std::string, std::int64_t> shape;
  std::string clock = "wall";     ///< wall | thread_cpu | device
  std::string unit = "s";         ///< unit of the samples
  bool smaller_is_better = true;  ///< direction, for the gate
  std::vector<double> samples;    ///< every sample, never only the aggregate
  /// Further values of the same runs, e.g. cpu_s; max_rel_error is the largest error of the result over the largest
  /// value of a reference in fp64, which every kernel that we time must have.
  std::map<std::string, double> counters;
  /// Why the device was slowed down while samples were taken: hw_slowdown, sw_thermal, hw_thermal, hw_power_brake. Such
  /// times are kept but not those of the device as it should be: the gate does not compare them.
  std::vector<std::string> throttled = {};
  std::string backend = {};  ///< whose kernel it was where a library chooses among several: "flash", "cudnn"
  Provenance evidence;

  /// "gemm/forward/fp32/k=256,m=512,n=256", and "/thread_cpu" behind it for a clock other than wall: stable across
  /// runs, the gate's key. Empty parts are left out.
  std::string name() const;
  /// Of `samples`; the mean of the middle two for an even count. Throws Error{usage} when there is none.
  double median() const;
  /// Takes over the samples of the same thing measured again, and what slowed the device meanwhile. Counters become
  /// means over the samples, those named max_ or min_ the largest or least.
  void pool(const Measurement& other);
};

/// A benchmark that was to be measured and failed: it keeps its row.
struct FailedMeasurement {
  std::string name;  ///< as Measurement::name()
  std::string error;
};

struct Profile {
  std::map<std::string, std::string> fingerprint;  ///< device, host, cores, libraries, commit, date
  std::vector<Measurement> measurements;
  std::vector<FailedMeasurement> failures = {};
};

/// Key "failures" is there only where there are some. Throws Error{usage} for what could not be read back: no samples,
/// negative or non-finite values, a name used twice.
nlohmann::json to_json(const Profile& profile);
/// Strict: unknown keys, wrong types, no samples, negative or non-finite samples and two measurements of one name are
/// Error{usage}, naming file, JSON pointer, found and allowed.
Profile profile_from_json(const nlohmann::json& document, const std::string& origin);
Profile read_profile(const std::filesystem::path& file);
/// 16 hex digits that tell one profile's content from another's; of a merged one, then those of its parts.
std::string digest(const Profile& profile);
/// Fact of a merged profile's fingerprint: the digests of the profiles that it was made of, a blank between two.
constexpr const char* kMergedFrom = "run.merged_from";
/// Whole or not at all; see configs/files/atomic_file.hpp.
void write_profile(const Profile& profile, const std::filesystem::path& file);

}  // namespace wt
