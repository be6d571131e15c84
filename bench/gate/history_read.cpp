// Reads a history's folder into series.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "bench/gate/history.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/text.hpp"

namespace wt {
namespace {

using nlohmann::json;

struct RecordLine {
  json document;
  std::string origin;
};

/// The lines of a file. `torn` is incremented where the last line is truncated.
std::vector<RecordLine> lines_of(const std::filesystem::path& file, std::size_t& torn) {
  const std::string text = read_file(file, "a file of a gate history");
  std::vector<RecordLine> lines;
  std::size_t number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    const std::string origin = fmt::format("{}:{}", file.string(), number);
    if (end == std::string::npos) {
      if (json document = json::parse(line, nullptr, false); !document.is_discarded())
        lines.push_back({std::move(document), origin});
      else
        ++torn;
      break;
    }
    at = end + 1;
    if (!line.empty()) lines.push_back({parse_json(line, origin), origin});
  }
  return lines;
}

std::vector<std::filesystem::path> record_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

using SeriesKey = std::tuple<std::string, std::string, std::string, bool>;

/// Adds a run's file to the series, unless the run is already known.
void read_run(const std::vector<RecordLine>& lines, std::set<std::string>& runs,
              std::map<SeriesKey, HistorySeries>& series, const std::string& environment) {
  if (lines.empty()) return;
  const JsonReader header(lines.front().document, lines.front().origin);
  header.allow_only({"schema", "run", "commit", "built", "measured", "host", "environment"});
  if (header.at("schema").string() != "windtunnel.gate-history/1")
    header.at("schema").fail(header.at("schema").string(), "windtunnel.gate-history/1; use the program that wrote it");
  HistoryPoint run{header.at("run").string(), header.at("commit").string(), header.at("built").string(),
                   header.at("measured").string(), header.at("host").string()};
  if (!runs.insert(run.run).second) return;
  Fingerprint facts;
  for (const auto& [key, value] : header.at("environment").items()) facts[key] = value.string();
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const JsonReader line(lines[i].document, lines[i].origin);
    line.allow_only({"benchmark", "unit", "smaller_is_better", "median", "low", "high", "samples"});
    HistoryPoint point = run;
    point.median = line.at("median").non_negative();
    point.low = line.at("low").non_negative();
    point.high = line.at("high").non_negative();
    point.samples = static_cast<std::size_t>(line.at("samples").non_negative());
    const SeriesKey key{line.at("benchmark").string(), environment, line.at("unit").string(),
                        line.at("smaller_is_better").boolean()};
    HistorySeries& into = series[key];
    into.benchmark = std::get<0>(key);
    into.environment = environment;
    into.unit = std::get<2>(key);
    into.smaller_is_better = std::get<3>(key);
    into.facts = facts;
    into.points.push_back(std::move(point));
  }
}

AlertRecord alert_of(const JsonReader& line) {
  line.allow_only({"said", "environment", "benchmark", "run", "before", "commit", "ratio", "reason", "by", "date"});
  const std::string said = line.at("said").string();
  if (said != "raised" && said != "withdrawn") line.at("said").fail(said, "raised and withdrawn");
  return {said == "withdrawn",
          line.at("environment").string(),
          line.at("benchmark").string(),
          line.at("run").string(),
          line.at("before").string(),
          line.at("commit").string(),
          line.at("ratio").non_negative(),
          line.at("reason").string(),
          line.at("by").string(),
          line.at("date").string()};
}

}  // namespace

History read_history(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder / "runs"))
    throw_usage("{}: found no folder runs in it, allowed a gate history; `windtunnel gate record` makes one",
                folder.string());
  History history;
  std::set<std::string> runs;
  std::map<SeriesKey, HistorySeries> series;
  for (const auto& file : record_files(folder / "runs"))
    read_run(lines_of(file, history.torn), runs, series, file.parent_path().filename().string());
  history.runs = runs.size();
  for (auto& [key, each] : series) {
    std::ranges::sort(each.points, [](const HistoryPoint& a, const HistoryPoint& b) {
      return std::tie(a.built, a.measured, a.run) < std::tie(b.built, b.measured, b.run);
    });
    history.series.push_back(std::move(each));
  }
  for (const auto& file : record_files(folder / "alerts"))
    for (const RecordLine& line : lines_of(file, history.torn))
      history.alerts.push_back(alert_of({line.document, line.origin}));
  std::ranges::stable_sort(history.alerts, [](const AlertRecord& a, const AlertRecord& b) {
    return std::tie(a.date, a.withdrawn) < std::tie(b.date, b.withdrawn);
  });
  for (const auto& file : record_files(folder / "accepted"))
    for (const RecordLine& each : lines_of(file, history.torn)) {
      const JsonReader line(each.document, each.origin);
      line.allow_only({"commit", "benchmark", "reason", "date"});
      history.accepted.push_back({line.at("commit").string(), line.at("benchmark").string(), line.at("reason").string(),
                                  line.at("date").string()});
    }
  return history;
}

}  // namespace wt
