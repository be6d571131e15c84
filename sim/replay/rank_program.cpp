#include "sim/replay/rank_program.hpp"

#include <algorithm>
#include <array>

namespace wt {
namespace {

bool depends_on_rows(const Op& op) {
  return op.collective.bytes.per_row != 0 ||
         std::any_of(op.work.begin(), op.work.end(), [](const WorkItem& item) { return item.rows.per_row != 0; });
}

}  // namespace

bool RankProgram::collective(int i) const {
  return ops[static_cast<std::size_t>(i)].op->collective_kind();
}

RankProgram::RankProgram(const Program& program, bool separate_reduce_group) : source(&program), ops(unroll(program)) {
  const std::size_t n = ops.size();
  lane_previous.assign(n, -1);
  lane_next.assign(n, -1);
  communicator_previous.assign(n, -1);
  depends.assign(n, 0);
  row_dependent.resize(n);
  std::array<int, kLanes> last;
  last.fill(-1);
  std::array<int, kAxes> last_of_axis;
  last_of_axis.fill(-1);
  std::vector<std::pair<int, int>> edges;  // (before, after)
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
    if (const Op& op = *ops[i].op; !separate_reduce_group && (op.lane == Lane::all_gather || op.lane == Lane::reduce_scatter)) {
      int& other = last_of_axis[static_cast<std::size_t>(op.collective.axis)];
      if (other >= 0 && other != lane_previous[i]) {
        communicator_previous[i] = other;
        before.push_back(other);
      }
      other = index;
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    depends[i] = static_cast<int>(before.size());
    for (int b : before) edges.emplace_back(b, index);
  }
  dependent_first.assign(n + 1, 0);
  for (const auto& [op, after] : edges) ++dependent_first[static_cast<std::size_t>(op) + 1];
  for (std::size_t i = 0; i < n; ++i) dependent_first[i + 1] += dependent_first[i];
  dependent.resize(edges.size());
  std::vector<int> next = dependent_first;
  for (const auto& [op, after] : edges) dependent[static_cast<std::size_t>(next[static_cast<std::size_t>(op)]++)] = after;
}

}  // namespace wt
