// windtunnel drill: real faults in real training, recovery proved bit by bit.
#include <nlohmann/json.hpp>

#include "configs/spec/find.hpp"
#include "configs/spec/support/error.hpp"
#include "planner/cli/command.hpp"
#include "planner/cli/words.hpp"
#include "planner/experiments/drill.hpp"
#include "planner/experiments/output_folder.hpp"
#include "planner/experiments/system_text.hpp"
#include "reports/build/proof_report.hpp"
#include "reports/render/text.hpp"

namespace wt {
namespace {

struct Options {
  std::string faults, output = "out/drill";
  bool json = false;
};

void drill(const Options& o) {
  const FaultSpec faults = read_fault_spec(o.faults);
  RunSpec run = read_run(find_config("runs", faults.run));
  const auto said = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  take_output_folder(o.output, "drill");  // before anything is written into it
  // Where the run's own data is not here, text of this machine stands for it; what is written lies in the drill's
  // folder.
  if (!std::filesystem::exists(run.data / "index.json")) run.data = system_text_folder(o.output, run.seq);
  said(ensure_system_text(run.data, run.seq));
  const DrillResult result = run_drill(faults, run, o.output, said);
  if (o.json) {
    fmt::print("{}\n", to_json(result).dump(1));
  } else {
    fmt::print("{}", text_table(drill_table(result)));
    fmt::print("{}\n", result.passed()
                           ? "Recovery was exact: losses, parameters, optimizer state and sample order are bitwise "
                             "equal in every case."
                           : "Recovery was NOT exact; the differences stand above and in the folders of the cases.");
  }
  if (!result.passed()) set_status(static_cast<int>(Code::finding));
}

}  // namespace

void add_drill(CLI::App& app) {
  const Command command(app, "drill",
                        "Kill ranks of a real run and prove that recovery is exact\nExample: "
                        "windtunnel drill configs/faults/kill-rank.yaml");
  auto o = std::make_shared<Options>();
  command.option("FAULTS", o->faults, "Fault scenario: a file or a preset of configs/faults").required();
  command.option("-o,--output", o->output, "Folder for everything that the drill writes").shows_default();
  command.flag("--json", o->json, "Print one JSON document");
  command.runs([o] { drill(*o); });
}

}  // namespace wt
