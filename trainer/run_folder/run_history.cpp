#include "trainer/run_folder/run_history.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/files/run.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Every line that ends; the last one may be half written.
template <class Each>
void for_lines(const fs::path& file, std::vector<std::string>& torn, Each each) {
  std::ifstream in(file);
  std::int64_t number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    if (in.eof() && !text.empty()) torn.push_back(fmt::format("{}:{}", file.filename().string(), number));
    if (!in.eof() && !text.empty()) each(text, fmt::format("{}:{}", file.string(), number));
  }
}

/// The complete line after an incomplete one: the longest suffix of `text` that is a JSON object (so the outermost
/// one), or "".
std::string whole_behind(const std::string& text) {
  constexpr int kMostObjects = 64;  // our lines have a few; each try parses to the end
  std::string out;
  std::size_t at = text.size();
  for (int tried = 0; tried < kMostObjects && at > 0; ++tried) {
    at = text.rfind("{\"", at - 1);
    if (at == std::string::npos) break;
    if (json::accept(text.begin() + static_cast<std::ptrdiff_t>(at), text.end())) out = text.substr(at);
  }
  return out;
}

/// The same for a file that starts append to: any line may be incomplete, with a complete one after it.
template <class Each>
void for_appended_lines(const fs::path& file, std::vector<std::string>& torn, Each each) {
  for_lines(file, torn, [&](const std::string& text, const std::string& where) {
    if (json::accept(text)) return each(text, where);
    torn.push_back(fs::path(where).filename().string());
    if (const std::string behind = whole_behind(text); !behind.empty()) each(behind, where);
  });
}

std::vector<StepLine> read_steps(const fs::path& file, std::vector<std::string>& torn) {
  std::vector<StepLine> out;
  for_lines(file, torn, [&](const std::string& text, const std::string& where) {
    out.push_back(step_line(text, where));
    if (out.size() > 1) check_rising(out[out.size() - 2].step, out.back().step, where);
  });
  return out;
}

std::vector<StepLine> read_lost(const fs::path& file, std::vector<std::string>& torn) {
  std::vector<StepLine> out;
  for_appended_lines(file, torn, [&](const auto& text, const auto& where) { out.push_back(step_line(text, where)); });
  std::ranges::stable_sort(out, {}, &StepLine::unix_s);
  return out;
}

std::vector<RunStart> read_starts(const fs::path& file, std::vector<std::string>& torn) {
  std::vector<RunStart> out;
  for_appended_lines(file, torn, [&](const std::string& text, const std::string& where) {
    const json line = without_lists(text, where);
    out.push_back({start_line(JsonReader(line, where))});
  });
  return out;
}

/// Steps of both files, in time order.
std::vector<const StepLine*> in_time(const RunHistory& run) {
  std::vector<const StepLine*> out;
  for (const auto* lines : {&run.steps, &run.lost})
    for (const StepLine& line : *lines) out.push_back(&line);
  std::ranges::stable_sort(out, {}, &StepLine::unix_s);
  return out;
}

/// Finds the steps that each later start lost.
void find_losses(RunHistory& run) {
  const auto lines = in_time(run);
  const auto after = [&](double time) { return std::ranges::upper_bound(lines, time, {}, &StepLine::unix_s); };
  for (std::size_t i = 1; i < run.starts.size(); ++i) {
    RunStart& start = run.starts[i];
    const auto first = after(start.connected_unix_s);
    const auto since = after(run.starts[i - 1].connected_unix_s);
    start.reached = run.starts[i - 1].resumed_after;
    for (auto it = since; it < first; ++it)  // no steps between the two starts
      start.reached = std::max(start.reached, (*it)->step);
    start.lost = std::max<std::int64_t>(0, start.reached - start.resumed_after);
    if (first != lines.begin() && first != lines.end())
      start.away_s = std::max(0.0, (*first)->unix_s - (*first)->step_s - (*std::prev(first))->unix_s);
  }
}

/// An agent.json belongs to the last launch only. Each of its restarts belongs to the next start.
void match_agent(const fs::path& file, std::vector<RunStart>& starts) {
  if (!fs::exists(file)) return;
  for (const DrillRestart& restart : restarts_in(file)) {
    const auto start =
        std::ranges::find_if(starts, [&](const RunStart& s) { return s.connected_unix_s > restart.detected_unix_s; });
    if (start != starts.end()) start->agent = restart;
  }
}

/// A run file of another version may have unknown keys. Then the report has no figures from it.
void read_run_file(const fs::path& file, RunHistory& out) try {
  if (!fs::exists(file)) return;
  const RunSpec run = read_run(file);
  out.name = run.name, out.layout = run.layout.name(), out.device = to_string(run.device);
  out.planned_steps = run.steps, out.tokens_per_step = run.tokens_per_step();
} catch (const Error&) {
  out.name = file.parent_path().filename().string();
}

}  // namespace

RunHistory read_run_history(const fs::path& folder) {
  if (!fs::is_regular_file(folder / kMetricsFile))
    throw_usage(
        "{}: found no metrics.jsonl in it, needs the folder of a run; name the one that windtunnel train -o wrote",
        folder.string());
  RunHistory out;
  out.steps = read_steps(folder / kMetricsFile, out.torn);
  out.lost = read_lost(folder / kReplayedFile, out.torn);
  out.starts = read_starts(folder / kStartsFile, out.torn);
  read_run_file(folder / kRunFile, out);
  for_appended_lines(folder / kSavesFile, out.torn, [&](const std::string& text, const std::string& where) {
    const json line = parse_json(text, where);
    out.saves.push_back(save_line(JsonReader(line, where)));
  });
  for_appended_lines(folder / kEvaluationsFile, out.torn, [&](const std::string& text, const std::string& where) {
    const json line = parse_json(text, where);
    out.evaluations.push_back(evaluation_line(JsonReader(line, where)));
  });
  if (const auto diverged = read_diverged(folder)) out.diverged = diverged->step;
  out.ended = fs::exists(folder / kSummaryFile);
  find_losses(out);
  match_agent(folder / kAgentFile, out.starts);
  return out;
}

double RunTimes::rest_s() const { return std::max(0.0, wall_s - counted_s - lost_s - away_s - saving_s); }

RunTimes run_times(const RunHistory& run) {
  RunTimes out;
  const auto lines = in_time(run);
  if (lines.empty()) return out;
  const double first_step_s = lines.front()->unix_s - lines.front()->step_s;
  const double begin_s =
      run.starts.empty() ? first_step_s : std::min(run.starts.front().connected_unix_s, first_step_s);
  out.wall_s = lines.back()->unix_s - begin_s;
  for (const StepLine& line : run.steps) out.counted_s += line.step_s;
  for (const StepLine& line : run.lost) out.lost_s += line.step_s;
  for (const RunStart& start : run.starts) out.away_s += start.away_s.value_or(0);
  for (const SaveLine& save : run.saves) out.saving_s += save.blocking_s;
  return out;
}

}  // namespace wt
