// windtunnel faults: compares a study's recovery policies on the same traces of faults.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "configs/base/text.hpp"
#include "configs/files/find.hpp"
#include "configs/files/study_assignments.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/cli/plan/policy_report.hpp"
#include "reports/render/progress.hpp"

namespace wt {
namespace {

constexpr std::int64_t kTraces = 1000;  // or the study's runs, if fewer

struct Options {
  std::string study, output;
  std::vector<std::string> set;
  bool json = false, allow_assumed = false;
};

void compare_faults(const Options& o) {
  if (!o.output.empty()) check_report_file(o.output);
  const std::filesystem::path file = find_config("studies", o.study);
  std::vector<KeyValuesOf> settings;
  for (const std::string& one : o.set) settings.push_back(parse_assignment(one, false));
  Progress bar("reading inputs");
  const PlanInputs inputs = read_plan_inputs(
      assigned_study(read_file(file, "a study file"), file.string(), assignments_of(settings)), o.allow_assumed);
  const Plan plan = make_plan(inputs, bar.of_parts(), kTraces);
  bar.finish();
  if (o.json)
    fmt::print("{}\n", policies_json(plan.policies).dump(1));
  else if (o.output.empty())
    put_report(policies_report(inputs, plan), false);
  if (!o.output.empty()) write_report_file(policies_report(inputs, plan), o.output);
}

}  // namespace

void add_faults(CLI::App& app) {
  const Command faults(app, "faults", "Recovery policies, compared on the same traces of faults");
  faults.require_subcommand();
  const Command command =
      faults.subcommand("compare",
                        "What each recovery policy comes to for a study; UNKNOWN where an input is missing\n"
                        "Example: windtunnel faults compare dbrx-3072-h100 --set hot_spares.activate=50s");
  const auto o = command.runs(compare_faults);
  command.option("STUDY", o->study, "Study file, or a name in configs/studies").required();
  command.option("--set", o->set, "key=value, a dotted key of the study; may be repeated").one_a_mention();
  command.output(o->output, Output::file, "File for the report: .html, .md, .json or .txt");
  command.flag("--json", o->json, "Print one JSON document");
  command.flag("--allow-assumed", o->allow_assumed, "Estimate by a roofline what nobody measured, marked as assumed");
}

}  // namespace wt
