// How long something lasts, in the units of Composer's time strings: "40ba" batches, "2ep" epochs, "1_000sp" samples,
// "2e9tok" tokens, "0.1dur" of the run; a plain number is epochs. Seconds ("sec") and iterations ("iter") are refused:
// no number of batches follows from them.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace wt {

class YamlMap;

/// What a run's other keys say about its batches.
struct BatchSizes {
  std::int64_t global_batch = 0;  ///< sequences
  std::int64_t seq = 0;           ///< tokens of each
  /// Batches of an epoch; throws Error{usage} where nobody can say. May be empty: then epochs are refused.
  std::function<std::int64_t()> epoch = {};
  /// Sequences have fewer tokens than places, and only tokens count: then tokens are refused.
  bool padded = false;
};

struct Duration {
  double amount = 0;
  std::string unit = "ba";  ///< ba, ep, sp, tok or dur
  /// Throws Error{usage} "WHERE: found ..." for another unit, none, a negative or a broken number.
  static Duration parse(const std::string& text, const std::string& where);
};

/// Durations of a run in batches, as Composer's schedulers count them (optim/scheduler.py): a part of the run is a
/// whole number of its own unit, or of batches where that unit is epochs.
class RunClock {
 public:
  RunClock() = default;  ///< of a run that nothing is known of: batches alone
  RunClock(BatchSizes sizes, Duration whole) : sizes_(std::move(sizes)), whole_(std::move(whole)) {}
  /// In batches; a fraction where samples or tokens end inside of one. Throws Error{usage} naming `where` for epochs of
  /// unknown length.
  double batches(const Duration& duration, const std::string& where) const;
  /// Steps of the run: the last one reaches its end.
  std::int64_t steps(const std::string& where) const;

 private:
  BatchSizes sizes_;
  Duration whole_{1, "dur"};
};

/// A duration that must be a whole number of batches; `fallback` below 0: the key is required. Throws Error{usage}.
std::int64_t read_batches(YamlMap& map, const std::string& key, const RunClock& clock, std::int64_t fallback = -1);
/// One that need not.
double read_duration(YamlMap& map, const std::string& key, const RunClock& clock, double fallback);

/// Samples of the MDS data set in a folder, by its index.json. Throws Error{usage} naming `where`.
std::int64_t samples_of(const std::string& folder, const std::string& where);

}  // namespace wt
