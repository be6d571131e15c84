// windtunnel compare: real runs of windtunnel train compared with the simulator's predictions.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "planner/cli/compare/proof_report.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/experiments/comparison.hpp"
#include "sim/cost/calibrate/calibrate.hpp"
#include "sim/cost/op_times.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {
namespace {

struct Options {
  std::vector<std::string> folders, calibrated_on;
  std::string machine, output;
  bool json = false;
};

void compare(const Options& o) {
  if (!o.output.empty()) check_report_file(o.output);
  for (const std::string& seen : o.calibrated_on)
    if (std::ranges::none_of(o.folders,
                             [&](const std::string& folder) { return std::filesystem::equivalent(seen, folder); }))
      throw_usage("compare: found --calibrated-on {}, allowed is one of the folders to compare: {}", seen,
                  fmt::join(o.folders, ", "));
  const MachineData machine = read_machine(o.machine);
  std::vector<RunComparison> comparisons;
  nlohmann::json rows = nlohmann::json::array();
  for (const std::string& folder : o.folders) {
    const RunSpec run = read_run(std::filesystem::path(folder) / kRunFile);
    const ClusterSpec cluster = this_machine(run.layout.world());
    const MachineTimes times =
        make_times({.profiles = {}, .machine = o.machine, .stack = ""}, cluster, run.layout.world());
    comparisons.push_back(compare_run(run, folder, cluster, *times.cost));
    comparisons.back().calibrated_on =
        calibrated_on(machine, read_profile(std::filesystem::path(folder) / kProfileFile)) ||
        std::ranges::any_of(o.calibrated_on,
                            [&](const std::string& seen) { return std::filesystem::equivalent(seen, folder); });
    rows.push_back(to_json(comparisons.back()));
  }
  Report report{.title = "Predicted against measured"};
  std::vector<RunComparison> unseen;
  std::ranges::copy_if(comparisons, std::back_inserter(unseen),
                       [](const RunComparison& c) { return !c.calibrated_on; });
  report.answer = "Machine model: " + error_sentence(unseen) + disturbance(comparisons) + ".";
  report.sections = {comparison_section(comparisons),
                     timeline_section(unseen.empty() ? comparisons.front() : unseen.front()),
                     rank_memory_section(comparisons)};
  report.payload = {{"comparisons", rows}};
  report.provenance = provenance({{"times", o.machine}});
  if (!o.output.empty()) write_report_file(report, o.output);
  if (!o.json) std::erase_if(report.sections, [](const Section& s) { return s.id == "timeline"; });  // only in files
  put_report(report, o.json);
}

}  // namespace

void add_compare(CLI::App& app) {
  const Command command(app, "compare",
                        "Lay runs that were trained on this machine beside their predictions\n"
                        "Example: windtunnel compare out/demo/other-mesh --machine out/demo/machine.json");
  const auto o = command.runs(compare);
  command.option("FOLDER", o->folders, "What windtunnel train wrote, one or more").required().existing_folder();
  command.option("--machine", o->machine, "Machine model (windtunnel calibrate)").required();
  command
      .option("--calibrated-on", o->calibrated_on,
              "A FOLDER that the machine model has seen, though its digest is not recorded; may be repeated")
      .one_a_mention()
      .existing_folder();
  command.output(o->output, Output::file, "Also write the report: .html, .md, .json or .txt");
  command.flag("--json", o->json, "Print one JSON document");
}

}  // namespace wt
