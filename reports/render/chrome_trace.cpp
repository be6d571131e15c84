#include "reports/render/chrome_trace.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/program/lane_clock.hpp"

namespace wt {
namespace {

using nlohmann::json;

// Thread 0 is the step itself, above the lanes.
constexpr int kStepThread = 0;
int thread_of(Lane lane) { return 1 + static_cast<int>(lane); }

json metadata(const char* what, std::int64_t pid, int tid, json args) {
  return {{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", std::move(args)}};
}

json bar(const std::string& name, const std::string& category, std::int64_t pid, int tid, double start_s, double end_s,
         json args) {
  return {{"ph", "X"},
          {"name", name},
          {"cat", category},
          {"pid", pid},
          {"tid", tid},
          {"ts", start_s * 1e6},
          {"dur", std::max(0.0, end_s - start_s) * 1e6},
          {"args", std::move(args)}};
}

/// When each step begins on the common clock.
std::map<std::int64_t, double> step_starts(const std::vector<StepTimeline>& steps) {
  std::map<std::int64_t, double> longest;
  for (const StepTimeline& one : steps) longest[one.step] = std::max(longest[one.step], one.step_s);
  double clock_s = 0;
  for (auto& [step, length_s] : longest) length_s = std::exchange(clock_s, clock_s + length_s);
  return longest;
}

void add_step(json& events, const StepTimeline& one, std::int64_t pid, double begin_s) {
  events.push_back(bar("step " + std::to_string(one.step), "step", pid, kStepThread, begin_s, begin_s + one.step_s,
                       {{"exposed_s", one.exposed_s}, {"peak_bytes", one.peak_bytes}}));
  const std::vector<double> starts = op_starts(one);
  for (std::size_t i = 0; i < one.ops.size(); ++i) {
    const OpRecord& op = one.ops[i];
    events.push_back(bar(
        op.id, to_string(op.lane), pid, thread_of(op.lane), begin_s + starts[i],
        begin_s + std::max(starts[i], op.done_s),
        {{"id", op.id}, {"issued_us", (begin_s + op.issued_s) * 1e6}, {"waited_s", op.waited_s}, {"rows", op.rows}}));
    if (op.live_bytes > 0)
      events.push_back({{"ph", "C"},
                        {"name", "memory"},
                        {"pid", pid},
                        {"ts", (begin_s + op.done_s) * 1e6},
                        {"args", {{"live_bytes", op.live_bytes}}}});
  }
}

}  // namespace

std::vector<double> op_starts(const StepTimeline& timeline) {
  LaneClock clock;
  std::vector<double> starts;
  for (const OpRecord& op : timeline.ops) {
    starts.push_back(std::min(clock.start_s(op.lane, op.issued_s), std::max(op.issued_s, op.done_s)));
    clock.end(op.lane, op.done_s);
  }
  return starts;
}

std::string chrome_trace(const std::vector<TraceGroup>& groups) {
  std::int64_t stride = 1;
  for (const TraceGroup& group : groups)
    for (const StepTimeline& one : group.steps)
      while (stride <= one.rank) stride *= 10;
  json events = json::array();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto begins = step_starts(groups[g].steps);
    std::map<std::int64_t, std::set<Lane>> lanes;  // by rank
    for (const StepTimeline& one : groups[g].steps) {
      add_step(events, one, static_cast<std::int64_t>(g) * stride + one.rank, begins.at(one.step));
      for (const OpRecord& op : one.ops) lanes[one.rank].insert(op.lane);
      lanes[one.rank];
    }
    for (const auto& [rank, used] : lanes) {
      const std::int64_t pid = static_cast<std::int64_t>(g) * stride + rank;
      const std::string name = (groups[g].name.empty() ? "" : groups[g].name + " ") + "rank " + std::to_string(rank);
      events.push_back(metadata("process_name", pid, 0, {{"name", name}}));
      events.push_back(
          metadata("process_sort_index", pid, 0,
                   {{"sort_index", rank * static_cast<std::int64_t>(groups.size()) + static_cast<std::int64_t>(g)}}));
      events.push_back(metadata("thread_name", pid, kStepThread, {{"name", "step"}}));
      for (Lane lane : used) {
        events.push_back(metadata("thread_name", pid, thread_of(lane), {{"name", to_string(lane)}}));
        events.push_back(metadata("thread_sort_index", pid, thread_of(lane), {{"sort_index", thread_of(lane)}}));
      }
    }
  }
  return json{{"displayTimeUnit", "ms"}, {"traceEvents", events}}.dump(-1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

}  // namespace wt
