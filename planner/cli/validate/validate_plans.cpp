// windtunnel validate plans: compares published layouts with the planner's choice for the same run.
#include "planner/cli/validate/validate_plans.hpp"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "configs/files/find.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/validate/published_plans_report.hpp"
#include "planner/validate/published_plans.hpp"
#include "reports/render/progress.hpp"
#include "reports/render/render.hpp"

namespace wt {

void add_validate_plans(const Command& validate) {
  struct Options {
    std::string file;
    bool json = false;
  };
  const Command command = validate.subcommand("plans",
                                              "Published layouts beside what the planner chooses for the same run\n"
                                              "Example: windtunnel validate plans");
  auto o = std::make_shared<Options>();
  command.option("FILE", o->file, "List of runs (YAML, as configs/measurements/published_plans.yaml, the default)");
  command.flag("--json", o->json, "Print one JSON document: every run, and a summary");
  command.runs([o] {
    const std::string file =
        o->file.empty() ? (configs_folder() / "measurements" / "published_plans.yaml").string() : o->file;
    const std::vector<PublishedPlan> plans = read_published_plans(file);
    std::vector<PublishedComparison> judged;
    {
      Progress bar("searching layouts", static_cast<std::int64_t>(plans.size()));
      for (const PublishedPlan& plan : plans) {
        judged.push_back(judge_plan(plan, PublishedTimes::get()));
        bar.update(static_cast<std::int64_t>(judged.size()));
      }
    }
    if (o->json)
      put_document(json_text(published_plans_json(judged, file)), "");
    else
      put_report(published_plans_report(judged, file), false);
  });
}

}  // namespace wt
