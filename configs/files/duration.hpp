// Durations in the units of Composer's time strings: "40ba" batches, "2ep" epochs, "1_000sp" samples, "2e9tok" tokens,
// "0.1dur" of the run; a plain number is epochs. Seconds ("sec") and iterations ("iter") are refused, because they do
// not convert to batches.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace wt {

class YamlMap;

/// The sizes that convert durations to batches.
struct BatchSizes {
  std::int64_t global_batch = 0;  ///< sequences
  std::int64_t seq = 0;           ///< tokens of each
  /// Batches of an epoch; throws Error{usage} where that is unknown. Empty: epochs are refused.
  std::function<std::int64_t()> epoch = {};
  /// Sequences are padded and only real tokens count: tokens are refused.
  bool padded = false;
};

struct Duration {
  double amount = 0;
  std::string unit = "ba";  ///< ba, ep, sp, tok or dur
  /// Throws Error{usage} "WHERE: found ..." for another unit, none, a negative or a broken number.
  static Duration parse(const std::string& text, const std::string& where);
};

/// Converts durations of a run to batches, as Composer's schedulers do (optim/scheduler.py): a part of the run ("dur")
/// is rounded to a whole number of the run's own unit, or to batches where that unit is epochs.
class RunClock {
 public:
  RunClock() = default;  ///< converts batches only
  RunClock(BatchSizes sizes, Duration whole) : sizes_(std::move(sizes)), whole_(std::move(whole)) {}
  /// The number of batches; a fraction where samples or tokens end inside one. Throws Error{usage} with `where` for
  /// epochs of unknown length.
  double batches(const Duration& duration, const std::string& where) const;
  /// Steps of the whole run, rounded up.
  std::int64_t steps(const std::string& where) const;

 private:
  BatchSizes sizes_;
  Duration whole_{1, "dur"};
};

/// Reads a whole number of batches. `fallback` below 0: the key is required. Throws Error{usage}.
std::int64_t read_batches(YamlMap& map, const std::string& key, const RunClock& clock, std::int64_t fallback = -1);
/// Reads a number of batches that may have a fraction.
double read_duration(YamlMap& map, const std::string& key, const RunClock& clock, double fallback);

/// Samples of the MDS data set in a folder, from its index.json. Throws Error{usage} with `where`.
std::int64_t samples_of(const std::string& folder, const std::string& where);

}  // namespace wt
