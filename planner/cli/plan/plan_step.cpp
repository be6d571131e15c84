// One simulated step of a plan: its time by cause, and a rank's memory at the peak.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "configs/base/number.hpp"
#include "configs/base/quantity.hpp"
#include "planner/cli/parts/memory_tables.hpp"
#include "planner/cli/plan/plan_report.hpp"
#include "planner/cli/plan/plan_sections.hpp"
#include "reports/render/chrome_trace.hpp"
#include "reports/render/program_words.hpp"

namespace wt {
namespace {

constexpr std::size_t kShownOps = 10;
constexpr double kJoined = 0.003;  // share of the step: ops with smaller gaps become one bar

/// Forward, backward including recompute, or the end of the step.
std::size_t pass_of(const std::string& id) {
  if (id.ends_with(".fwd")) return 0;
  return id.starts_with("mb") ? 1 : 2;
}

/// One rank's whole step, lane by lane; neighbouring ops of a pass become one bar.
Chart step_chart(const StepTimeline& timeline) {
  static const char* const kPasses[] = {"forward", "backward with recompute", "gradients, optimizer and others"};
  Chart chart{.kind = ChartKind::timeline,
              .title = "The step of the critical rank",
              .unit = "s",
              .label_axis = "lane",
              .value_axis = "time from the start of the step",
              .horizontal = true};
  const std::vector<double> starts = op_starts(timeline);
  std::map<std::pair<Lane, std::size_t>, std::vector<std::size_t>> ops;  // by lane and pass
  std::map<Lane, std::size_t> rows;
  for (std::size_t i = 0; i < timeline.ops.size(); ++i)
    ops[{timeline.ops[i].lane, pass_of(timeline.ops[i].id)}].push_back(i), rows[timeline.ops[i].lane] = 0;
  for (auto& [lane, row] : rows) {
    row = chart.labels.size();
    chart.labels.push_back(lane_words(lane));
  }
  for (const char* pass : kPasses) chart.series.push_back({.name = pass});
  for (auto& [where, indices] : ops) {
    std::ranges::sort(indices, [&](std::size_t a, std::size_t b) { return starts[a] < starts[b]; });
    std::vector<Span>& spans = chart.series[where.second].spans;
    const std::size_t before = spans.size();
    for (const std::size_t i : indices) {
      const double start = starts[i], end = std::max(start, timeline.ops[i].done_s);
      if (spans.size() > before && start - spans.back().end < kJoined * timeline.step_s)
        spans.back().end = std::max(spans.back().end, end);
      else
        spans.push_back({rows.at(where.first), start, end, kPasses[where.second]});
    }
  }
  std::erase_if(chart.series, [](const Series& series) { return series.spans.empty(); });
  return chart;
}

/// The purpose of an op, which charts show as a colour.
std::size_t purpose_of(const std::string& id) {
  for (const char* name : {".dispatch.", ".collect.", ".counts."})
    if (id.find(name) != std::string::npos) return 2;
  return id.find(".expert") != std::string::npos ? 1 : 0;
}

/// Two layers from the middle of the model, forward or backward, on the critical rank.
Chart layers_chart(const StepTimeline& timeline, std::int64_t layers, bool forward) {
  const std::int64_t first = std::max<std::int64_t>(0, layers / 2 - 1);
  const auto wanted = [&](const std::string& id) {
    for (std::int64_t layer : {first, first + 1})
      if (id.starts_with(fmt::format("mb0.L{}.", layer)))
        return forward ? id.ends_with(".fwd") : id.ends_with(".bwd") || id.ends_with(".rec") || id.ends_with(".reduce");
    return false;
  };
  const std::vector<double> starts = op_starts(timeline);
  std::map<Lane, std::size_t> rows;
  double begin_s = timeline.step_s;
  for (std::size_t i = 0; i < timeline.ops.size(); ++i)
    if (wanted(timeline.ops[i].id)) rows[timeline.ops[i].lane] = 0, begin_s = std::min(begin_s, starts[i]);
  Chart chart{.kind = ChartKind::timeline,
              .title = fmt::format("Layers {} and {}, {}", first, first + 1, forward ? "forward" : "backward"),
              .unit = "ms",
              .series = {{.name = "attention and dense"}, {.name = "experts"}, {.name = "tokens to experts and back"}},
              .label_axis = "lane",
              .value_axis = "time from the first of these operations",
              .horizontal = true};
  for (auto& [lane, row] : rows) {
    row = chart.labels.size();
    chart.labels.push_back(lane_words(lane));
  }
  for (std::size_t i = 0; i < timeline.ops.size(); ++i) {
    const OpRecord& op = timeline.ops[i];
    if (wanted(op.id))
      chart.series[purpose_of(op.id)].spans.push_back({rows.at(op.lane), 1e3 * (starts[i] - begin_s),
                                                       1e3 * (std::max(starts[i], op.done_s) - begin_s),
                                                       op_words(op.id)});
  }
  std::erase_if(chart.series, [](const Series& series) { return series.spans.empty(); });
  return chart;
}

Chart memory_chart(const std::vector<MemoryPart>& parts, double limit_bytes) {
  Chart chart{.kind = ChartKind::stacked_bar,
              .title = "At the peak",
              .unit = "GiB",
              .labels = {"a rank"},
              .line = ReferenceLine{limit_bytes / kGiB_bytes, "limit"},
              .horizontal = true};
  for (const std::string& use : memory_uses()) {
    double bytes = 0;
    for (const MemoryPart& part : parts) bytes += part.use == use ? part.bytes : 0;
    if (bytes > 0) chart.series.push_back({.name = use, .values = {bytes / kGiB_bytes}});
  }
  return chart;
}

}  // namespace

Section step_section(const PlanInputs& inputs, const Plan& plan) {
  Section s{.id = "step", .title = "One simulated step", .paragraphs = {evidence_sentence(plan.step.evidence) + "."}};
  if (plan.step.critical) {
    s.items.push_back(step_chart(*plan.step.critical));
    for (bool forward : {true, false}) {
      Chart chart = layers_chart(*plan.step.critical, inputs.study.model.layers, forward);
      if (!chart.labels.empty()) s.items.push_back(std::move(chart));
    }
  }
  Table work{.title = "Where the critical rank's time goes",
             .columns = {"work", numeric("operations"), numeric("busy", "ms"), numeric("exposed", "ms")},
             .note = "Busy: from start to end; lanes overlap. Exposed: computation stood still for it."};
  std::vector<OpClassTotal> totals = plan.step.totals;
  std::ranges::stable_sort(totals, [](const auto& a, const auto& b) { return a.busy_s > b.busy_s; });
  totals.resize(std::min(kShownOps, totals.size()));
  for (const OpClassTotal& t : totals)
    work.rows.push_back({op_words(t.action, t.direction, t.group), Cell(as_double(t.count), std::to_string(t.count)),
                         Cell(1e3 * t.busy_s), Cell(1e3 * t.exposed_s)});
  s.items.push_back(work);
  return s;
}

Section memory_section(const PlanInputs& inputs, const Plan& plan) {
  const StepMemory& m = plan.memory;
  Section s{.id = "memory", .title = "Memory"};
  s.paragraphs.push_back(
      inputs.memory
          ? fmt::format(
                "A rank's process takes {} ({} to {}, 80 % interval) of the {} that it may use. Its allocator "
                "reserves {} of that, for {} of tensors. The rest is the CUDA context, NCCL and the dispatcher.",
                format_bytes(m.process.bytes), format_bytes(m.process.low), format_bytes(m.process.high),
                format_bytes(plan.memory_limit_bytes), format_bytes(m.reserved.bytes), format_bytes(m.live.peak()))
          : fmt::format("A rank's tensors take {} of the {} that it may use. Only tensors are counted.",
                        format_bytes(m.live.peak()), format_bytes(plan.memory_limit_bytes)));
  if (inputs.memory) s.paragraphs.push_back(memory_sentence(inputs, plan) + ".");
  s.paragraphs.back() += fmt::format(" Routing load is at p99 over {}.", p99_basis(inputs));
  const std::vector<MemoryPart> parts = memory_parts(m.moments, m.reserved.bytes, m.process.bytes);
  s.items.push_back(memory_chart(parts, plan.memory_limit_bytes));
  s.items.push_back(memory_parts_table(parts));
  s.items.push_back(memory_moments_table(m.moments));
  return s;
}

}  // namespace wt
