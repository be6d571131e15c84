#include "trainer/run_folder/recovery_times.hpp"

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "configs/base/json_reader.hpp"
#include "configs/base/lists.hpp"
#include "trainer/run_folder/files.hpp"
#include "trainer/run_folder/run_lines.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Time of the last fault in the ended generation before its end was detected.
std::optional<double> fault_before(const std::vector<json>& lines, const DrillRestart& r) {
  std::map<std::size_t, double> first;  // by event; later lines only complete the proof
  for (const json& line : lines)
    if (const double time = line.at("unix_s"); line.at("generation") == r.generation && time <= r.detected_unix_s)
      first.emplace(line.at("event").get<std::size_t>(), time);
  std::optional<double> last;
  for (const auto& [event, time] : first) last = std::max(last.value_or(time), time);
  return last;
}

/// When the step was first done after `from`; empty if it was not.
std::optional<double> done_after(const std::vector<json>& steps, std::int64_t step, double from) {
  std::optional<double> at;
  for (const json& row : steps)
    if (const double time = row.at("unix_s"); row.at("step") == step && time > from)
      at = std::min(at.value_or(time), time);
  return at;
}

std::int64_t last_done_before(const std::vector<json>& steps, double time) {
  std::int64_t last = 0;
  for (const json& row : steps)
    if (row.at("unix_s") <= time) last = std::max(last, row.at("step").get<std::int64_t>());
  return last;
}

}  // namespace

std::vector<DrillRestart> restarts_in(const fs::path& agent) {
  const json document = read_json(agent);
  const auto integers = [](const JsonReader& list) { return mapped(list.elements(), &JsonReader::integer); };
  std::vector<DrillRestart> out;
  for (const JsonReader& r : JsonReader(document, agent.string()).at("restarts").elements()) {
    DrillRestart restart;
    restart.generation = static_cast<int>(r.at("generation").integer());
    restart.rank = r.at("rank").integer();
    restart.blamed = integers(r.at("ranks"));
    restart.cause = r.at("cause").string();
    restart.message = r.at("message").string();
    restart.action = r.at("policy").string();
    restart.detected_unix_s = r.at("detected_unix_s").finite();
    restart.nodes = integers(r.at("nodes"));
    restart.stopped_unix_s = restart.detected_unix_s + r.at("stopped_s").finite() - r.at("detected_s").finite();
    out.push_back(restart);
  }
  return out;
}

void measure_recoveries(const fs::path& folder, std::vector<DrillRestart>& restarts) {
  const auto injected = read_lines(folder / kStrikesFile), starts = read_lines(folder / kStartsFile);
  std::vector<json> steps = read_lines(folder / kReplayedFile);
  for (json& row : read_lines(folder / kMetricsFile)) steps.push_back(std::move(row));
  for (std::size_t i = 0; i < restarts.size(); ++i) {
    DrillRestart& r = restarts[i];
    r.fault_unix_s = fault_before(injected, r);
    const double next =
        i + 1 < restarts.size() ? restarts[i + 1].detected_unix_s : std::numeric_limits<double>::infinity();
    const auto start = std::ranges::find_if(starts, [&](const json& s) {
      return s.at("connected_unix_s") > r.detected_unix_s && s.at("connected_unix_s") < next;
    });
    if (start == starts.end()) continue;
    r.resumed_after = start->at("resumed_after");
    r.level = start->value("level", "storage");
    const double connected = start->at("connected_unix_s"), loaded = start->at("loaded_unix_s");
    const auto first = done_after(steps, r.resumed_after + 1, loaded);
    if (!first || *first > next) continue;
    const auto again = done_after(steps, last_done_before(steps, r.detected_unix_s), loaded);
    RecoveryPhases phases;
    if (r.fault_unix_s) phases.detect_s = r.detected_unix_s - *r.fault_unix_s;
    phases.stop_s = r.stopped_unix_s - r.detected_unix_s;
    phases.start_s = connected - r.stopped_unix_s;
    phases.load_s = loaded - connected;
    phases.first_step_s = *first - loaded;
    phases.replay_s = again && *again > *first && *again < next ? *again - *first : 0;
    r.phases = phases;
  }
}

}  // namespace wt
