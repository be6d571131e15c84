#include "planner/experiments/drill.hpp"

#include <string.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "configs/base/atomic_file.hpp"
#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_members.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/output_folder.hpp"
#include "configs/files/find.hpp"
#include "planner/experiments/drill_invariants.hpp"
#include "planner/experiments/drill_prediction.hpp"
#include "planner/experiments/drill_proof.hpp"
#include "sim/program/compose/drill_ops.hpp"
#include "trainer/process/trainer_process.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {

WT_TO_JSON(RecoveryPhases, detect_s, stop_s, start_s, load_s, first_step_s, replay_s)
WT_TO_JSON(DrillRestart, relaunch, generation, rank, blamed, cause, message, resumed_after, level)
WT_TO_JSON(DrillCase, name, relaunches, steps_lost, losses_equal, samples_equal, parameters_equal, optimizer_equal,
           differences)

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// "signal 9 (Killed)", "exit status 75": in the agent's words for ranks.
std::string end_text(int status) {
  return status > 128 ? fmt::format("signal {} ({})", status - 128, strsignal(status - 128))
                      : fmt::format("exit status {}", status);
}

/// A longer launch hangs: neither a fault nor a recovery slows a run down this much.
double launch_limit_s(const Scenario& scenario, const RunSpec& run, const fs::path& undisturbed) {
  double limit = 600 + 10 * read_json(undisturbed / kAgentFile).at("wall_s").get<double>();
  for (const FaultEvent& e : scenario.events)
    limit += e.repeats * (run.dist_timeout_s + e.lasts_s.value_or(0) + e.what.notice_s);
  return limit;
}

/// Calls train until it succeeds, as often as the scenario's scheduler would. Returns its last status.
int train_with_faults(const fs::path& run_file, const Scenario& scenario, const fs::path& place, double limit_s,
                      DrillCase& out) {
  for (;; ++out.relaunches) {
    const int before = static_cast<int>(out.restarts.size());
    setenv("WINDTUNNEL_GENERATIONS_BEFORE", std::to_string(before).c_str(), 1);
    const fs::path log = place / fmt::format("log{}.txt", out.relaunches > 0 ? std::to_string(out.relaunches + 1) : "");
    const auto ended =
        try_trainer({"train", run_file.string(), "-o", place.string(), "--faults", (place / "scenario.yaml").string()},
                    log, limit_s);
    if (!ended) out.differs("the run had not ended after {:.0f} s and was killed", limit_s);
    const int status = ended.value_or(128 + SIGKILL);
    if (fs::exists(place / kAgentFile)) {
      for (DrillRestart& r : restarts_in(place / kAgentFile)) {
        r.generation += before;
        out.restarts.push_back(std::move(r));
      }
      if (out.relaunches < scenario.expect.relaunches)
        fs::rename(place / kAgentFile, place / fmt::format("agent{}.json", out.relaunches + 1));
    }
    if (status == 0 || out.relaunches == scenario.expect.relaunches) return status;
    DrillRestart relaunch;
    relaunch.relaunch = true;
    relaunch.generation = static_cast<int>(out.restarts.size());
    relaunch.cause = end_text(status);
    relaunch.message = tail_of(log);
    relaunch.detected_unix_s = relaunch.stopped_unix_s = clock_s(CLOCK_REALTIME);
    out.restarts.push_back(relaunch);
  }
}

/// All output of the trainer and its agent.
std::string said_in(const fs::path& place, const DrillCase& out) {
  std::stringstream all;
  for (const auto& entry : fs::directory_iterator(place))
    if (entry.path().filename().string().starts_with("log")) all << std::ifstream(entry.path()).rdbuf();
  for (const DrillRestart& r : out.restarts) all << r.message << "\n";
  return all.str();
}

void judge(const Scenario& scenario, const RunSpec& run, int status, const fs::path& undisturbed, const fs::path& place,
           DrillCase& out) {
  const Expectation& expect = scenario.expect;
  check_nothing_left(place, out);
  measure_recoveries(place, out.restarts);
  prove_faults(scenario, run, place, out);
  check_replays(place, run.steps, expect, out);
  check_generations(place, out);
  check_recoveries(place, scenario, out);
  if (status == 0 && !expect.finishes) out.differs("the run ended well, which was not expected");
  if (status != 0 && expect.finishes)
    out.differs("the run ended with {}: {}", end_text(status), tail_of(place / "log.txt"));
  if (!expect.says.empty() && said_in(place, out).find(expect.says) == std::string::npos)
    out.differs("nobody said '{}'", expect.says);
  if (status == 0 && run.save) check_memory_given_back(place, out);
  if (status == 0) compare_with_undisturbed(undisturbed, place, expect, out);
}

/// If a replica rejoins, replicas compare their state after every step, because losses alone would not show a
/// difference.
RunSpec compared_at_rejoin(const Scenario& scenario, RunSpec run) {
  const auto& ways = scenario.policy.on_loss;
  const auto any = [&](auto&& of) { return std::ranges::any_of(scenario.events, of); };
  const bool rejoins = std::ranges::count(ways, Recovery::without_replica) > 0 &&
                       any([](const FaultEvent& e) { return e.lasts_s.has_value(); });
  std::int64_t& interval = run.resilience.verify_interval;
  // A comparison would find a corrupted number, but the scenario says that it stays unnoticed.
  if (rejoins && interval == 0 && !any([](const FaultEvent& e) { return e.what.kind == FaultKind::corrupt; }))
    interval = 1;
  return run;
}

}  // namespace

bool DrillResult::passed() const {
  return !cases.empty() && std::ranges::all_of(cases, [](const DrillCase& c) { return c.passed(); });
}

DrillInput read_drill_input(const std::string& name_or_file) {
  DrillInput out{read_scenario(name_or_file), {}};
  if (out.scenario.run.empty())
    throw_usage("{}: run: found none, a drill needs the run that faults are injected into; simulated months need none",
                out.scenario.file.string());
  out.run = read_run(find_config("runs", out.scenario.run));
  return out;
}

DrillResult run_drill(const std::vector<DrillInput>& inputs, const fs::path& output,
                      const std::function<void(const std::string&)>& said) {
  const fs::path folder = fs::absolute(output);  // its processes are recognised by this path
  std::set<std::string> names;
  for (const auto& [scenario, run, drawn] : inputs) {
    check_drill(scenario, run);
    if (!names.insert(scenario.name).second)
      throw_usage("{}: name: found '{}' twice, each scenario of a drill needs its own", scenario.file.string(),
                  scenario.name);
  }
  take_output_folder(folder, "drill");
  std::map<std::string, fs::path> undisturbed;  // by run
  std::vector<fs::path> references;             // by case
  DrillResult result;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& [scenario, asked, drawn] = inputs[i];
    const RunSpec run = compared_at_rejoin(scenario, asked);
    const auto [reference, first] =
        undisturbed.try_emplace(run_to_yaml(run), folder / fmt::format("undisturbed-{}", i + 1));
    const fs::path run_file = reference->second.string() + ".yaml", place = folder / fmt::format("case-{}", i + 1);
    for (const fs::path& old : {place, first ? reference->second : fs::path()}) {
      if (old.empty()) continue;
      fs::remove_all(old);
      fs::create_directories(old);
    }
    if (first) {
      said(fmt::format("training {} steps of {} undisturbed", run.steps, run.name));
      write_file_atomically(run_file, run_to_yaml(run));
      run_trainer({"train", run_file.string(), "-o", reference->second.string()}, reference->second / "log.txt");
    }
    DrillCase out;
    out.name = scenario.name;
    out.compared = scenario.expect.finishes ? scenario.expect.state : Expectation::State::any;
    fs::copy_file(scenario.file, place / "scenario.yaml");
    const int status =
        train_with_faults(run_file, scenario, place, launch_limit_s(scenario, run, reference->second), out);
    judge(scenario, run, status, reference->second, place, out);
    if (drawn && out.passed()) fs::remove_all(place);
    said(fmt::format("{}: {}", out.name, out.passed() ? "passed" : "FAILED: " + out.differences.front()));
    result.cases.push_back(std::move(out));
    references.push_back(reference->second);
  }
  predict_recoveries(inputs, references, result);
  fs::create_directories(folder / "recovery");
  for (const MeasuredRecovery& m : result.measured)
    write_file_atomically(folder / "recovery" / (m.run + ".yaml"), to_yaml(m));
  return result;
}

json to_json(const DrillResult& result) {
  json cases = json::array();
  for (const DrillCase& c : result.cases) {
    json restarts = json::array();
    for (const DrillRestart& r : c.restarts) {
      restarts.push_back(r);
      if (r.phases) restarts.back()["phases"] = *r.phases;
    }
    json predicted;
    if (c.predicted) predicted = {{"recovery_s", total_recovery_s(*c.predicted)}, {"strikes", to_json(*c.predicted)}};
    cases.emplace_back(c).update({{"struck", c.proofs},
                                  {"restarts", restarts},
                                  {"recovery_s", total_recovery_s(c.restarts)},
                                  {"predicted", predicted},
                                  {"passed", c.passed()}});
  }
  return {{"schema", "windtunnel.drill/3"}, {"passed", result.passed()}, {"cases", cases}};
}

}  // namespace wt
