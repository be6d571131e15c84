// Steps of calibrate(), each filling its part of the result.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/calibrate/calibrate.hpp"

namespace wt::detail {

/// A measurement and the profile that it came from.
struct Sample {
  const Profile* profile;
  Measurement measurement;
  std::vector<std::size_t> joins = {};  ///< indices where samples of further profiles begin
};

struct Calibration {
  MachineData data;
  std::vector<ClassResidual> residuals;
  std::vector<std::string> notes;
};

/// Relative half width of an 80 % interval if there are fewer than four points.
constexpr double kSparseHalfWidth = 0.25;

void calibrate_items(const std::vector<Sample>& samples, Calibration& out);
/// Needs the results of calibrate_items.
void calibrate_ops(const std::vector<Sample>& samples, Calibration& out);
void calibrate_collectives(const std::vector<Sample>& samples, Calibration& out);

inline constexpr const char* kCheckpointWrite = "checkpoint_write";
inline constexpr const char* kCheckpointRead = "checkpoint_read";
/// Whether it is the time of a save's files (bench storage).
bool is_storage(const Measurement& m);
/// Whether bench storage --to measured it for comparison with a store: the local disk, or the client alone. Plans do
/// not use it.
bool is_beside_storage(const Measurement& m);
/// The object store of a storage measurement: its backend, else the profile's fact "run.store". "" = a file system.
std::string store_of(const Profile& profile, const Measurement& m);
/// Takes samples of storage only. Reads with counter cold = 0 are left out. If all reads of a store are such, its
/// writes are left out, too.
void calibrate_storage(const std::vector<Sample>& samples, Calibration& out);

/// The collective that this kernel measures. "send_recv" (every rank sends to the next) measures a message.
std::optional<OpKind> collective_kind(const std::string& kernel);

/// Residual row from measured and predicted seconds; held_out_ratios may be empty.
ClassResidual residual_row(std::string name, std::string how, const std::vector<double>& measured,
                           const std::vector<double>& predicted, const std::vector<double>& held_out_ratios);
/// shape[key]. Throws Error{usage} with the measurement, the missing key and the keys that it has.
std::int64_t shape_value(const Measurement& m, const std::string& key);
/// 80 % interval of ratios: their quantiles, extended to include 1. 1 +- kSparseHalfWidth for fewer than four ratios.
std::pair<double, double> ratio_interval(const std::vector<double>& ratios);

}  // namespace wt::detail
