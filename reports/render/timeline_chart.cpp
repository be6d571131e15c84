#include "reports/render/timeline_chart.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "configs/base/error.hpp"
#include "reports/render/program_words.hpp"

namespace wt {

Chart timeline_chart(const std::string& title, const std::vector<TraceGroup>& groups) {
  Chart chart{
      .kind = ChartKind::timeline, .title = title, .unit = "ms", .value_axis = "time from the start of the step"};
  chart.label_axis = "rank, lane";
  chart.horizontal = true;
  std::map<std::tuple<std::int64_t, Lane, std::size_t>, std::size_t> rows;
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> seen;
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const StepTimeline& one : groups[g].steps) {
      if (const auto [at, is_new] = seen.try_emplace({g, one.rank}, one.step); !is_new)
        throw_runtime("timeline '{}': found steps {} and {} of rank {} in '{}', allowed one; pick one step", title,
                      at->second, one.step, one.rank, groups[g].name);
      for (const OpRecord& op : one.ops) rows[{one.rank, op.lane, g}];
    }
  for (auto& [key, row] : rows) {
    const auto& [rank, lane, g] = key;
    row = chart.labels.size();
    chart.labels.push_back("rank " + std::to_string(rank) + " \u00B7 " + lane_words(lane) + " \u00B7 " +
                           groups[g].name);
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    Series series{.name = groups[g].name};
    for (const StepTimeline& one : groups[g].steps) {
      const std::vector<double> starts = op_starts(one);
      for (std::size_t i = 0; i < one.ops.size(); ++i)
        series.spans.push_back({rows.at({one.rank, one.ops[i].lane, g}), starts[i] * 1e3,
                                std::max(starts[i], one.ops[i].done_s) * 1e3, op_words(one.ops[i].id)});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace wt
