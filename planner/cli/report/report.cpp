// windtunnel report: renders a saved report in another format, or reports on a run from its folder.
#include <nlohmann/json.hpp>

#include "configs/base/json_reader.hpp"
#include "planner/cli/eval/evaluation_report.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/cli/report/run_report.hpp"
#include "planner/evaluate/evaluation.hpp"
#include "reports/render/render.hpp"
#include "trainer/run_folder/run_history.hpp"

namespace wt {
namespace {

Report report_of(const std::filesystem::path& result) {
  if (!std::filesystem::is_directory(result)) return report_from_json(read_json(result), result.string());
  Report report = run_report(read_run_history(result));
  if (const std::optional<Evaluation> scores = kept_evaluation(result))
    report.sections.push_back(evaluation_section(*scores));
  return report;
}

}  // namespace

void add_report(CLI::App& app) {
  struct Options {
    std::string result, output = "-";
  };
  const Command command(app, "report",
                        "Show a run from its folder, or a kept report (JSON), as HTML, Markdown or text\n"
                        "Example: windtunnel report out/train -o report.html");
  auto o = std::make_shared<Options>();
  command.option("RESULT", o->result, "Folder of a run, or a report written with --json or -o by another subcommand")
      .required();
  command.output(o->output, Output::file, "File; its ending says the format: .html, .md, .json, .txt; '-': text")
      .shows_default();
  command.runs([o] { write_report_file(report_of(o->result), o->output); });
}

}  // namespace wt
