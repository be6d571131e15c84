#include "planner/cli/parts/op_table.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "planner/cli/parts/cells.hpp"
#include "reports/render/program_words.hpp"

namespace wt {
namespace {

std::string op_text(const OpClassTotal& total) {
  return op_words(total.action, total.direction, total.group) +
         (total.algorithm ? ": " + to_string(*total.algorithm) : "");
}

}  // namespace

Table op_table(const ReplayResult& r) {
  Table table{.title = fmt::format("Ops of the last rank to end (rank {})", r.critical_rank)};
  table.columns = {"op", numeric("count"), numeric("busy", "ms"), numeric("exposed", "ms")};
  std::vector<OpClassTotal> totals = r.totals;
  std::ranges::stable_sort(totals, [](const auto& a, const auto& b) { return a.busy_s > b.busy_s; });
  for (const OpClassTotal& t : totals)
    table.rows.push_back({op_text(t), whole(t.count), milliseconds(t.busy_s), milliseconds(t.exposed_s)});
  table.note =
      "Busy: from start to end, lanes overlap. Exposed: the compute lane stood still for it. All-reduces with their "
      "algorithm.";
  return table;
}

}  // namespace wt
