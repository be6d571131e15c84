#include "bench/gate/history.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using Catch::Matchers::Contains;
using wt::test::TempDirectory;
namespace fs = std::filesystem;

namespace {

wt::Measurement timed_benchmark(const std::string& name, std::vector<double> samples) {
  wt::Measurement m;
  m.kernel = name;
  m.pass = "";
  m.samples = std::move(samples);
  m.evidence = {wt::Evidence::measured, "test"};
  return m;
}

wt::Profile of_commit(const std::string& commit, const std::string& date, double seconds) {
  return {{{"device", "NVIDIA H100 80GB"},
           {"cuda", "13.0"},
           {"host", "gpu-node-17"},
           {"run.folder", "/home/me/run"},
           {"commit", commit},
           {"date", date}},
          {timed_benchmark("gemm", {seconds, seconds * 1.02, seconds * 0.98}), timed_benchmark("copy", {2 * seconds})}};
}

/// The one file below `folder`.
fs::path only_file(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  REQUIRE(files.size() == 1);
  return files[0];
}

std::string refusal(const fs::path& folder) {
  return wt::test::usage_error([&] { wt::read_history(folder); });
}

}  // namespace

TEST_CASE("runs come back as series in order of their commits' dates") {
  const TempDirectory folder;
  wt::record_run(wt::history_run(of_commit("bbbbbbb", "2026-02-01T00:00:00Z", 2e-3)), folder.path());
  wt::record_run(wt::history_run(of_commit("aaaaaaa", "2026-01-01T00:00:00Z", 1e-3)), folder.path());
  const wt::History history = wt::read_history(folder.path());
  CHECK(history.runs == 2);
  REQUIRE(history.series.size() == 2);
  const wt::HistorySeries& gemm = history.series[1];
  CHECK(gemm.benchmark == "gemm");
  CHECK(gemm.unit == "s");
  CHECK(gemm.facts == wt::Fingerprint{{"device", "NVIDIA H100 80GB"}, {"cuda", "13.0"}});
  CHECK_THAT(gemm.environment, Contains("nvidia-h100-80gb-"));
  REQUIRE(gemm.points.size() == 2);
  CHECK(gemm.points[0].commit == "aaaaaaa");
  CHECK(gemm.points[0].median == 1e-3);
  CHECK(gemm.points[0].low == Approx(0.99e-3));
  CHECK(gemm.points[0].high == Approx(1.01e-3));
  CHECK(gemm.points[0].samples == 3);
  CHECK(gemm.points[1].built == "2026-02-01T00:00:00Z");
}

TEST_CASE("another environment is another series, another host is not") {
  const TempDirectory folder;
  wt::Profile profile = of_commit("aaaaaaa", "2026-01-01T00:00:00Z", 1e-3);
  wt::record_run(wt::history_run(profile), folder.path());
  profile.fingerprint["host"] = "gpu-node-18";
  wt::record_run(wt::history_run(profile), folder.path());
  profile.fingerprint["cuda"] = "13.1";
  wt::record_run(wt::history_run(profile), folder.path());
  const wt::History history = wt::read_history(folder.path());
  CHECK(history.runs == 3);
  REQUIRE(history.series.size() == 4);
  CHECK(history.series[0].points.size() + history.series[1].points.size() == 3);
  CHECK(history.series[0].environment != history.series[1].environment);
}

TEST_CASE("nothing of the host but its environment is written") {
  const TempDirectory folder;
  wt::record_run(wt::history_run(of_commit("aaaaaaa", "2026-01-01T00:00:00Z", 1e-3)), folder.path());
  const std::string text = wt::test::read_bytes(only_file(folder.path()));
  CHECK_THAT(text, !Contains("gpu-node-17") && !Contains("/home/me"));
  CHECK_THAT(text, Contains("13.0"));
}

TEST_CASE("a run that is recorded again changes nothing, and one that was cut off is made whole") {
  const TempDirectory folder;
  const wt::HistoryRun run = wt::history_run(of_commit("aaaaaaa", "2026-01-01T00:00:00Z", 1e-3));
  CHECK(wt::record_run(run, folder.path()));
  const fs::path file = only_file(folder.path());
  const std::string whole = wt::test::read_bytes(file);
  CHECK_FALSE(wt::record_run(run, folder.path()));
  CHECK(wt::test::read_bytes(only_file(folder.path())) == whole);

  wt::test::write_bytes(file, whole.substr(0, whole.size() - 10));
  const wt::History cut = wt::read_history(folder.path());
  CHECK(cut.torn == 1);
  CHECK(cut.series.size() == 1);  // the line of the other benchmark is whole
  CHECK(wt::record_run(run, folder.path()));
  CHECK(wt::test::read_bytes(file) == whole);
  CHECK(wt::read_history(folder.path()).torn == 0);
}

TEST_CASE("a run is the same, wherever its files lay") {
  wt::Profile here = of_commit("aaaaaaa", "2026-01-01T00:00:00Z", 1e-3), there = here;
  there.measurements[0].evidence.source = "Google Benchmark, archive/p.json";
  there.fingerprint[wt::kMergedFrom] = "0123456789abcdef + fedcba9876543210";
  CHECK(wt::history_run(here).id == wt::history_run(there).id);
  there.measurements[0].samples[0] *= 2;
  CHECK(wt::history_run(here).id != wt::history_run(there).id);
}

TEST_CASE("a file that was cut off anywhere is read, and never gives a wrong value") {
  const TempDirectory folder;
  wt::record_run(wt::history_run(of_commit("aaaaaaa", "2026-01-01T00:00:00Z", 1e-3)), folder.path());
  const fs::path file = only_file(folder.path());
  const std::string whole = wt::test::read_bytes(file);
  for (std::size_t kept = 0; kept < whole.size(); ++kept) {
    wt::test::write_bytes(file, whole.substr(0, kept));
    for (const wt::HistorySeries& series : wt::read_history(folder.path()).series)
      CHECK(series.points.at(0).median == (series.benchmark == "gemm" ? 1e-3 : 2e-3));
  }
}

TEST_CASE("a run that two files tell of counts once") {
  const TempDirectory folder;
  wt::HistoryRun run = wt::history_run(of_commit("aaaaaaa", "2026-01-01T00:00:00Z", 1e-3));
  wt::record_run(run, folder.path());
  run.built = "2025-12-31T00:00:00Z";  // where git knew the commit
  CHECK(wt::record_run(run, folder.path()));
  const wt::History history = wt::read_history(folder.path());
  CHECK(history.runs == 1);
  CHECK(history.series[0].points.size() == 1);
}

TEST_CASE("what was not measured, failed or was throttled is left out") {
  wt::Profile profile = of_commit("aaaaaaa", "2026-01-01T00:00:00Z", 1e-3);
  profile.measurements[1].throttled = {"hw_thermal"};
  profile.measurements.push_back(timed_benchmark("derived", {1.0}));
  profile.measurements.back().evidence.kind = wt::Evidence::derived;
  profile.failures = {{"attention", "out of memory"}, {"attention", "out of memory"}};  // in two processes
  const wt::HistoryRun run = wt::history_run(profile);
  CHECK(run.values.size() == 1);
  CHECK(run.left_out == 3);
  CHECK(run.failed.at("attention") == "out of memory");
  profile.measurements[0].throttled = {"hw_thermal"};
  CHECK_THAT(wt::test::usage_error([&] { wt::history_run(profile); }), Contains("no benchmark"));
}

TEST_CASE("a run without commit and date has no place in a history") {
  wt::Profile profile = of_commit("aaaaaaa", "2026-01-01T00:00:00Z", 1e-3);
  profile.fingerprint.erase("date");
  CHECK_THAT(wt::test::usage_error([&] { wt::history_run(profile); }), Contains("date") && Contains("--commit"));
}

TEST_CASE("a commit is dated by the repository, and not by when it was measured") {
  const TempDirectory folder;
  const std::string git = "git -C '" + folder.path().string() + "' -c user.name=a -c user.email=a@b.c ";
  REQUIRE(std::system((git + "init -q").c_str()) == 0);
  REQUIRE(std::system(
              ("GIT_COMMITTER_DATE='2026-03-01T12:00:00+0200' " + git + "commit -q --allow-empty -m x").c_str()) == 0);
  REQUIRE(std::system((git + "rev-parse HEAD > '" + (folder / "head").string() + "'").c_str()) == 0);
  const std::string commit = wt::test::read_bytes(folder / "head").substr(0, 12);
  CHECK(wt::commit_date(commit, folder.path()) == "2026-03-01T10:00:00Z");
  CHECK(wt::commit_date(commit + "-dirty", folder.path()).empty());
  CHECK(wt::commit_date("0123456789ab", folder.path()).empty());
  CHECK(wt::commit_date("HEAD; true", folder.path()).empty());
  const wt::HistoryRun run = wt::history_run(of_commit("other", "2026-05-01T00:00:00Z", 1e-3), commit, folder.path());
  CHECK(run.built == "2026-03-01T10:00:00Z");
  CHECK(run.measured == "2026-05-01T00:00:00Z");
  CHECK(run.commit == commit);
}

TEST_CASE("local times are compared as UTC") {
  const auto measured = [](const std::string& date) {
    return wt::history_run(of_commit("aaaaaaa", date, 1e-3)).measured;
  };
  CHECK(measured("2026-03-01T00:30:00+02:00") == "2026-02-28T22:30:00Z");
  CHECK(measured("2026-03-01T00:30:00-05:30 + 2026-03-01T00:40:00-05:30") == "2026-03-01T06:00:00Z");
  CHECK(measured("2026-03-01T00:30:00Z") == "2026-03-01T00:30:00Z");
  CHECK(measured("some day") == "some day");
}

TEST_CASE("abbreviations name the same commit from seven digits on") {
  CHECK(wt::same_commit("0123456789ab", "0123456"));
  CHECK(wt::same_commit("0123456", "0123456789ab"));
  CHECK_FALSE(wt::same_commit("0123456789ab", "012345"));
  CHECK_FALSE(wt::same_commit("0123456789ab", "0123457"));
  CHECK_FALSE(wt::same_commit("0123456", "0123456-dirty"));
  CHECK_FALSE(wt::same_commit("", ""));
}

TEST_CASE("a broken line is refused with file and line, except one that was cut off at the end") {
  const TempDirectory folder;
  CHECK_THAT(refusal(folder.path()), Contains("no folder runs") && Contains("gate record"));
  wt::record_run(wt::history_run(of_commit("aaaaaaa", "2026-01-01T00:00:00Z", 1e-3)), folder.path());
  const fs::path file = only_file(folder.path());
  const std::string whole = wt::test::read_bytes(file);
  const std::string header = whole.substr(0, whole.find('\n') + 1);
  wt::test::write_bytes(file, header + "{\"benchmark\": \n" + whole.substr(header.size()));
  CHECK_THAT(refusal(folder.path()), Contains(".jsonl:2"));
  wt::test::write_bytes(file, header + "{\"benchmark\": \"a\", \"colour\": 3}\n");
  CHECK_THAT(refusal(folder.path()), Contains(".jsonl:2") && Contains("colour"));
  std::string newer = header;
  newer.replace(newer.find("history/1"), 9, "history/2");
  wt::test::write_bytes(file, newer);
  CHECK_THAT(refusal(folder.path()), Contains("gate-history/2") && Contains("gate-history/1"));
}
