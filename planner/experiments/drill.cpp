#include "planner/experiments/drill.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "configs/spec/support/atomic_file.hpp"
#include "configs/spec/support/error.hpp"
#include "configs/spec/support/json_reader.hpp"
#include "planner/experiments/output_folder.hpp"
#include "planner/experiments/trainer_process.hpp"
#include "sim/program/build/build.hpp"
#include "trainer/safetensors/tensor_parts.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<json> read_metrics(const fs::path& folder) {
  std::ifstream in(folder / "metrics.jsonl");
  std::vector<json> steps;
  for (std::string line; std::getline(in, line);)
    steps.push_back(parse_json(line, (folder / "metrics.jsonl").string()));
  return steps;
}

/// Training state of the newest checkpoint, by key.
std::map<std::string, std::vector<float>> read_state(const fs::path& folder) {
  std::ifstream latest(folder / "checkpoints" / "latest");
  std::string name;
  std::getline(latest, name);
  const StoredTensors stored = StoredTensors::of_checkpoint(folder / "checkpoints" / name);
  std::map<std::string, std::vector<float>> state;
  for (const std::string& key : stored.keys()) state[key] = stored.read(key);
  return state;
}

/// Bitwise: NaNs with the same bits are equal, 0 and -0 are not.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::equal(reinterpret_cast<const char*>(a.data()), reinterpret_cast<const char*>(a.data() + a.size()),
                    reinterpret_cast<const char*>(b.data()));
}

void compare_metrics(const std::vector<json>& expected, const std::vector<json>& found, DrillCase& out) {
  out.losses_equal = out.samples_equal = expected.size() == found.size();
  if (!out.losses_equal)
    out.differences.push_back(fmt::format("{} steps instead of {}", found.size(), expected.size()));
  for (std::size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    for (const char* key : {"loss", "aux_loss", "z_loss", "mtp_losses", "grad_norm", "lr"}) {
      const json before = expected[i].value(key, json()), after = found[i].value(key, json());
      if (before == after) continue;
      if (out.losses_equal)
        out.differences.push_back(fmt::format("step {}: {} is {}, not {}", i + 1, key, after.dump(), before.dump()));
      out.losses_equal = false;
    }
    if (expected[i].at("samples") != found[i].at("samples")) {
      if (out.samples_equal) out.differences.push_back(fmt::format("step {}: other samples", i + 1));
      out.samples_equal = false;
    }
  }
}

void compare_state(const std::map<std::string, std::vector<float>>& expected,
                   const std::map<std::string, std::vector<float>>& found, DrillCase& out) {
  out.parameters_equal = out.optimizer_equal = expected.size() == found.size() && !expected.empty();
  for (const auto& [key, values] : expected) {
    const auto it = found.find(key);
    if (it != found.end() && same_bits(values, it->second)) continue;
    bool& equal = is_optimizer_key(key) ? out.optimizer_equal : out.parameters_equal;
    if (equal) out.differences.push_back(key + " differs");
    equal = false;
  }
}

/// What the agent and the metrics say of the recovery.
void read_recovery(const fs::path& folder, DrillCase& out) {
  const json agent = read_json(folder / "agent.json");
  out.restarts = static_cast<std::int64_t>(agent.at("restarts").size());
  if (out.restarts == 0) return;
  const json& first = agent["restarts"][0];
  out.cause =
      fmt::format("rank {} ended with {}", first.at("rank").get<std::int64_t>(), first.at("cause").get<std::string>());
  out.resumed_after = first.at("resumed_after").get<std::int64_t>();
  out.replayed = first.at("steps_done").get<std::int64_t>() - out.resumed_after;
  for (const json& step : read_metrics(folder))
    if (step.at("step") == out.resumed_after + 1)
      out.recovery_s = step.at("unix_s").get<double>() - first.at("detected_unix_s").get<double>();
}

}  // namespace

bool DrillResult::passed() const {
  return !cases.empty() && std::all_of(cases.begin(), cases.end(), [](const DrillCase& c) { return c.passed(); });
}

DrillResult run_drill(const FaultSpec& faults, const RunSpec& run, const fs::path& folder,
                      const std::function<void(const std::string&)>& said) {
  const ProgramSet programs = build_program_set(run.model, run.layout, program_options(run));
  std::vector<std::string> ids;
  for (const OpInstance& op : unroll(programs.programs[0])) ids.push_back(op.id());
  check_fault_spec(faults, run, ids);

  take_output_folder(folder, "drill");
  const fs::path run_file = folder / "run.yaml";
  write_file_atomically(run_file, run_to_yaml(run));
  const auto train = [&](const fs::path& out, const std::vector<std::string>& more) {
    fs::remove_all(out);
    fs::create_directories(out);
    std::vector<std::string> arguments{"train", run_file.string(), "-o", out.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    run_trainer(arguments, out / "log.txt");
  };
  said(fmt::format("training {} steps undisturbed", run.steps));
  train(folder / "undisturbed", {});
  const auto expected_metrics = read_metrics(folder / "undisturbed");
  const auto expected_state = read_state(folder / "undisturbed");

  DrillResult result{faults.name, run.name, run.steps, {}};
  for (std::size_t i = 0; i < faults.cases.size(); ++i) {
    DrillCase out;
    out.name = faults.cases[i].name;
    out.fault = inject_text(faults.cases[i]);
    said(fmt::format("injecting: {} ({})", out.name, out.fault));
    const fs::path place = folder / fmt::format("case-{}", i + 1);
    train(place, {"--inject", out.fault});
    read_recovery(place, out);
    if (out.cause.empty()) out.differences.push_back("the fault never struck");
    compare_metrics(expected_metrics, read_metrics(place), out);
    compare_state(expected_state, read_state(place), out);
    said(fmt::format("{}: {}; recovered from step {} in {:.1f} s, {}", out.name, out.cause, out.resumed_after,
                     out.recovery_s, out.passed() ? "bitwise equal" : "NOT EQUAL: " + out.differences.front()));
    result.cases.push_back(std::move(out));
  }
  return result;
}

json to_json(const DrillResult& result) {
  json cases = json::array();
  for (const DrillCase& c : result.cases)
    cases.push_back({{"name", c.name},
                     {"fault", c.fault},
                     {"cause", c.cause},
                     {"restarts", c.restarts},
                     {"resumed_after", c.resumed_after},
                     {"steps_replayed", c.replayed},
                     {"recovery_s", c.recovery_s},
                     {"losses_equal", c.losses_equal},
                     {"samples_equal", c.samples_equal},
                     {"parameters_equal", c.parameters_equal},
                     {"optimizer_equal", c.optimizer_equal},
                     {"differences", c.differences},
                     {"passed", c.passed()}});
  return {{"schema", "windtunnel.drill/1"}, {"name", result.name},       {"run", result.run},
          {"steps", result.steps},          {"passed", result.passed()}, {"cases", cases}};
}

}  // namespace wt
