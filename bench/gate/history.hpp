// Profiles over months: a folder that git merges by itself. Every record is a file of its own that is written once,
// whole, and named by its content: two hosts, clones or processes that write at once never touch the same bytes, and
// writing a record again changes nothing.
//
//   runs/      a file a profile: a line for the run, then a line a benchmark
//   alerts/    what was raised and withdrawn, a file for each time that something was
//   accepted/  changes that somebody wanted, each with its reason
//
// All are JSON Lines. Kept of a profile are medians and quartiles, its fingerprint without facts of the run, commit,
// dates, and a hash in place of the host's name.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "configs/files/profile.hpp"
#include "configs/machine/fingerprint.hpp"

namespace wt {

/// What one run measured of one benchmark.
struct HistoryPoint {
  std::string run;       ///< of the profile, the same wherever its files lay
  std::string commit;    ///< "" where the profile does not say it
  std::string built;     ///< when the commit was made where that was known, else when it was measured; UTC, ISO 8601
  std::string measured;  ///< UTC, ISO 8601; "" where the profile does not say it
  std::string host;      ///< 8 hex digits that tell hosts apart
  double median = 0, low = 0, high = 0;  ///< of the samples; low and high are quartiles
  std::size_t samples = 0;
};

/// One benchmark in one environment.
struct HistorySeries {
  std::string benchmark, unit;
  bool smaller_is_better = true;
  std::string environment;           ///< name of `facts`: the device or processor and 8 hex digits
  Fingerprint facts;                 ///< what is_run_fact() does not hold for
  std::vector<HistoryPoint> points;  ///< in order of `built`, then `measured`
};

/// A change that is wanted: no alert, of this benchmark or of all ("").
struct Acceptance {
  std::string commit, benchmark, reason;
  std::string date;  ///< UTC, ISO 8601
};

/// Something that was said to people.
struct AlertRecord {
  bool withdrawn = false;
  std::string environment, benchmark;
  std::string run;             ///< of the first value at the new level
  std::string before, commit;  ///< last commit at the old level, first at the new one
  double ratio = 1;            ///< of the levels, new over old
  std::string reason;          ///< why it was withdrawn
  std::string by, date;        ///< the newest run when it was said; when it was recorded, "" before that
};

struct History {
  std::vector<HistorySeries> series;  ///< in order of benchmark and environment
  std::vector<Acceptance> accepted;
  std::vector<AlertRecord> alerts;  ///< in the order in which they were said
  std::size_t runs = 0;
  std::size_t torn = 0;  ///< last lines that were cut off, and are left out
};

/// What of a profile goes into a history.
struct HistoryRun {
  std::string id, commit, built, measured, host, environment;
  Fingerprint facts;
  std::vector<std::pair<Measurement, HistoryPoint>> values;
  std::size_t left_out = 0;  ///< benchmarks that were not measured, failed, or whose device was throttled
  std::map<std::string, std::string> failed;  ///< those that failed, and why
};

/// `commit`: in place of the profile's where not empty; git is asked for its date in the repository around `place`.
/// Throws Error{usage} where nothing was measured, or neither git nor the profile has a date.
HistoryRun history_run(const Profile& profile, const std::string& commit = "",
                       const std::filesystem::path& place = ".");

/// Writes the run into `folder`, which is created. False where its file was there already.
bool record_run(const HistoryRun& run, const std::filesystem::path& folder);
void record_alerts(const std::vector<AlertRecord>& alerts, const std::filesystem::path& folder);
void record_acceptance(const Acceptance& accepted, const std::filesystem::path& folder);

/// A run that two files tell of counts once. A last line that was cut off is left out and counted; every other broken
/// line, an unknown key and a missing folder are Error{usage} naming file and line.
History read_history(const std::filesystem::path& folder);

/// When git says, in the repository around `folder`, that `commit` was made: UTC, ISO 8601. "" where it does not know.
std::string commit_date(const std::string& commit, const std::filesystem::path& folder);
/// Whether one is the other, or an abbreviation of it of seven digits or more.
bool same_commit(const std::string& a, const std::string& b);

}  // namespace wt
