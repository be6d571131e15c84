// windtunnel gate record, history and accept: profiles over months, and changes with the commits that may cause them.
#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <set>
#include <vector>

#include "bench/gate/gate.hpp"
#include "bench/gate/history_alerts.hpp"
#include "configs/base/error.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/text.hpp"
#include "planner/cli/gate/gate_command.hpp"
#include "planner/cli/gate/history_report.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "reports/render/render.hpp"

namespace wt {
namespace {

/// Whether it is a commit hash, such as 4f2c1e9 or 4f2c1e9-dirty.
bool is_commit(const std::string& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789abcdef"), text.size());
  return digits >= 7 && (digits == text.size() || text[digits] == '-');
}

/// UTC, ISO 8601, with milliseconds, because records are read in the order of their dates.
std::string now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03d}Z", fmt::gmtime(static_cast<std::time_t>(ms / 1000)), ms % 1000);
}

/// Adds a commit once, keeping the longest recorded form of its hash.
void add_commit(const std::string& commit, std::vector<std::string>& commits) {
  for (std::string& each : commits)
    if (same_commit(each, commit)) {
      if (commit.size() > each.size()) each = commit;
      return;
    }
  commits.push_back(commit);
}

void add_record(const Command& gate) {
  struct RecordCommand {
    std::string profile, history, commit;
  };
  const Command command =
      gate.subcommand("record",
                      "Add a profile to a history and say what changed; exit status 1 for a new change for the worse\n"
                      "Example: windtunnel gate record profile.json --history perf");
  auto o = std::make_shared<RecordCommand>();
  command.option("PROFILE", o->profile, "Profile, JSON of Google Benchmark or nvbench, or a folder of these")
      .required();
  command.option("--history", o->history, "Folder of the history, made where it is missing").required();
  command.option("--commit", o->commit, "Commit that was built, where the profile does not say it");
  command.runs([o] {
    if (!o->commit.empty() && !is_commit(o->commit))
      throw_usage(
          "gate record: --commit: found '{}', allowed seven or more digits of a commit, as `git rev-parse HEAD` prints "
          "them",
          o->commit);
    const HistoryRun run = history_run(read_gate_input(gate_profiles(o->profile)), o->commit);
    const bool fresh = record_run(run, o->history);
    const History history = read_history(o->history);
    const HistoryJudgement judgement = judge_history(history);
    std::vector<AlertRecord> new_alerts = judgement.new_alerts;
    const std::string date = now();  // not the commit's date: several runs may have one commit
    for (AlertRecord& each : new_alerts) each.date = date;
    record_alerts(new_alerts, o->history);
    fmt::print("{} run {} of commit {}: {} in {}{}.\n{}", fresh ? "Recorded" : "Already there:", run.id,
               run.commit.empty() ? "unknown" : run.commit, counted(run.values.size(), "benchmark"), run.environment,
               run.left_out == 0 ? "" : fmt::format(", {} left out", run.left_out), new_alerts_text(judgement));
    for (const auto& [benchmark, error] : run.failed) fmt::print("{} failed: {}\n", benchmark, shortened(error));
    if (judgement.has_regression()) set_status(static_cast<int>(Code::finding));
  });
}

void add_show(const Command& gate) {
  struct HistoryCommand {
    std::string folder, output;
    bool json = false, markdown = false;
  };
  const Command command = gate.subcommand("history",
                                          "Show what changed in a history, and behind which commits\n"
                                          "Example: windtunnel gate history perf -o perf.html");
  auto o = std::make_shared<HistoryCommand>();
  command.option("DIR", o->folder, "Folder of the history").required();
  const Word json = command.flag("--json", o->json, "Print one JSON document");
  command.flag("--markdown", o->markdown, "Print Markdown").excludes(json);
  command.output(o->output, Output::file,
                 "Also write the report, with a chart a series: FILE.html, .md, .json or .txt");
  command.runs([o] {
    if (!o->output.empty()) check_report_file(o->output);
    const History history = read_history(o->folder);
    const HistoryJudgement judgement = judge_history(history);
    if (!o->output.empty()) write_report_file(history_report(history, judgement), o->output);
    const Report words = history_report(history, judgement, 0);  // no charts: in text they are tables of all numbers
    if (o->markdown)
      put_document(markdown_report(words), "");
    else if (o->output != "-")
      put_report(words, o->json);
  });
}

void add_accept(const Command& gate) {
  struct AcceptCommand {
    std::string folder, commit, benchmark, reason;
  };
  const Command command =
      gate.subcommand("accept",
                      "Record that a change is wanted: it raises no alert\n"
                      "Example: windtunnel gate accept perf --commit 4f2c1e9 --reason \"checks every index\"");
  auto o = std::make_shared<AcceptCommand>();
  command.option("DIR", o->folder, "Folder of the history").required();
  command.option("--commit", o->commit, "First commit at the new level").required();
  command.option("--benchmark", o->benchmark, "Of this benchmark alone, not of all");
  command.option("--reason", o->reason, "Why it is wanted").required();
  command.runs([o] {
    if (o->reason.empty())
      throw_usage("gate accept: --reason: found nothing, allowed a text; say why the change is wanted");
    const History history = read_history(o->folder);
    std::set<std::string> benchmarks;
    std::vector<std::string> commits;
    for (const HistorySeries& series : history.series) {
      benchmarks.insert(series.benchmark);
      for (const HistoryPoint& point : series.points)
        if (same_commit(point.commit, o->commit)) add_commit(point.commit, commits);
    }
    if (!o->benchmark.empty() && benchmarks.count(o->benchmark) == 0)
      throw_usage(
          "gate accept: --benchmark: found '{}'{}; allowed a benchmark of the history, which `windtunnel gate history "
          "{}` lists",
          o->benchmark, did_you_mean(o->benchmark, {benchmarks.begin(), benchmarks.end()}), o->folder);
    if (commits.size() != 1)
      throw_usage(
          "gate accept: --commit: found {} of {}, allowed one that was recorded; give it as the history shows it",
          counted(commits.size(), "recorded commit"), o->commit);
    record_acceptance({commits[0], o->benchmark, o->reason, now()}, o->folder);
    fmt::print("Accepted at {}: {}.\n", commits[0], o->benchmark.empty() ? "every benchmark" : o->benchmark);
  });
}

}  // namespace

void add_gate_history(const Command& gate) {
  add_record(gate);
  add_show(gate);
  add_accept(gate);
}

}  // namespace wt
