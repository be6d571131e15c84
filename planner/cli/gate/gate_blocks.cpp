#include "planner/cli/gate/gate_blocks.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/formats/google_benchmark.hpp"
#include "bench/formats/merge_profiles.hpp"
#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/scratch_folder.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

/// A regular expression that matches only `text`.
std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (std::string_view(".[]{}()\\*+?^$|").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

Profile merged(const std::vector<Profile>& processes) {
  Profile all = merge(processes, {});
  all.fingerprint.erase(kMergedFrom);
  const auto date = processes[0].fingerprint.find("date");
  if (date != processes[0].fingerprint.end()) all.fingerprint["date"] = date->second;  // instead of one per process
  return all;
}

/// Values of a benchmark in the last block; fewer where a process did not measure it.
std::vector<double> last_values(const std::vector<Profile>& processes, const std::string& name) {
  std::vector<double> out;
  for (std::size_t i = processes.size() - kBlockSide; i < processes.size(); ++i)
    for (const Measurement& m : processes[i].measurements)
      if (m.name() == name) out.push_back(m.samples[0]);
  return out;
}

bool above_zero(const std::vector<double>& values) {
  return values.size() == kBlockSide && std::ranges::all_of(values, [](double v) { return v > 0; });
}

}  // namespace

GateBlocks::GateBlocks(GateTree base, GateTree current, std::string command, GoogleBenchmarkClock clock, fs::path log,
                       std::uint64_t seed)
    : trees_{std::move(base), std::move(current)},
      command_(std::move(command)),
      clock_(clock),
      log_(std::move(log)),
      random_(seed) {}

Profile GateBlocks::run(bool is_new, const std::string& filter, double limit_s) {
  const GateTree& tree = trees_[is_new ? 1 : 0];
  const ScratchFolder scratch("wt-gate-run");
  const fs::path out = scratch.path() / "profile.json";
  const std::string file = shell_word(out.string());
  std::string command = command_ + filter, failure;
  command = command.find("{output}") == std::string::npos ? fmt::format("{{ {}\n}} > {}", command, file)
                                                          : replaced(command, "{output}", file);
  bool ended_well = run_in_tree(tree, command, limit_s, log_, failure);
  Profile profile;
  if (ended_well || fs::exists(out)) {
    const auto read = [&] {
      const nlohmann::json document = read_json(out);
      if (is_google_benchmark(document) && filter_names_.empty())
        filter_names_ = google_benchmark_names(document, out.string(), clock_);
      return read_gate_input({out}, clock_);
    };
    try {
      profile = read();
    } catch (const Error&) {
      if (ended_well && filter.empty()) throw;  // otherwise the failed process, or the filter, is the reason
      ended_well = false;
    }
  }
  if (!ended_well && profile.failures.empty()) {
    if (filter.empty()) throw_runtime("gate run: {} could not be measured: {}", tree.commit.substr(0, 12), failure);
    takes_filter_ = false;
    fmt::print(stderr, "gate run: the command fails with{} at its end; measuring everything each time\n",
               filter.substr(0, filter.find('=')));
    return run(is_new, "", limit_s);
  }
  for (Measurement& m : profile.measurements) m.samples = {m.median()};
  // The commit that was built, whatever is committed or edited during the measurement.
  if (const auto commit = profile.fingerprint.find("commit"); commit != profile.fingerprint.end())
    commit->second = tree.commit + (tree.is_clean ? "" : "-dirty");
  return profile;
}

void GateBlocks::block(const std::string& filter, double limit_s) {
  for (const bool is_new : block_order(random_))
    profiles_[is_new ? 1 : 0].push_back(run(is_new, takes_filter_ ? filter : "", limit_s));
}

std::string GateBlocks::filter(const std::vector<std::string>& names) const {
  if (!filters()) return "";  // a filter of the command itself selects a superset; the last filter counts
  std::vector<std::string> patterns;
  for (const std::string& name : names)
    if (const auto found = filter_names_.find(name); found != filter_names_.end())
      patterns.push_back(escaped(found->second));
  return patterns.empty() ? "" : " --benchmark_filter=" + shell_word(fmt::format("^({})$", fmt::join(patterns, "|")));
}

GateResult GateBlocks::measure(double limit_s, const GateOptions& options) {
  const double begin = steady_s();
  const double process_limit_s = std::max(600.0, limit_s);
  block("", process_limit_s);
  double last_s = steady_s() - begin;
  std::vector<GateRow> rows;
  GateResult first = compare(merged(profiles_[0]), merged(profiles_[1]), options);
  if (!first.differences.empty()) return first;
  for (const GateRow& row : first.rows)
    if (above_zero(last_values(profiles_[0], row.name)) && above_zero(last_values(profiles_[1], row.name)) &&
        row.verdict != Verdict::incomparable)
      rows.push_back(row);
  SequentialGate gate(rows, options);
  const std::size_t all = rows.size();
  const auto wanted = [&] { return filters() ? gate.next() : gate.undecided(); };
  for (std::size_t blocks = 1;; ++blocks) {
    std::vector<std::size_t> due = wanted();
    for (std::size_t i : due) {
      const auto base = last_values(profiles_[0], gate.rows()[i].name);
      const auto current = last_values(profiles_[1], gate.rows()[i].name);
      if (above_zero(base) && above_zero(current)) gate.add(i, base, current);
    }
    const std::size_t before = std::max<std::size_t>(1, due.size());
    due = wanted();
    const auto undecided = static_cast<std::size_t>(
        std::ranges::count_if(gate.rows(), [](const GateRow& row) { return row.verdict == Verdict::inconclusive; }));
    const double used_s = steady_s() - begin;
    fmt::print(stderr, "gate run: {} block{}, {} of {} benchmarks undecided, {:.1f} min\n", blocks,
               blocks == 1 ? "" : "s", undecided, all, used_s / 60);
    if (due.empty()) break;
    std::vector<std::string> names;
    for (std::size_t i : due) names.push_back(gate.rows()[i].name);
    const std::string only = filter(names);
    const double part = only.empty() ? 1 : static_cast<double>(due.size()) / static_cast<double>(before);
    if (used_s + std::max(part, 0.2) * last_s > limit_s) break;
    const double from = steady_s();
    block(only, process_limit_s);
    last_s = steady_s() - from;
  }
  return judged_in_blocks(compare(merged(profiles_[0]), merged(profiles_[1]), options), gate);
}

}  // namespace wt
