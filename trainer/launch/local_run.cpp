#include "trainer/launch/local_run.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "trainer/faults/fault_point.hpp"
#include "trainer/launch/agent.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {
namespace {

using nlohmann::json;

/// "step-00000005" -> 5; 0 if the name is not a checkpoint's.
std::int64_t step_of(const std::string& checkpoint) {
  std::int64_t step = 0;
  if (checkpoint.starts_with("step-"))
    std::from_chars(checkpoint.data() + 5, checkpoint.data() + checkpoint.size(), step);
  return step;
}

RunProgress progress_of(const std::filesystem::path& folder) {
  RunProgress progress;
  std::ifstream latest(folder / kCheckpointsFolder / "latest"), metrics(folder / kMetricsFile),
      starts(folder / kStartsFile);
  std::getline(latest, progress.checkpoint);
  progress.safe_step = step_of(progress.checkpoint);
  for (std::string line; std::getline(starts, line);)
    if (const auto start = json::parse(line, nullptr, false); start.is_object() && start.contains("level"))
      progress.safe_step = std::max(progress.safe_step, start.value("resumed_after", std::int64_t{0}));
  for (std::string line; std::getline(metrics, line);)
    if (const auto entry = json::parse(line, nullptr, false); entry.is_object())
      progress.steps_done = entry.value("step", progress.steps_done);
  return progress;
}

/// How long a node stays away after the event of strikes.jsonl that hit it in this generation; empty: no such event, or
/// forever.
std::optional<double> repair_s(const LocalRun& local, int generation, std::int64_t node) {
  std::optional<double> out;
  std::ifstream in(local.folder / kStrikesFile);
  for (std::string line; local.scenario && std::getline(in, line);) {
    const json strike = json::parse(line, nullptr, false);
    if (!strike.is_object() || strike.value("generation", -1) != generations_before() + generation ||
        strike.value("node", -1) != node)
      continue;
    if (const auto event = strike.value("event", std::size_t{0}); event < local.scenario->events.size())
      out = local.scenario->events[event].lasts_s;
  }
  return out;
}

json to_json(const RestartRecord& r) {
  json out{{"generation", r.generation},
           {"rank", r.end.rank},
           {"ranks", r.end.ranks},
           {"ranks_nodes", r.ranks_nodes},
           {"cause", r.end.cause},
           {"message", r.end.message},
           {"detected_s", r.end.detected_s},
           {"detected_unix_s", r.end.detected_unix_s},
           {"stopped_s", r.end.stopped_s},
           {"checkpoint", r.reached.checkpoint},
           {"checkpoint_step", step_of(r.reached.checkpoint)},
           {"steps_done", r.reached.steps_done},
           {"policy", r.policy},
           {"layout", r.layout},
           {"nodes", r.nodes},
           {"excluded", r.excluded}};
  if (!r.ranks_nodes.empty()) out["node"] = r.ranks_nodes.front();
  if (r.regrouped) {
    out["resumed_after"] = r.regrouped->steps_done;
    out["trains_s"] = r.regrouped->trains_s;
  }
  return out;
}

void write_record(const std::filesystem::path& folder, const AgentResult& result) {
  json restarts = json::array();
  for (const RestartRecord& r : result.restarts) restarts.push_back(to_json(r));
  write_file_atomically(
      folder / kAgentFile,
      json{{"wall_s", result.wall_s}, {"restarts", restarts}, {"excluded", result.excluded}}.dump(1) + "\n");
}

/// A run in another layout gets its own file, which the ranks read in place of the run file.
std::vector<std::string> rank_command(const LocalRun& local, const RunSpec& run) {
  std::string file = local.run_file;
  if (run.layout.name() != local.run.layout.name()) {
    file = (local.folder / kRemainingFile).string();
    write_file_atomically(file, run_to_yaml(run));
  }
  std::vector<std::string> out{std::filesystem::read_symlink("/proc/self/exe").string(), "train", file, "-o",
                               local.folder.string()};
  out.insert(out.end(), local.arguments.begin(), local.arguments.end());
  return out;
}

}  // namespace

bool train_on_this_machine(const LocalRun& local) {
  AgentOptions agent;
  agent.run = local.run;
  agent.max_restarts = local.max_restarts;
  agent.held = local.held;
  if (local.scenario) {
    agent.nodes = local.scenario->nodes;
    agent.policy = local.scenario->policy;
    if (agent.policy.max_restarts) agent.max_restarts = static_cast<int>(*agent.policy.max_restarts);
  }
  agent.command = [&](const RunSpec& run) { return rank_command(local, run); };
  agent.progress = [&] { return progress_of(local.folder); };
  agent.repair_s = [&](int generation, std::int64_t node) { return repair_s(local, generation, node); };
  agent.record = [&](const AgentResult& result) { write_record(local.folder, result); };
  return !train_with_agent(agent).ended_on_request;
}

}  // namespace wt
