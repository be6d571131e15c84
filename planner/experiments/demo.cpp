#include "planner/experiments/demo.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/output_folder.hpp"
#include "configs/files/find.hpp"
#include "planner/experiments/system_text.hpp"
#include "trainer/process/trainer_process.hpp"
#include "trainer/run_folder/files.hpp"
#include "trainer/run_folder/run_lines.hpp"

namespace wt {
namespace {

std::string line_of(const RunComparison& c, const HeldToBar& figure) {
  return fmt::format("{} ({}): {} is off by {:+.1f} %, allowed are {:.0f} %: {:.1f} points too much", c.name, c.layout,
                     figure.what, 100 * figure.error, 100 * figure.bar, 100 * (std::abs(figure.error) - figure.bar));
}

namespace fs = std::filesystem;

/// Trains `run` into an empty folder.
void train(const RunSpec& run, const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  const fs::path file = folder / "asked.yaml";
  write_file_atomically(file, run_to_yaml(run));
  run_trainer({"train", file.string(), "-o", folder.string()}, folder / "log.txt");
}

std::pair<double, double> first_and_last_loss(const fs::path& folder) {
  const auto [first, last] = first_and_last_line(folder / kMetricsFile);
  return {first.at("loss"), last.at("loss")};
}

/// Two sides of the same code, in alternating processes: any difference that the gate finds is a false alarm.
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

double cores_taken(const Profile& suites) {
  double out = 0;
  for (const char* key : {"run.other_busy_cores", "run.stolen_cores"})
    if (const auto fact = suites.fingerprint.find(key); fact != suites.fingerprint.end())
      out += std::strtod(fact->second.c_str(), nullptr);
  return out;
}

DemoJudgement judge_demo(const std::vector<RunComparison>& comparisons, const Profile& suites, double cores) {
  double calibrating = cores_taken(suites);
  for (const RunComparison& c : comparisons)
    if (c.calibrated_on) calibrating = std::max(calibrating, c.cores_used_by_others);
  const double most = kDisturbedShare * cores;
  DemoJudgement out;
  for (const RunComparison& c : comparisons) {
    if (c.calibrated_on) continue;
    const bool before = calibrating > most, disturbed = before || c.cores_used_by_others > most;
    for (const HeldToBar& figure : held_to_bars(c))
      if (figure.broken() && !(disturbed && figure.timed)) out.broken.push_back(line_of(c, figure));
    if (!disturbed) continue;
    out.disturbed.push_back(
        fmt::format("{} ({}): step time ({:+.1f} %) and exposed communication ({:+.1f} % of the step) are not judged: "
                    "other programs took {:.1f} of {:g} cores while {} was measured, allowed are {:.1f}",
                    c.name, c.layout, 100 * c.step_error(), 100 * c.exposed_error(),
                    std::max(before ? calibrating : 0.0, c.cores_used_by_others), cores,
                    calibrating > c.cores_used_by_others ? "what the machine model was calibrated on" : "it", most));
  }
  return out;
}

bool DemoResult::passed() const {
  return std::ranges::any_of(comparisons, [](const RunComparison& c) { return !c.calibrated_on; }) &&
         judgement().broken.empty() && drill.passed();
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

DemoResult run_demo(const DemoOptions& options, const std::function<void(DemoStage, const DemoResult&)>& ended) {
  DemoResult result;
  const fs::path& folder = options.folder;
  take_output_folder(folder, "demo");
  take_output_folder(folder / "drill", "drill");  // refuse a foreign folder before the work of earlier stages
  RunSpec& run = result.run;
  run = read_run(find_config("runs", "demo"));
  run.dataset.use_folder(system_text_folder(folder, run.seq));
  result.data = ensure_system_text(run.dataset.folder(), run.seq);
  ended(DemoStage::data, result);

  train(run, folder / "train");
  result.tokens_per_s = read_json(folder / "train" / kSummaryFile).at("tokens_per_s");
  std::tie(result.first_loss, result.last_loss) = first_and_last_loss(folder / "train");
  if (result.last_loss >= result.first_loss)
    throw_error(Code::finding, "training: loss went from {} to {}, it should fall; see {}", result.first_loss,
                result.last_loss, (folder / "train" / kMetricsFile).string());
  ended(DemoStage::train, result);

  const fs::path bench = folder / "bench.json", asked = folder / "train" / "asked.yaml";
  run_trainer({"bench", "--quick", "--run", asked.string(), "-o", bench.string()}, folder / "bench.log");
  result.suites = read_profile(bench);
  ended(DemoStage::bench, result);

  const CalibrationResult calibration = calibrate({result.suites, read_profile(folder / "train" / kProfileFile)});
  write_machine(calibration.model.data(), folder / "machine.json");
  result.residuals = calibration.residuals;
  ended(DemoStage::calibrate, result);

  const ClusterSpec cluster = this_machine(run.layout.world());
  result.cores = cluster.cores;
  result.comparisons.push_back(compare_run(run, folder / "train", cluster, calibration.model));
  result.comparisons.back().calibrated_on = true;
  for (const RunSpec& unseen : unseen_runs(run)) {
    train(unseen, folder / unseen.name);
    result.comparisons.push_back(compare_run(unseen, folder / unseen.name, cluster, calibration.model));
  }
  ended(DemoStage::simulate, result);

  result.inputs = read_plan_inputs(read_study(options.study), false);
  result.plan = make_plan(result.inputs);
  result.details = plan_details(result.inputs, result.plan);
  ended(DemoStage::plan, result);

  std::vector<DrillInput> drilled;
  for (const std::string& name : options.faults) {
    drilled.push_back(read_drill_input(name));
    drilled.back().run.dataset = run.dataset;
  }
  result.drill = run_drill(drilled, folder / "drill", [](const std::string&) {});
  ended(DemoStage::drill, result);

  result.gate = compare_code_with_itself(asked, folder / "gate");
  ended(DemoStage::gate, result);
  return result;
}

}  // namespace wt
