// windtunnel report: a kept report in another format.
#include <nlohmann/json.hpp>

#include "configs/spec/support/json_reader.hpp"
#include "planner/cli/command.hpp"
#include "planner/cli/output.hpp"
#include "planner/cli/words.hpp"
#include "reports/render/render.hpp"

namespace wt {

void add_report(CLI::App& app) {
  struct Options {
    std::string result, output = "-";
  };
  const Command command(app, "report",
                        "Draw a kept report (JSON) as HTML, Markdown or text\n"
                        "Example: windtunnel report out/simulate/report.json -o report.html");
  auto o = std::make_shared<Options>();
  command.option("RESULT", o->result, "Report written with --json or -o by another subcommand").required();
  command.option("-o,--output", o->output, "File; its ending says the format: .html, .md, .json, .txt; '-': text")
      .shows_default();
  command.runs([o] { write_report_file(report_from_json(read_json(o->result), o->result), o->output); });
}

}  // namespace wt
