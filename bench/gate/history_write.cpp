// Writes records of a history as JSON Lines, in files named by their content.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <nlohmann/json.hpp>

#include "bench/gate/history.hpp"
#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/hash.hpp"
#include "configs/base/json_members.hpp"
#include "configs/base/lookup.hpp"
#include "configs/base/process.hpp"
#include "configs/base/statistics.hpp"
#include "configs/base/text.hpp"

namespace wt {

using nlohmann::json;

WT_TO_JSON(AlertRecord, environment, benchmark, run, before, commit, ratio, reason, by, date)
WT_TO_JSON(Acceptance, commit, benchmark, reason, date)

namespace {

std::string short_hash(const std::string& text) { return fmt::format("{:016x}", hash_of(text)).substr(0, 8); }

/// "nvidia-h100-80gb-hbm3-1a2b3c4d": for people, and for file names.
std::string environment_name(const Fingerprint& facts) {
  std::string all, name;
  for (const auto& [key, value] : facts) all += fmt::format("{}={}\n", key, value);
  for (char c : lower(value_or(facts, facts.count("device") > 0 ? "device" : "cpu_model")))
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      name += c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  name = name.substr(0, 40);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return fmt::format("{}-{}", name.empty() ? "machine" : name, short_hash(all));
}

/// The first of a merged profile's dates ("a + b"), converted to UTC: Google Benchmark writes local times with their
/// offset, but dates are compared as text. Other text is returned unchanged.
std::string first_of(const std::string& dates) {
  std::string date = dates.substr(0, dates.find(" + "));
  std::tm local{};
  const char* rest = strptime(date.c_str(), "%Y-%m-%dT%H:%M:%S%z", &local);
  if (rest == nullptr || *rest != '\0') return date;
  const long east_s = local.tm_gmtoff;  // timegm() resets it to 0
  const std::time_t utc = timegm(&local) - east_s;
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(utc));
}

/// A hash of the measurements, independent of the location of their files.
std::string run_id(Profile profile) {
  for (Measurement& m : profile.measurements) m.evidence.source.clear();
  profile.fingerprint.erase(kMergedFrom);
  return digest(profile);
}

/// `date` is reduced to characters for file names, so that a folder lists records in order.
bool write_record(const std::filesystem::path& folder, const std::string& date, const std::string& lines) {
  std::filesystem::create_directories(folder);
  std::string day;
  for (char c : date)
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) day += c;
  const auto file = folder / fmt::format("{}-{:016x}.jsonl", day.substr(0, 14), hash_of(lines));
  // A file with this name has these bytes, unless it was truncated: then it is written again.
  std::error_code absent;
  if (std::filesystem::file_size(file, absent) == lines.size() && !absent) return false;
  write_file_atomically(file, lines);
  return true;
}

}  // namespace

HistoryRun history_run(const Profile& profile, const std::string& commit, const std::filesystem::path& place) {
  HistoryRun run;
  const Fingerprint& facts = profile.fingerprint;
  run.id = run_id(profile);
  run.commit = commit.empty() ? value_or(facts, "commit") : commit;
  run.measured = first_of(value_or(facts, "date"));
  run.built = commit_date(run.commit, place);
  if (run.built.empty()) run.built = run.measured;
  if (run.built.empty())
    throw_usage(
        "gate record: found no date in the profile and none of its commit, allowed a run that has a place in the "
        "history; give the commit with --commit inside its repository");
  if (!value_or(facts, "host").empty()) run.host = short_hash(value_or(facts, "host"));
  for (const auto& [key, value] : facts)
    if (!is_run_fact(key)) run.facts[key] = value;
  run.environment = environment_name(run.facts);
  for (const FailedMeasurement& f : profile.failures) run.failed.emplace(f.name, f.error);
  run.left_out = run.failed.size();
  for (const Measurement& m : profile.measurements) {
    if (run.failed.count(m.name()) > 0) continue;
    if (m.evidence.kind != Evidence::measured || !m.throttled.empty()) {
      ++run.left_out;
      continue;
    }
    HistoryPoint point{run.id, run.commit, run.built, run.measured, run.host, m.median()};
    point.low = quantile(m.samples, 0.25);
    point.high = quantile(m.samples, 0.75);
    point.samples = m.samples.size();
    run.values.emplace_back(m, point);
  }
  if (run.values.empty())
    throw_usage(
        "gate record: found no benchmark that was measured and not throttled, allowed at least one; record a profile "
        "that measured something");
  return run;
}

bool record_run(const HistoryRun& run, const std::filesystem::path& folder) {
  const json header = {{"schema", "windtunnel.gate-history/1"},
                       {"run", run.id},
                       {"commit", run.commit},
                       {"built", run.built},
                       {"measured", run.measured},
                       {"host", run.host},
                       {"environment", run.facts}};
  std::string lines = header.dump() + "\n";
  for (const auto& [m, point] : run.values)
    lines += json{{"benchmark", m.name()},   {"unit", m.unit},   {"smaller_is_better", m.smaller_is_better},
                  {"median", point.median},  {"low", point.low}, {"high", point.high},
                  {"samples", point.samples}}
                 .dump() +
             "\n";
  return write_record(folder / "runs" / run.environment, run.built, lines);
}

void record_alerts(const std::vector<AlertRecord>& alerts, const std::filesystem::path& folder) {
  if (alerts.empty()) return;
  std::string lines;
  for (const AlertRecord& a : alerts) {
    json line = a;
    line["said"] = a.withdrawn ? "withdrawn" : "raised";
    lines += line.dump() + "\n";
  }
  write_record(folder / "alerts", alerts.front().date, lines);
}

void record_acceptance(const Acceptance& accepted, const std::filesystem::path& folder) {
  write_record(folder / "accepted", accepted.date, json(accepted).dump() + "\n");
}

std::string commit_date(const std::string& commit, const std::filesystem::path& folder) {
  const auto is_hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  if (commit.size() < 7 || !std::ranges::all_of(commit, is_hex)) return "";  // also "-dirty"
  return output_of({.words = {"git", "-C", folder.string(), "show", "-s", "--date=format-local:%Y-%m-%dT%H:%M:%SZ",
                              "--format=%cd", commit},
                    .environment = environment_with({{"TZ", "UTC"}})});
}

bool same_commit(const std::string& a, const std::string& b) {
  const std::size_t n = std::min(a.size(), b.size());
  return a == b ? n > 0 : n >= 7 && a.compare(0, n, b, 0, n) == 0 && a.find('-') == b.find('-');
}

}  // namespace wt
