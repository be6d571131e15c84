#include "sim/replay/rank_program.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace wt {

bool depends_on_rows(const Op& op) {
  return op.collective.bytes.per_row != 0 ||
         std::ranges::any_of(op.work, [](const WorkItem& item) { return item.rows.per_row != 0; });
}

bool of_shard_group(const Op& op) {
  return (op.collective.axis == Axis::shard || op.collective.axis == Axis::expert_shard) &&
         (op.lane == Lane::all_gather || op.lane == Lane::reduce_scatter);
}

bool RankProgram::collective(int i) const { return ops[static_cast<std::size_t>(i)].op->collective_kind(); }

RankProgram::RankProgram(const Program& program, const Mesh* shared) : source(&program), ops(unroll(program)) {
  const std::size_t n = ops.size();
  lane_previous.assign(n, -1);
  lane_next.assign(n, -1);
  communicator_previous.assign(n, -1);
  depends.assign(n, 0);
  row_dependent.resize(n);
  std::array<int, kLanes> last;
  last.fill(-1);
  std::map<std::pair<std::int64_t, std::int64_t>, int> last_of_ranks;  // by size and stride of the group
  std::vector<std::pair<int, int>> edges;                              // (before, after)
  std::vector<int> before;
  for (std::size_t i = 0; i < n; ++i) {
    const int index = static_cast<int>(i);
    row_dependent[i] = depends_on_rows(*ops[i].op);
    before.assign(ops[i].waits.begin(), ops[i].waits.end());
    int& previous = last[static_cast<std::size_t>(ops[i].op->lane)];
    if (previous >= 0) {
      lane_previous[i] = previous;
      lane_next[static_cast<std::size_t>(previous)] = index;
      before.push_back(previous);
    }
    previous = index;
    if (const Op& op = *ops[i].op; shared && of_shard_group(op)) {
      const Axis axis = op.collective.axis;
      const auto [last_one, first] = last_of_ranks.try_emplace({shared->size(axis), shared->stride(axis)}, index);
      if (!first && ops[static_cast<std::size_t>(last_one->second)].op->lane != op.lane) {
        communicator_previous[i] = last_one->second;
        before.push_back(last_one->second);
      }
      last_one->second = index;
    }
    std::ranges::sort(before);
    before.erase(std::unique(before.begin(), before.end()), before.end());
    depends[i] = static_cast<int>(before.size());
    for (int b : before) edges.emplace_back(b, index);
  }
  dependent_first.assign(n + 1, 0);
  for (const auto& [earlier, after] : edges) ++dependent_first[static_cast<std::size_t>(earlier) + 1];
  for (std::size_t i = 0; i < n; ++i) dependent_first[i + 1] += dependent_first[i];
  dependent.resize(edges.size());
  std::vector<int> next = dependent_first;
  for (const auto& [earlier, after] : edges)
    dependent[static_cast<std::size_t>(next[static_cast<std::size_t>(earlier)]++)] = after;
}

}  // namespace wt
