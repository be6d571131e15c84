// A history as two hosts keep it: each pushes what it recorded, git merges, and nothing is lost.
#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "bench/gate/history.hpp"
#include "configs/files/profile.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/windtunnel.hpp"

using Catch::Matchers::Contains;
using wt::test::TempDirectory;
using wt::test::windtunnel;
namespace fs = std::filesystem;

namespace {

/// Profile of run `number` on `host`: two benchmarks, three samples each, a little scattered.
fs::path write_run(const fs::path& folder, const std::string& host, int number, double seconds) {
  wt::Profile profile;
  profile.fingerprint = {{"cpu_model", "test"},
                         {"host", host},
                         {"commit", fmt::format("{:012x}", 0xabcdef000000 + number)},
                         {"date", fmt::format("2026-01-{:02}T{:02}:00:00Z", 1 + number / 24, number % 24)}};
  for (const char* kernel : {"gemm", "copy"}) {
    wt::Measurement m;
    m.kernel = kernel;
    m.pass = "";
    m.evidence = {wt::Evidence::measured, "test"};
    const double level = std::string(kernel) == "gemm" ? seconds : 1e-3;
    for (int i = 0; i < 3; ++i) m.samples.push_back(level * (1 + 0.001 * ((number * 7 + i * 3) % 5)));
    profile.measurements.push_back(m);
  }
  const fs::path file = folder / fmt::format("{}-{}.json", host, number);
  wt::write_profile(profile, file);
  return file;
}

int record(const fs::path& profile, const fs::path& history) {
  return windtunnel(fmt::format("gate record '{}' --history '{}'", profile.string(), history.string())).status;
}

void shell(const std::string& command) {
  INFO(command);
  REQUIRE(std::system(command.c_str()) == 0);
}

std::string git_in(const fs::path& clone) {
  return fmt::format("git -C '{}' -c user.name=a -c user.email=a@b.c ", clone.string());
}

/// Everything that is in the clone, as a commit that is pushed after a merge with what others pushed.
void push(const fs::path& clone) {
  shell(git_in(clone) + "add -A && " + git_in(clone) + "commit -qm runs");
  shell(git_in(clone) + "pull -q --no-rebase --no-edit origin main && " + git_in(clone) + "push -q origin HEAD:main");
}

}  // namespace

TEST_CASE("two clones that record at once merge without a conflict and lose nothing") {
  const TempDirectory folder;
  shell(fmt::format("git init -q --bare -b main '{}'", (folder / "origin").string()));
  for (const char* clone : {"a", "b"})
    shell(fmt::format("git init -q -b main '{0}' && git -C '{0}' remote add origin '{1}'", (folder / clone).string(),
                      (folder / "origin").string()));
  const fs::path a = folder / "a", b = folder / "b";
  // What both have, and then the same run recorded by both, as a job that ran twice does.
  CHECK(record(write_run(folder.path(), "a", 0, 1e-3), a / "perf") == 0);
  shell(git_in(a) + "add -A && " + git_in(a) + "commit -qm first && " + git_in(a) + "push -q origin main");
  shell(git_in(b) + "pull -q origin main");
  for (int number = 1; number < 5; ++number) {
    CHECK(record(write_run(folder.path(), "a", number, 1e-3), a / "perf") == 0);
    CHECK(record(write_run(folder.path(), "b", number, 1e-3), b / "perf") == 0);
  }
  const fs::path shared = write_run(folder.path(), "a", 5, 1e-3);
  CHECK(record(shared, a / "perf") == 0);
  CHECK(record(shared, b / "perf") == 0);
  CHECK(windtunnel(fmt::format("gate accept '{}' --commit abcdef000001 --reason a", (a / "perf").string())).status ==
        0);
  CHECK(windtunnel(fmt::format("gate accept '{}' --commit abcdef000001 --reason b", (b / "perf").string())).status ==
        0);
  push(a);
  push(b);
  shell(git_in(a) + "pull -q origin main");
  for (const fs::path& clone : {a, b}) {
    const wt::History history = wt::read_history(clone / "perf");
    CHECK(history.runs == 10);
    CHECK(history.torn == 0);
    CHECK(history.accepted.size() == 2);
    REQUIRE(history.series.size() == 2);
    CHECK(history.series[0].points.size() == 10);
  }
}

TEST_CASE("processes that record at once lose nothing, the same run among them") {
  const TempDirectory folder;
  constexpr int kRuns = 6;
  std::vector<std::thread> processes;
  for (int number = 0; number < kRuns; ++number) {
    const fs::path profile = write_run(folder.path(), "a", number, 1e-3);
    for (int twice = 0; twice < 2; ++twice)
      processes.emplace_back([profile, &folder] { record(profile, folder / "perf"); });
  }
  for (std::thread& each : processes) each.join();
  const wt::History history = wt::read_history(folder / "perf");
  CHECK(history.runs == kRuns);
  CHECK(history.torn == 0);
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "perf")) files += entry.is_regular_file() ? 1 : 0;
  CHECK(files == kRuns);
}

TEST_CASE("a slowdown is said once, with its commits, and shown until it is accepted") {
  const TempDirectory folder;
  const fs::path perf = folder / "perf";
  wt::Profile last;
  for (int number = 0; number < 20; ++number)
    wt::record_run(wt::history_run(wt::read_profile(write_run(folder.path(), "a", number, 1e-3))), perf);
  for (int number = 20; number < 23; ++number) CHECK(record(write_run(folder.path(), "a", number, 1.05e-3), perf) == 0);
  const auto add = [&](int number) {
    return windtunnel(fmt::format("gate record '{}' --history '{}'",
                                  write_run(folder.path(), "a", number, 1.05e-3).string(), perf.string()));
  };
  const wt::test::Ended raised = add(23);
  CHECK(raised.status == 1);
  CHECK_THAT(raised.said, Contains("new") && Contains("worse") && Contains("+5.0 %") && Contains("gemm") &&
                              Contains("abcdef000..abcdef000"));
  CHECK(add(24).status == 0);
  CHECK(add(24).status == 0);  // again
  const wt::History history = wt::read_history(perf);
  REQUIRE(history.alerts.size() == 1);
  CHECK(history.alerts[0].date > history.series[1].points.back().built);  // when it was said

  const std::string show = fmt::format("gate history '{}'", perf.string());
  const wt::test::Ended shown = windtunnel(show + " --json");
  CHECK(shown.status == 0);
  const nlohmann::json document = nlohmann::json::parse(shown.said);
  const nlohmann::json& gemm = document["payload"]["series"][1];
  CHECK(gemm["benchmark"] == "gemm");
  REQUIRE(gemm["shifts"].size() == 1);
  CHECK(gemm["shifts"][0]["state"] == "known");
  CHECK(gemm["shifts"][0]["commit"] == "abcdef000014");
  CHECK(gemm["shifts"][0]["before_commit"] == "abcdef000013");
  CHECK_THAT(windtunnel(show + " --markdown").said, Contains("| known |"));
  CHECK(windtunnel(fmt::format("{} -o '{}'", show, (folder / "perf.html").string())).status == 0);
  CHECK_THAT(wt::test::read_bytes(folder / "perf.html"), Contains("gemm") && Contains("</html>"));

  const std::string accept = fmt::format("gate accept '{}' ", perf.string());
  const wt::test::Ended misspelt = windtunnel(accept + "--commit abcdef000014 --benchmark gem --reason x");
  CHECK(misspelt.status == 2);
  CHECK_THAT(misspelt.said, Contains("did you mean 'gemm'?"));
  CHECK(windtunnel(accept + "--commit abcdef999999 --reason x").status == 2);
  CHECK(windtunnel(accept + "--commit abcdef000014 --benchmark gemm --reason ''").status == 2);
  CHECK(windtunnel(accept + "--commit abcdef000014 --benchmark gemm --reason 'checks bounds'").status == 0);
  CHECK_THAT(windtunnel(show + " --markdown").said, Contains("| accepted |") && Contains("checks bounds"));
}

TEST_CASE("what is no history and what is no profile is refused") {
  const TempDirectory folder;
  CHECK_THAT(windtunnel(fmt::format("gate history '{}'", folder.path().string())).said, Contains("gate record"));
  CHECK(windtunnel(fmt::format("gate history '{}'", folder.path().string())).status == 2);
  wt::test::write_bytes(folder / "p.json", "{}");
  CHECK(record(folder / "p.json", folder / "perf") == 2);
  const wt::test::Ended named =
      windtunnel(fmt::format("gate record '{}' --history '{}' --commit HEAD",
                             write_run(folder.path(), "a", 0, 1e-3).string(), (folder / "perf").string()));
  CHECK(named.status == 2);
  CHECK_THAT(named.said, Contains("found 'HEAD'"));
  CHECK_FALSE(fs::exists(folder / "perf"));
}

TEST_CASE("a commit that was recorded short and in full is one, and is accepted in full") {
  const TempDirectory folder;
  const fs::path perf = folder / "perf";
  const std::string full = "abcdef000001" + std::string(28, '7');
  for (const std::string& commit : {full.substr(0, 12), full, full.substr(0, 9)}) {
    const fs::path profile = write_run(folder.path(), "a", static_cast<int>(commit.size()), 1e-3);
    CHECK(
        windtunnel(fmt::format("gate record '{}' --history '{}' --commit {}", profile.string(), perf.string(), commit))
            .status == 0);
  }
  const wt::test::Ended accepted =
      windtunnel(fmt::format("gate accept '{}' --commit {} --reason wanted", perf.string(), full.substr(0, 9)));
  CHECK(accepted.status == 0);
  CHECK_THAT(accepted.said, Contains(full));
}
