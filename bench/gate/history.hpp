// Profiles over months, in a folder that git can merge without conflicts. Every record is a file of its own, written
// once, atomically, and named by its content. Hosts, clones or processes that write at the same time never touch the
// same bytes, and writing a record twice changes nothing.
//
//   runs/      one file per profile: a line for the run, then a line per benchmark
//   alerts/    alerts that were raised or withdrawn, one file per occasion
//   accepted/  intended changes, each with its reason
//
// All files are JSON Lines. A profile's record has medians and quartiles, its fingerprint without run facts, commit,
// dates, and a hash instead of the host's name.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "configs/files/profile.hpp"
#include "configs/machine/fingerprint.hpp"

namespace wt {

/// One benchmark's result in one run.
struct HistoryPoint {
  std::string run;                       ///< id of the profile, independent of its files' location
  std::string commit;                    ///< "" where the profile has none
  std::string built;                     ///< date of the commit if known, otherwise of the measurement; UTC, ISO 8601
  std::string measured;                  ///< UTC, ISO 8601; "" where the profile has no date
  std::string host;                      ///< 8 hex digits of a hash of the host
  double median = 0, low = 0, high = 0;  ///< of the samples; low and high are quartiles
  std::size_t samples = 0;
};

/// One benchmark in one environment.
struct HistorySeries {
  std::string benchmark, unit;
  bool smaller_is_better = true;
  std::string environment;           ///< name of `facts`: the device or processor and 8 hex digits
  Fingerprint facts;                 ///< without run facts (is_run_fact)
  std::vector<HistoryPoint> points;  ///< in order of `built`, then `measured`
};

/// An intended change, for which no alert is raised: of this benchmark or of all ("").
struct Acceptance {
  std::string commit, benchmark, reason;
  std::string date;  ///< UTC, ISO 8601
};

/// An alert that was raised or withdrawn.
struct AlertRecord {
  bool withdrawn = false;
  std::string environment, benchmark;
  std::string run;             ///< of the first value at the new level
  std::string before, commit;  ///< last commit at the old level, first at the new one
  double ratio = 1;            ///< of the levels, new over old
  std::string reason;          ///< of a withdrawal
  std::string by, date;        ///< the newest run at that time; the date of the record, "" before it is written
};

struct History {
  std::vector<HistorySeries> series;  ///< in order of benchmark and environment
  std::vector<Acceptance> accepted;
  std::vector<AlertRecord> alerts;  ///< in the order of their occurrence
  std::size_t runs = 0;
  std::size_t torn = 0;  ///< truncated last lines, which are ignored
};

/// The part of a profile that a history keeps.
struct HistoryRun {
  std::string id, commit, built, measured, host, environment;
  Fingerprint facts;
  std::vector<std::pair<Measurement, HistoryPoint>> values;
  std::size_t left_out = 0;                   ///< benchmarks that were not measured, failed, or were throttled
  std::map<std::string, std::string> failed;  ///< failed benchmarks and their errors
};

/// `commit` replaces the profile's commit unless it is empty. Its date comes from git, in the repository around
/// `place`. Throws Error{usage} where nothing was measured, or neither git nor the profile has a date.
HistoryRun history_run(const Profile& profile, const std::string& commit = "",
                       const std::filesystem::path& place = ".");

/// Writes the run to `folder`, which is created. Returns false where its file already exists.
bool record_run(const HistoryRun& run, const std::filesystem::path& folder);
void record_alerts(const std::vector<AlertRecord>& alerts, const std::filesystem::path& folder);
void record_acceptance(const Acceptance& accepted, const std::filesystem::path& folder);

/// A run in two files counts once. Truncated last lines are skipped and counted. Throws Error{usage} with file and line
/// for every other broken line, an unknown key and a missing folder.
History read_history(const std::filesystem::path& folder);

/// The date of `commit` by git, in the repository around `folder`: UTC, ISO 8601. "" for an unknown commit.
std::string commit_date(const std::string& commit, const std::filesystem::path& folder);
/// Whether both are equal, or one is an abbreviation of the other with seven digits or more.
bool same_commit(const std::string& a, const std::string& b);

}  // namespace wt
