#include "planner/cli/parts/relatives.hpp"

#include <fmt/core.h>

#include <cmath>

#include "configs/base/lists.hpp"
#include "planner/cli/parts/cells.hpp"
#include "sim/cost/published_constants.hpp"

namespace wt {
namespace {

constexpr std::size_t kShownRelatives = 3;

Cell rate(double tokens_per_s) { return {tokens_per_s, format_number(std::round(tokens_per_s))}; }

}  // namespace

Table relatives_table(const RunFeatures& asked) {
  Table table{.title = "Measured runs most like it",
              .columns = {"run", numeric("GPUs"), numeric("measured", "tokens/s/GPU"), numeric("predicted"),
                          numeric("off", "%"), numeric("doublings away"), "this step has"}};
  for (const Relative& each : relatives(asked, PublishedConstants::measured_runs(), kShownRelatives)) {
    const MeasuredRun& run = each.run;
    table.rows.push_back({fmt::format("{} on {}, {}", run.name, run.features.gpu, run.features.stack),
                          whole(static_cast<std::int64_t>(run.features.gpus)),
                          rate(run.measured),
                          rate(run.predicted),
                          signed_percent(run.predicted / run.measured - 1),
                          {each.doublings, fmt::format("{:.1f}", each.doublings)},
                          each.differences.empty() ? "nothing else" : joined(each.differences, ", ")});
  }
  table.note =
      "Each was predicted without anything that its origin published. Doublings away: of GPUs, size, tokens and "
      "degrees; another GPU, stack or format counts as one.";
  return table;
}

std::string beyond_sentence(const RunFeatures& asked) {
  const std::vector<std::string> beyond = beyond_measured(asked, PublishedConstants::measured_runs());
  return beyond.empty() ? "" : " Beyond what was measured: " + joined(beyond, "; ") + ".";
}

}  // namespace wt
