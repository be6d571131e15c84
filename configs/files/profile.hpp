// A profile: measurements with a fingerprint of the machine that they were taken on, as one JSON document
// (schema "windtunnel.profile/1"). The trainer and the suites write it; calibrate, gate and reports read it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "configs/files/evidence.hpp"

namespace wt {

/// Times of one kernel or collective. `kernel` and the keys of `shape` are those of sim/program/work_item.hpp for
/// compute
struct Measurement {
  std::string kernel;
  std::string pass = "forward";  ///< forward | backward | "" where the kernel has no passes
  std::string dtype;             ///< fp32 | bf16 | ...
  std::map<std::string, std::int64_t> shape;
  std::string clock = "wall";     ///< wall | thread_cpu | device
  std::string unit = "s";         ///< unit of the samples
  bool smaller_is_better = true;  ///< direction, for the gate
  std::vector<double> samples;    ///< every sample, never only the aggregate
  /// Further values of the same runs, e.g. cpu_s. max_rel_error is the largest error of the result relative to the
  /// largest value of an fp64 reference; every timed kernel must have it.
  std::map<std::string, double> counters;
  /// Reasons for which the device was slowed down during the samples: hw_slowdown, sw_thermal, hw_thermal,
  /// hw_power_brake. Such times are kept, but the gate does not compare them.
  std::vector<std::string> throttled = {};
  std::string backend = {};  ///< the implementation that a library chose: "flash", "cudnn"
  Provenance evidence;

  /// "gemm/forward/fp32/k=256,m=512,n=256", with "/thread_cpu" appended for a clock other than wall. Stable across
  /// runs: the gate's key. Empty parts are left out.
  std::string name() const;
  /// Median of `samples`. Throws Error{usage} when there are none.
  double median() const;
  /// Adds the samples of a second measurement with the same name, and its `throttled`. Counters become means over the
  /// samples; those named max_ or min_ the maximum or minimum.
  void pool(const Measurement& other);
};

/// A benchmark that failed. It keeps its row in reports.
struct FailedMeasurement {
  std::string name;  ///< as Measurement::name()
  std::string error;
};

struct Profile {
  std::map<std::string, std::string> fingerprint;  ///< device, host, cores, libraries, commit, date
  std::vector<Measurement> measurements;
  std::vector<FailedMeasurement> failures = {};
};

/// The key "failures" is present only if a benchmark failed. Throws Error{usage} for a profile that could not be read
/// back: no samples, negative or non-finite values, a name used twice.
nlohmann::json to_json(const Profile& profile);
/// Strict. Throws Error{usage} with file, JSON pointer, found and allowed: unknown keys, wrong types, no samples,
/// negative or non-finite samples, a name used twice.
Profile profile_from_json(const nlohmann::json& document, const std::string& origin);
Profile read_profile(const std::filesystem::path& file);
/// 16 hex digits of a hash of the content; for a merged profile followed by the digests of its parts.
std::string digest(const Profile& profile);
/// Fact of a merged profile's fingerprint: the digests of its parts, separated by blanks.
constexpr const char* kMergedFrom = "run.merged_from";
/// Atomic; see configs/base/atomic_file.hpp.
void write_profile(const Profile& profile, const std::filesystem::path& file);

}  // namespace wt
