// The gate: does the new profile show a regression against the base? One verdict per benchmark, one exit status.
// It fails a change only on what is statistically certain and large enough to matter, says "inconclusive" where the
// samples cannot tell, and refuses to compare what was measured on different machines or software.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "configs/files/profile.hpp"
#include "configs/machine/fingerprint.hpp"

namespace wt {

enum class Verdict {
  slower,
  failed,
  missing,
  incomparable,
  inconclusive,
  faster,
  fresh,
  same
};                                       // in the order of reports
std::string to_string(Verdict verdict);  ///< "new" for fresh, else the enumerator's name

/// How the processes of the two sides lay in time, by the dates of their fingerprints. Machines drift: a base that was
/// measured before all of the new side fails far more often for nothing.
enum class Order { in_turns, base_then_new, unknown, in_blocks /* in random order, by gate run */ };
/// Share of gate runs that fail although both sides ran the same code, 9 samples a side: what `windtunnel gate
/// selftest` says of recorded H100 timings.
constexpr double kFalseAlarmsInTurns = 0.003, kFalseAlarmsBaseThenNew = 0.167;

struct GateOptions {
  double alpha = 0.01;                 ///< for the Benjamini-Hochberg adjusted p-value
  double relative_floor = 0.03;        ///< a smaller change of the median is never a finding
  double absolute_floor_s = 5e-6;      ///< nor is a smaller one in seconds (measurements in units of time only)
  std::size_t min_samples = 4;         ///< a side; below it: inconclusive
  std::size_t separation_samples = 7;  ///< a side; from here on full separation counts as significant (p = 2/C(14,7))
  bool allow_missing = false;          ///< a benchmark that vanished is a finding, unless allowed
  bool strict = false;                 ///< inconclusive benchmarks give exit status 3
  std::vector<std::string> ignored_facts;  ///< fingerprint keys that may differ
};

/// One benchmark. Numbers that do not apply to its verdict are empty (0 samples, no value).
struct GateRow {
  std::string name, unit;
  bool smaller_is_better = true;
  Verdict verdict = Verdict::same;
  std::string reason;  ///< one clause: why this verdict, with the numbers that decided
  std::size_t base_n = 0, current_n = 0;
  std::optional<double> base_median, current_median;
  std::optional<double> delta;                  ///< of the medians, current - base, in `unit`
  std::optional<double> ratio;                  ///< of the medians, current / base; in blocks: of both sides in them
  std::optional<double> ratio_low, ratio_high;  ///< Hodges-Lehmann, 95 %
  std::optional<double> p, p_adjusted;          ///< exact two-sided U test; over all benchmarks tested
  bool failed_before = false;                   ///< of a failed one: in the base, too
  bool separated = false;                       ///< every sample of one side lies beyond every one of the other
  /// For inconclusive ones: about how many samples a side would narrow the interval to the floor.
  std::optional<std::size_t> samples_needed;
};

struct GateResult {
  GateOptions options;
  std::vector<FingerprintDifference> differences;  ///< not empty: nothing was compared
  Fingerprint base_fingerprint, current_fingerprint;
  Order order = Order::unknown;
  std::string command;         ///< what measures both sides and compares them again; of gate run
  std::vector<GateRow> rows;   ///< worst first: by verdict, then by how much worse
  std::size_t unmeasured = 0;  ///< numbers that no side measured (derived from others, published): not judged, no rows
  std::size_t count(Verdict verdict) const;
  /// 3 when the fingerprints differ; else 1 with a slower, failed or (unless allowed) missing benchmark; else 3 when
  /// nothing could be compared, with an incomparable one, or an inconclusive one under `strict`; else 0.
  int exit_status() const;
  /// The answer in one sentence.
  std::string sentence() const;
  /// What measuring in this order does to the false alarms.
  std::string order_sentence() const;
};

/// A benchmark is slower (faster) when its change is significant, worse (better) by more than relative_floor, and by
/// more than absolute_floor_s. Significant: adjusted p < alpha, or full separation with enough samples. It is the same
/// when the 95 % interval of the ratio excludes a worsening and an improvement beyond the floors; else it is
/// inconclusive. Incomparable: another unit or direction, numbers that one side alone measured, a device that was
/// throttled, or other fingerprints (then all of them). Failed: the new profile says that it could not be measured; no
/// finding where the base says so, too. Measurements are matched by Measurement::name(). "Slower" is "worse": for
/// tokens/s it is a smaller number. Throws Error{usage} for options out of range.
GateResult compare(const Profile& base, const Profile& current, const GateOptions& options = {});

/// How many times worse a row would be at `ratio` times the base: above 1 is worse, whichever direction is the better.
double worsening(const GateRow& row, double ratio);
/// Whether a change of the row to `ratio` times the base would be large enough to matter.
bool beyond_floors(const GateRow& row, double ratio, const GateOptions& options);
/// Worst first: by verdict, then by how much worse.
void sort_rows(std::vector<GateRow>& rows);

/// Reads a profile, Google Benchmark's JSON or nvbench's, whichever it is; several files (processes) are merged.
Profile read_gate_input(const std::vector<std::filesystem::path>& files);

}  // namespace wt
