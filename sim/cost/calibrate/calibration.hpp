// Steps of calibrate(), each filling its part of the result.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/calibrate/calibrate.hpp"

namespace wt::detail {

/// A measurement and the profile's fingerprint it came with.
struct Sample {
  const Profile* profile;
  Measurement measurement;
  std::vector<std::size_t> joins = {};  ///< where the samples of further profiles begin
};

struct Calibration {
  MachineData data;
  std::vector<ClassResidual> residuals;
  std::vector<std::string> notes;
};

/// Relative half width of an 80 % interval where fewer than four points say anything about it.
constexpr double kSparseHalfWidth = 0.25;

void calibrate_items(const std::vector<Sample>& samples, Calibration& out);
/// Needs the items.
void calibrate_ops(const std::vector<Sample>& samples, Calibration& out);
void calibrate_collectives(const std::vector<Sample>& samples, Calibration& out);

inline constexpr const char* kCheckpointWrite = "checkpoint_write";
inline constexpr const char* kCheckpointRead = "checkpoint_read";
/// Of a save's files (bench storage).
bool is_storage(const Measurement& m);
/// What bench storage --to times beside a store: the local disk, and the client alone. No plan asks for them.
bool is_beside_storage(const Measurement& m);
/// Address of the object store that a row of storage is of: its backend, else the profile's fact "run.store"; "" = a
/// file system.
std::string store_of(const Profile& profile, const Measurement& m);
/// Samples of storage alone. Reads with counter cold 0 are left out, and writes where every read is one.
void calibrate_storage(const std::vector<Sample>& samples, Calibration& out);

/// What a measurement of this kernel tells the time of; "send_recv" (every rank to the next one) that of a message.
std::optional<OpKind> collective_kind(const std::string& kernel);

/// Residual row from measured and predicted seconds; held_out may be empty.
ClassResidual residual_row(std::string name, std::string how, const std::vector<double>& measured,
                           const std::vector<double>& predicted, const std::vector<double>& held_out_ratios);
/// shape[key]; Error{usage} naming the measurement, the key and the keys there are.
std::int64_t shape_value(const Measurement& m, const std::string& key);
/// 80 % interval of a ratio: its quantiles, never excluding 1; +- kSparseHalfWidth below four values.
std::pair<double, double> ratio_interval(const std::vector<double>& ratios);

}  // namespace wt::detail
