// The gate compares a new profile with a base: one verdict per benchmark, one exit status. A change fails only if it is
// statistically significant and large enough to matter. The gate says "inconclusive" where the samples do not suffice,
// and refuses to compare different machines or software.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bench/formats/google_benchmark.hpp"
#include "configs/files/profile.hpp"
#include "configs/machine/fingerprint.hpp"

namespace wt {

enum class Verdict {
  slower,
  failed,
  missing,
  incomparable,
  inconclusive,
  below_floor,  ///< certainly worse, by less than the floors: no finding, but not the same
  faster,
  fresh,
  same
};                                       // in the order of reports
std::string to_string(Verdict verdict);  ///< "new", "slower, below the floor", otherwise the enumerator's name

/// The order in time of both sides' processes, by the dates in their fingerprints. Machines drift: measuring the whole
/// base first causes many more false alarms.
enum class Order { in_turns, base_then_new, unknown, in_blocks /* in random order, by gate run */ };
/// Share of gate runs that fail although both sides ran the same code, with 9 samples a side: the result of `windtunnel
/// gate selftest` on recorded H100 timings.
constexpr double kFalseAlarmsInTurns = 0.003, kFalseAlarmsBaseThenNew = 0.167;

struct GateOptions {
  double alpha = 0.01;                     ///< limit of the Benjamini-Hochberg adjusted p-value
  double relative_floor = 0.03;            ///< smaller relative changes of the median are never a finding
  double absolute_floor_s = 0;             ///< smaller changes in seconds are never a finding (only units of time)
  std::size_t min_samples = 4;             ///< per side; with fewer: inconclusive
  std::size_t separation_samples = 7;      ///< per side; from here on, full separation is significant (p = 2/C(14,7))
  bool allow_missing = false;              ///< a missing benchmark is no finding
  bool strict = false;                     ///< inconclusive benchmarks give exit status 3
  std::vector<std::string> ignored_facts;  ///< fingerprint keys that may differ
};

/// One benchmark. Numbers that do not apply to its verdict are empty (0 samples, no value).
struct GateRow {
  std::string name, unit;
  bool smaller_is_better = true;
  Verdict verdict = Verdict::same;
  std::string reason;  ///< one clause: the reason of the verdict, with the numbers that decided it
  std::size_t base_n = 0, current_n = 0;
  std::optional<double> base_median, current_median;
  std::optional<double> delta;                  ///< of the medians, current - base, in `unit`
  std::optional<double> ratio;                  ///< current / base: of the medians, in blocks of the blocks' pairs
  std::optional<double> ratio_low, ratio_high;  ///< Hodges-Lehmann, 95 %
  std::optional<double> p, p_adjusted;          ///< exact two-sided U test; adjusted over all tested benchmarks
  bool failed_before = false;                   ///< a failed benchmark also failed in the base
  bool separated = false;                       ///< all samples of one side are beyond all samples of the other
  /// For inconclusive ones: about how many samples per side would narrow the interval to the floor.
  std::optional<std::size_t> samples_needed;
};

struct GateResult {
  GateOptions options;
  std::vector<FingerprintDifference> differences;  ///< if not empty, nothing was compared
  Fingerprint base_fingerprint, current_fingerprint;
  Order order = Order::unknown;
  std::string command;         ///< for gate run: the command that measures both sides again
  std::vector<GateRow> rows;   ///< sorted by sort_rows()
  std::size_t unmeasured = 0;  ///< numbers that neither side measured (derived, published): not judged, without rows
  std::size_t count(Verdict verdict) const;
  /// 3 when the fingerprints differ; otherwise 1 with a slower, failed or (unless allowed) missing benchmark; otherwise
  /// 3 when nothing could be compared, or with an incomparable benchmark, or an inconclusive one under `strict`; else
  /// 0.
  int exit_status() const;
  /// The result in one sentence. "No regression" is only said where some benchmark could be decided.
  std::string sentence() const;
  /// What this order of measuring means for false alarms.
  std::string order_sentence() const;
};

/// A benchmark is slower (faster) when its change is significant, worse (better) by more than relative_floor, and
/// larger than absolute_floor_s. Significant means adjusted p < alpha, or full separation with enough samples. Where
/// the 95 % interval of the ratio excludes changes beyond the floors in both directions, it is below the floor if it is
/// significantly worse, else the same. Otherwise it is inconclusive. Incomparable: different unit or direction, numbers
/// that only one side measured, a throttled device, or different fingerprints (then all benchmarks). Failed: the new
/// profile reports an error; no finding if the base reports one, too. Measurements are matched by Measurement::name().
/// "Slower" means "worse": for tokens/s, a smaller number. Throws Error{usage} for options out of range.
GateResult compare(const Profile& base, const Profile& current, const GateOptions& options = {});

/// How many times worse a row would be at `ratio` times the base: above 1 is worse, for either direction.
double worsening(const GateRow& row, double ratio);
/// Whether a change to `ratio` times the base would be large enough to matter.
bool beyond_floors(const GateRow& row, double ratio, const GateOptions& options);
/// By verdict, then the worst first.
void sort_rows(std::vector<GateRow>& rows);

/// Reads a profile, or the JSON of Google Benchmark or nvbench. Several files (processes) are merged. `clock`: which of
/// Google Benchmark's times; the others have one each, so that cpu is refused for them (Error{usage}).
Profile read_gate_input(const std::vector<std::filesystem::path>& files,
                        GoogleBenchmarkClock clock = GoogleBenchmarkClock::real);

}  // namespace wt
