#include "planner/experiments/demo.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/gate/gate.hpp"
#include "configs/spec/find.hpp"
#include "configs/spec/support/atomic_file.hpp"
#include "configs/spec/support/error.hpp"
#include "configs/spec/support/json_reader.hpp"
#include "configs/spec/support/quantity.hpp"
#include "planner/experiments/output_folder.hpp"
#include "planner/experiments/system_text.hpp"
#include "planner/experiments/trainer_process.hpp"
#include "reports/build/plan_report.hpp"
#include "reports/build/proof_report.hpp"
#include "reports/render/chrome_trace.hpp"
#include "reports/render/write.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Trains `run` into a fresh folder, one of the demo's own.
void train(const RunSpec& run, const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  const fs::path file = folder / "asked.yaml";
  write_file_atomically(file, run_to_yaml(run));
  run_trainer({"train", file.string(), "-o", folder.string()}, folder / "log.txt");
}

std::pair<double, double> first_and_last_loss(const fs::path& folder) {
  std::ifstream in(folder / "metrics.jsonl");
  std::string line, last;
  std::getline(in, line);
  for (std::string next; std::getline(in, next);) last = next;
  const std::string origin = (folder / "metrics.jsonl").string();
  return {parse_json(line, origin).at("loss"), parse_json(last, origin).at("loss")};
}

std::string comparison_line(const RunComparison& c) {
  return fmt::format(
      "{} ({}): step {} predicted, {} measured ({:+.1f} %); exposed communication off by {:+.1f} % of the step; peak "
      "memory {:+.2f} %",
      c.name, c.layout, format_seconds(c.predicted_step_s()), format_seconds(c.measured_step_s()), 100 * c.step_error(),
      100 * c.exposed_error(), 100 * c.peak_error());
}

/// Two sides of the same code, in processes that take turns: what the gate finds here is a false alarm.
GateResult compare_code_with_itself(const fs::path& run_file, const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::vector<fs::path> base, current;
  for (int i = 1; i <= 3; ++i)
    for (auto* side : {&base, &current}) {
      const fs::path file = folder / fmt::format("{}-{}.json", side == &base ? "base" : "new", i);
      run_trainer({"bench", "kernels", "--quick", "--samples", "3", "--run", run_file.string(), "-o", file.string()},
                  folder / "log.txt");
      side->push_back(file);
    }
  return compare(read_gate_input(base), read_gate_input(current));
}

}  // namespace

bool DemoResult::passed() const {
  return std::any_of(comparisons.begin(), comparisons.end(), [](const RunComparison& c) { return !c.calibrated_on; }) &&
         broken_bars(comparisons).empty() && drill.passed();
}

std::vector<RunSpec> unseen_runs(const RunSpec& calibration) {
  std::vector<RunSpec> out;
  RunSpec mesh = calibration;
  mesh.name = "other-mesh";
  mesh.layout.replicate = 1, mesh.layout.shard = 4, mesh.layout.expert = 4;
  out.push_back(mesh);
  RunSpec data_parallel = calibration;
  data_parallel.name = "data-parallel";
  data_parallel.layout.replicate = 4, data_parallel.layout.shard = 1, data_parallel.layout.expert = 1;
  out.push_back(data_parallel);
  RunSpec width = calibration;
  width.name = "wider-shallower";
  width.model.name = "demo-moe-wide";
  width.model.d_model = calibration.model.d_model * 4 / 3, width.model.layers = calibration.model.layers - 1;
  width.model.heads = calibration.model.heads * 4 / 3, width.model.ffn = calibration.model.ffn * 4 / 3;
  out.push_back(width);
  for (RunSpec& run : out) {
    run.save = false;
    check_run(run, "demo run " + run.name);
  }
  return out;
}

DemoResult run_demo(const DemoOptions& options,
                    const std::function<void(int, const std::string&, const std::string&)>& stage) {
  DemoResult result;
  const fs::path& folder = options.folder;
  take_output_folder(folder, "demo");
  take_output_folder(folder / "drill", "drill");  // what stage 7 would refuse is refused before the others' work
  RunSpec run = read_run(find_config("runs", "demo"));
  run.data = system_text_folder(folder, run.seq);
  stage(1, "data", ensure_system_text(run.data, run.seq));

  train(run, folder / "train");
  const json summary = read_json(folder / "train" / "summary.json");
  std::tie(result.first_loss, result.last_loss) = first_and_last_loss(folder / "train");
  result.tokens_per_s = summary.at("tokens_per_s");
  if (result.last_loss >= result.first_loss)
    throw_error(Code::finding, "training: loss went from {} to {}, it should fall; see {}", result.first_loss,
                result.last_loss, (folder / "train" / "metrics.jsonl").string());
  stage(2, "train",
        fmt::format("{} steps of {} ({} M parameters, {}): loss {:.3f} -> {:.3f}, {:.0f} tokens/s", run.steps,
                    run.model.name, run.model.total_parameters() / 1000000, run.layout.name(), result.first_loss,
                    result.last_loss, result.tokens_per_s));

  const fs::path bench = folder / "bench.json";
  run_trainer({"bench", "--quick", "--run", (folder / "train" / "asked.yaml").string(), "-o", bench.string()},
              folder / "bench.log");
  const Profile suites = read_profile(bench);
  stage(3, "bench",
        fmt::format("{} kernels, collectives and storage shapes measured on {}", suites.measurements.size(),
                    suites.fingerprint.count("cpu_model") ? suites.fingerprint.at("cpu_model") : "this machine"));

  CalibrationResult calibration = calibrate({suites, read_profile(folder / "train" / "profile.json")});
  write_machine(calibration.model.data(), folder / "machine.json");
  double items = 0, ops = 0;
  std::int64_t item_classes = 0, op_classes = 0;
  for (const ClassResidual& r : calibration.residuals) {
    if (r.how == "fit") items += r.median_error, ++item_classes;
    if (r.how == "op") ops += r.median_error, ++op_classes;
  }
  stage(4, "calibrate",
        fmt::format("{} classes; median error {:.1f} % over {} kernel fits, {:.1f} % over {} kinds of ops",
                    calibration.residuals.size(), item_classes ? 100 * items / static_cast<double>(item_classes) : 0.0,
                    item_classes, op_classes ? 100 * ops / static_cast<double>(op_classes) : 0.0, op_classes));

  const ClusterSpec cluster = this_machine(run.layout.world());
  result.comparisons.push_back(compare_run(run, folder / "train", cluster, calibration.model));
  result.comparisons.back().calibrated_on = true;
  std::string lines = comparison_line(result.comparisons.back()) + " [calibrated on]";
  for (const RunSpec& unseen : unseen_runs(run)) {
    train(unseen, folder / unseen.name);
    result.comparisons.push_back(compare_run(unseen, folder / unseen.name, cluster, calibration.model));
    lines += "\n" + comparison_line(result.comparisons.back());
  }
  const RunComparison& shown = result.comparisons[1];
  write_file_atomically(folder / "trace.json", chrome_trace({{"predicted", shown.predicted_timelines},
                                                             {"measured", shown.measured_timelines}}));
  stage(5, "simulate", lines + disturbance(result.comparisons));

  const PlanInputs inputs = read_plan_inputs(read_study(options.study), false);
  const Plan plan = make_plan(inputs);
  const std::vector<SensitivityRow> dependence = sensitivities(inputs, plan);
  write_plan(inputs, plan, dependence, folder / "plan");
  stage(6, "plan", plan_answer(inputs, plan) + "\nRange: " + plan_range(inputs, plan));

  const FaultSpec faults = read_fault_spec(options.faults);
  RunSpec drilled = read_run(find_config("runs", faults.run));
  drilled.data = run.data;
  result.drill = run_drill(faults, drilled, folder / "drill", [](const std::string&) {});
  stage(7, "drill",
        fmt::format("{} faults injected, recovery {}", result.drill.cases.size(),
                    result.drill.passed() ? "bitwise exact in every case" : "NOT exact"));

  const GateResult gate = compare_code_with_itself(folder / "train" / "asked.yaml", folder / "gate");
  stage(8, "gate", "this build against itself, three interleaved processes a side: " + gate.sentence());

  const std::vector<RunComparison> unseen(result.comparisons.begin() + 1, result.comparisons.end());
  Report report = plan_report(inputs, plan, dependence);
  report.title = "Windtunnel demo: what was measured here, and the plan of " + options.study;
  const auto proof = {comparison_section(result.comparisons), timeline_section(shown),
                      rank_memory_section(result.comparisons)};
  report.sections.insert(report.sections.begin(), proof.begin(), proof.end());
  const auto evidence =
      std::find_if(report.sections.begin(), report.sections.end(), [](const Section& s) { return s.id == "evidence"; });
  report.sections.insert(evidence, drill_section(result.drill));
  json comparisons = json::array();
  for (const RunComparison& c : result.comparisons) comparisons.push_back(to_json(c));
  report.payload["comparisons"] = comparisons;
  report.payload["drill"] = to_json(result.drill);
  result.files = write_report(report, folder, "report");
  stage(9, "report", result.files.front().string());

  result.summary = fmt::format(
      "Measured: {} training steps and {} benchmarks on this machine. Predictions: {}. Plan: {} Range: {}. Recovery "
      "after {} injected faults was {}. "
      "The report is {}.",
      run.steps, suites.measurements.size(), error_sentence(unseen) + disturbance(result.comparisons),
      plan_answer(inputs, plan), plan_range(inputs, plan), result.drill.cases.size(),
      result.drill.passed() ? "bitwise exact" : "NOT exact", result.files.front().string());
  return result;
}

}  // namespace wt
