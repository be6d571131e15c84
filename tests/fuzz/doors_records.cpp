#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/health/dcgm.hpp"
#include "bench/health/observation.hpp"
#include "bench/health/training.hpp"
#include "bench/health/xid.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/files/scenario.hpp"
#include "planner/evaluate/evaluation.hpp"
#include "planner/evaluate/harness_results.hpp"
#include "planner/watch/decision_log.hpp"
#include "planner/watch/ledger.hpp"
#include "planner/watch/plan_baseline.hpp"
#include "reports/render/render.hpp"
#include "reports/render/text_report.hpp"
#include "sim/months/fault_laws.hpp"
#include "tests/fuzz/door.hpp"
#include "trainer/run_folder/recovery_times.hpp"
#include "trainer/run_folder/run_history.hpp"

namespace wt::fuzz {
namespace {

namespace fs = std::filesystem;

std::string resumed(const char* file) { return sample(fs::path("tests/data/run_resumed") / file, 2500); }

/// A run folder with this text in place of one of its files.
void read_run_folder(const std::string& name, const std::string& input, const fs::path& folder) {
  for (const char* file : {"metrics.jsonl", "generations.jsonl", "replayed.jsonl", "checkpoints.jsonl", "agent.json"})
    written(folder, file, resumed(file));
  written(folder, name, input);
  run_times(read_run_history(folder));
}

std::string decisions_seed() {
  NodeLedger ledger;
  ledger.cordoned["node-1"] = {1, false};
  ledger.causes["loss"] = {1, 800, true, 700};
  ledger.skipped = {{801, 1000}};
  ledger.breaker = "3 of 8 nodes";
  return nlohmann::json{{"schema", "windtunnel.decision/1"}, {"ledger", ledger}}.dump() + "\n";
}

}  // namespace

std::vector<Door> record_doors() {
  std::vector<Door> doors;
  doors.push_back({"report", {}, [](const auto& input, const auto&) {
                     const Report report = report_from_json(parse_json(input, "report.json"), "report.json");
                     text_report(report), markdown_report(report), html_report(report), report_json(report);
                   }});
  doors.push_back({"plan", {}, [](const auto& input, const fs::path& folder) {
                     read_planned_run(written(folder, "plan.json", input));
                   }});
  doors.push_back({"metrics", {}, [](const auto& input, const fs::path& folder) {
                     written(folder, "metrics.jsonl", input);
                     written(folder, "generations.jsonl", input);
                     diagnose(read_training(folder, 1.8e9));
                   }});
  for (const char* file : {"metrics.jsonl", "generations.jsonl", "replayed.jsonl", "checkpoints.jsonl", "agent.json"})
    doors.push_back({fmt::format("run_folder_{}", fs::path(file).stem().string()),
                     {resumed(file)},
                     [file](const auto& input, const fs::path& folder) { read_run_folder(file, input, folder); }});
  doors.push_back({"decisions", {decisions_seed()}, [](const auto& input, const fs::path& folder) {
                     written(folder, "decisions.jsonl", input);
                     read_ledger(folder);
                   }});
  doors.push_back({"fleet", {}, [](const auto& input, const auto&) {
                     to_json(fleet_from_json(parse_json(input, "fleet.json"), "fleet.json"));
                   }});
  doors.push_back({"dcgm", {}, [](const auto& input, const auto&) { nodes_from_dcgm(input, "metrics", "node"); }});
  doors.push_back({"kernel_log", {}, [](const auto& input, const auto&) {
                     for (const XidEvent& event : read_kernel_log(input).events) advice(event);
                   }});
  doors.push_back({"lm_eval_results", {}, [](const auto& input, const auto&) {
                     evaluation_from_results(parse_json(input, "results.json"), "results.json");
                   }});
  doors.push_back({"evaluation_record", {}, [](const auto& input, const auto&) {
                     evaluation_from_json(parse_json(input, "evaluation.json"), "evaluation.json");
                   }});
  doors.push_back({"fault_trace", {}, [](const auto& input, const fs::path& folder) {
                     Scenario scenario;
                     FaultEvent event;
                     event.who.domain = FaultDomain::node;
                     event.when.by = FaultTime::By::trace;
                     event.when.trace = written(folder, "trace.csv", input);
                     scenario.events = {event};
                     FaultLaws laws;
                     add_scenario(scenario, {}, {8, 0, 8}, laws);
                   }});
  return doors;
}

}  // namespace wt::fuzz
