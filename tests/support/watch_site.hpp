// A made-up run for windtunnel watch, and a scheduler that is one script: it notes what it is asked for.
#pragma once
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/health/observation.hpp"
#include "tests/support/synthetic_fleet.hpp"
#include "tests/support/temp_directory.hpp"
#include "tests/support/windtunnel.hpp"

namespace wt::test {

/// Every hook is this script: it notes its arguments, and does what the files of its folder say. A start adds ten steps
/// at the pace of `pace` and the end of the run.
inline constexpr const char* kSite = R"sh(#!/bin/sh
here=$(dirname "$0") action=$1 run=$2
{ printf '%s' "$action"; shift 2; printf '|%s' "$@"; printf '\n'; } >> "$here/calls"
case $action in
sweep)
  [ -e "$here/hangs" ] && sleep 98765
  cp "$here/fleet.json" "$1" ;;
start)
  now=$(date +%s)
  for i in 1 2 3 4 5 6 7 8 9 10; do
    printf '{"step": %d, "unix_s": %d, "step_s": %s, "loss": 4, "exposed_communication_s": 0.2}\n' \
      $((40 + i)) $((now + 100 + i)) "$(cat "$here/pace")"
  done >> "$run/metrics.jsonl"
  echo '{}' > "$run/summary.json" ;;
esac
)sh";

class Site {
 public:
  explicit Site(int spares = 1) {
    std::filesystem::create_directory(run());
    write_bytes(folder_ / "site.sh", kSite);
    std::filesystem::permissions(folder_ / "site.sh", std::filesystem::perms::owner_all);
    write_bytes(folder_ / "pace", "1.0");
    write_bytes(folder_ / "calls", "");
    write_bytes(folder_ / "rules.yaml",
                "every: 20ms\nwindow: 4\nsignals:\n"
                "  - {name: slow steps, metric: step_s, above: 1.5, of: best, steps: 4}\n"
                "  - {name: silence, metric: silence, above: 1000000, of: recent, at_least: 1000000s}\n"
                "undecided: tell\nsure: 0.99\nmost_excluded: 0.25\nrestarts: 3\nrollback: {margin: 4, skip: "
                "8}\nverify: {steps: 4, within: 1h}\n");
    std::string hooks = fmt::format("spares: {}\n", spares);
    for (const auto& [hook, arguments] : {std::pair{"save", ""},
                                          {"stop", ""},
                                          {"sweep", ", \"{output}\""},
                                          {"cordon", ", \"{node}\", \"{reason}\""},
                                          {"uncordon", ", \"{node}\""},
                                          {"start", ", \"{layout}\", \"{excluded}\""},
                                          {"tell", ", \"{reason}\""}})
      hooks += fmt::format("{}: {{command: [./site.sh, {}, \"{{run}}\"{}], timeout: {}}}\n", hook, hook, arguments,
                           std::string(hook) == "sweep" ? "2s" : "1m");
    write_bytes(folder_ / "hooks.yaml", hooks);
  }

  std::filesystem::path run() const { return folder_ / "run"; }
  void file(const std::string& name, const std::string& bytes) { write_bytes(folder_ / name, bytes); }
  bool has(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  /// 40 steps, the last one now; the last ten take twice as long, and `change` has its way with them.
  void metrics(const std::function<void(nlohmann::json&)>& change) {
    const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count() - 60;
    std::string out;
    for (int i = 1; i <= 40; ++i) {
      nlohmann::json line = {{"step", i},
                             {"unix_s", now - 80 + 2 * i},
                             {"step_s", 1.0},
                             {"loss", 5.0 - 0.01 * i},
                             {"exposed_communication_s", 0.2},
                             {"expert_imbalance", 1.1}};
      if (i > 30) line["step_s"] = 2.0, change(line);
      out += line.dump() + "\n";
    }
    write_bytes(run() / "metrics.jsonl", out);
  }
  void fleet(const std::vector<int>& slow, const std::string& name = "") {
    SyntheticFleet made({.nodes = 8}, 7);
    for (const int node : slow) made.slow_node(node, 2);
    if (!name.empty()) made.fleet.nodes[static_cast<std::size_t>(slow.at(0))].name = name;
    write_bytes(folder_ / "fleet.json", to_json(made.fleet).dump());
  }

  Ended watch(const std::string& more) const {
    return windtunnel(fmt::format("watch '{}' --rules '{}' --hooks '{}' {}", run().string(),
                                  (folder_ / "rules.yaml").string(), (folder_ / "hooks.yaml").string(), more),
                      "timeout 60");
  }
  /// The first word of each call.
  std::string calls() const {
    std::istringstream lines(read_bytes(folder_ / "calls"));
    std::string out;
    for (std::string line; std::getline(lines, line);) out += line.substr(0, line.find('|')) + " ";
    return out;
  }
  std::string arguments() const { return read_bytes(folder_ / "calls"); }
  std::vector<nlohmann::json> decisions() const {
    std::istringstream lines(read_bytes(run() / "decisions.jsonl"));
    std::vector<nlohmann::json> out;
    for (std::string line; std::getline(lines, line);) out.push_back(nlohmann::json::parse(line));
    return out;
  }

 private:
  TempDirectory folder_;
};

/// What a step does whose rank waits for a slower one.
inline void waits_longer(nlohmann::json& line) { line["exposed_communication_s"] = 1.2; }

}  // namespace wt::test
