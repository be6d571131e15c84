#include "planner/cli/simulate/simulate_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "configs/base/json_members.hpp"
#include "configs/base/quantity.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/parts/json_parts.hpp"
#include "planner/cli/parts/memory_tables.hpp"
#include "planner/cli/parts/relatives.hpp"
#include "reports/render/program_words.hpp"
#include "reports/render/timeline_chart.hpp"
#include "sim/cost/kernels/machine_data.hpp"
#include "sim/cost/memory/dispatcher_memory.hpp"

namespace wt {

WT_TO_JSON(ReplayResult, step_s, low_s, high_s, exposed_s, slowed_s, simulated_ranks, critical_rank)

namespace {

constexpr std::size_t kMostDrawnOps = 1200;  ///< a chart with more bars opens slowly and is unreadable

Cell share(double part, double whole) { return {part / whole * 100, fmt::format("{:.1f}", part / whole * 100)}; }

OpKey key_of(const OpClassTotal& total) { return {total.action, total.direction, total.group}; }

std::string op_text(const OpClassTotal& total) {
  return op_words(total.action, total.direction, total.group) +
         (total.algorithm ? ": " + to_string(*total.algorithm) : "");
}

Table time_table(const ReplayResult& r) {
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

Table evidence_table(const ReplayResult& r) {
  Table table{.title = "What the step time rests on"};
  table.columns = {"evidence", numeric("time", "ms"), numeric("share", "%")};
  for (Evidence kind : {Evidence::measured, Evidence::published, Evidence::assumed, Evidence::derived}) {
    const double value = r.evidence_s[static_cast<std::size_t>(kind)];
    if (kind == Evidence::derived && value < 5e-4 * r.step_s) continue;
    table.rows.push_back({to_string(kind), milliseconds(value), share(value, r.step_s)});
  }
  table.note = "Directly or by derivation: what follows from a published time counts as published.";
  return table;
}

struct ClassPeak {
  std::int64_t ranks = 0, simulated = 0, worst_rank = 0;
  double bytes = 0;
};

std::map<int, ClassPeak> class_peaks(const SimulatedRun& step) {
  std::map<int, ClassPeak> peaks;
  for (int c : step.programs.class_of_rank) ++peaks[c].ranks;
  for (const StepTimeline& t : step.replay.timelines) {
    ClassPeak& peak = peaks[step.programs.class_of_rank[static_cast<std::size_t>(t.rank)]];
    ++peak.simulated;
    if (t.peak_bytes > peak.bytes) peak.bytes = t.peak_bytes, peak.worst_rank = t.rank;
  }
  return peaks;
}

Table memory_table(const SimulatedRun& step) {
  Table table{.title = "Peak memory by rank class"};
  table.columns = {numeric("class"), numeric("ranks"), numeric("highest at rank"), numeric("peak", "GiB")};
  for (const auto& [index, peak] : class_peaks(step)) {
    const double GiB = peak.bytes / (1 << 30);
    table.rows.push_back({whole(index), whole(peak.ranks), whole(peak.worst_rank), {GiB, fmt::format("{:.3f}", GiB)}});
  }
  const MemoryUse fullest = fullest_memory(step);
  table.note = fullest.usable_bytes <= 0 ? fmt::format("{} does not say what a rank may use.", step.cluster.name)
               : step.cluster.kinds(step.run.layout.world()).size() > 1
                   ? fmt::format("The fullest rank for its GPU needs up to {} of {} that it may use.",
                                 format_bytes(fullest.process.high), format_bytes(fullest.usable_bytes))
                   : fmt::format("A rank may use {} on {}.", format_bytes(fullest.usable_bytes), step.cluster.name);
  if (step.memory)
    table.note += fmt::format(
        " Its process takes {} ({} to {}, 80 % interval): the allocator reserves {} for {} of tensors, and {} are "
        "outside of it (CUDA context, NCCL, dispatcher).",
        format_bytes(fullest.process.bytes), format_bytes(fullest.process.low), format_bytes(fullest.process.high),
        format_bytes(fullest.reserved.bytes), format_bytes(fullest.live.peak()),
        format_bytes(fullest.process.bytes - fullest.reserved.bytes));
  return table;
}

nlohmann::json payload(const SimulatedRun& step) {
  const ReplayResult& r = step.replay;
  nlohmann::json evidence, ops = nlohmann::json::array(), memory = nlohmann::json::array();
  for (int i = 0; i < 4; ++i) evidence[to_string(static_cast<Evidence>(i))] = r.evidence_s[static_cast<std::size_t>(i)];
  for (const OpClassTotal& t : r.totals) {
    ops.push_back({{"op", to_string(key_of(t))}, {"count", t.count}, {"busy_s", t.busy_s}, {"exposed_s", t.exposed_s}});
    if (t.algorithm) ops.back()["algorithm"] = to_string(*t.algorithm);
  }
  for (const auto& [index, peak] : class_peaks(step))
    memory.push_back(
        {{"class", index}, {"ranks", peak.ranks}, {"worst_rank", peak.worst_rank}, {"peak_bytes", peak.bytes}});
  const MemoryUse fullest = fullest_memory(step);
  nlohmann::json out = r;
  out.update({{"tokens_per_s", static_cast<double>(step.run.tokens_per_step()) / r.step_s},
              {"world", step.run.layout.world()},
              {"evidence_s", evidence},
              {"peak_bytes", peak_bytes(step)},
              {"fullest_bytes", fullest.live.peak()},
              {"allocated_bytes", forecast_json(fullest.allocated)},
              {"reserved_bytes", forecast_json(fullest.reserved)},
              {"process_bytes", forecast_json(fullest.process)},
              {"usable_bytes", fullest.usable_bytes},
              {"out_of_memory", fullest.runs_out()},
              {"ops", ops},
              {"memory", memory},
              {"memory_moments", moments_json(step.moments)}});
  return out;
}

}  // namespace

double peak_bytes(const SimulatedRun& step) {
  double peak = 0;
  for (const StepTimeline& t : step.replay.timelines) peak = std::max(peak, t.peak_bytes);
  return peak;
}

MemoryUse fullest_memory(const SimulatedRun& step) {
  const auto share = [](const MemoryUse& m) {
    return m.usable_bytes > 0 ? m.process.high / m.usable_bytes : m.process.high;
  };
  MemoryUse fullest;
  for (const StepTimeline& t : step.replay.timelines) {
    const NodeSpec& node = step.cluster.of_kind(step.cluster.kind_of(step.cluster.node_of(t.rank)));
    const auto c = static_cast<std::size_t>(step.programs.class_of_rank[static_cast<std::size_t>(t.rank)]);
    const LiveMemory live = live_memory(step.programs.programs[c], t.peak_bytes);
    const auto forecast = [&](MemoryOf kind) { return step.memory ? step.memory->of(kind, live) : as_live(live); };
    const MemoryUse own{
        t.rank,
        live,
        forecast(MemoryOf::peak_allocated),
        forecast(MemoryOf::peak_reserved),
        step.memory ? step.memory->process(live, dispatcher_bytes(step.run.model, step.run.layout)) : as_live(live),
        node.usable_memory_bytes};
    if (fullest.live.peak() == 0 || share(own) > share(fullest)) fullest = own;
  }
  return fullest;
}

namespace {

constexpr double kLargeRatio = 1.5;  ///< between predictions; from here on the first line mentions it

/// A sentence on an assumption that could change the prediction by kLargeRatio; empty = none.
std::string large_assumption(const SimulatedRun& step) {
  const ReplayResult& r = step.replay;
  if (step.balanced_s > 0 && r.step_s > kLargeRatio * step.balanced_s)
    return fmt::format(" It rests on assumed loads of experts: balanced ones take {}.",
                       format_seconds(step.balanced_s));
  if (r.high_s > kLargeRatio * r.step_s || r.step_s > kLargeRatio * r.low_s)
    return fmt::format(" It may be off by {:.1f} times, as predictions of such runs were.",
                       std::max(r.high_s / r.step_s, r.step_s / r.low_s));
  return "";
}

}  // namespace

Report simulate_report(const SimulatedRun& step) {
  const ReplayResult& r = step.replay;
  const MemoryUse fullest = fullest_memory(step);
  const bool fits = fullest.fits();
  Report report{.title = fmt::format("One step of {} on {}", step.run.name, step.cluster.name)};
  report.answer =
      fmt::format("A step takes {} on {} ranks ({}), {} tokens/s{}.", format_seconds(r.step_s), step.run.layout.world(),
                  step.run.layout.name(), format_number(static_cast<double>(step.run.tokens_per_step()) / r.step_s),
                  fits ? ""
                       : fmt::format("; but it may not fit: a rank runs out of its {} with a probability of {:.0f} %",
                                     format_bytes(fullest.usable_bytes), 100 * fullest.runs_out())) +
      large_assumption(step) + (step.features ? beyond_sentence(*step.features) : "");
  report.answer_range = fmt::format("{} to {} (80 % interval)", format_seconds(r.low_s), format_seconds(r.high_s));
  report.status = fits ? Status::none : Status::bad;

  KeyValues facts{.title = "The step"};
  facts.entries = {
      {"step time", {r.step_s, format_seconds(r.step_s)}},
      {"exposed communication",
       {r.exposed_s, fmt::format("{} ({:.1f} %)", format_seconds(r.exposed_s), r.exposed_s / r.step_s * 100)}},
      {"slowed by communication",
       {r.slowed_s, fmt::format("{} ({:.1f} %)", format_seconds(r.slowed_s), r.slowed_s / r.step_s * 100)}},
      {"peak memory of a rank",
       {peak_bytes(step), format_bytes(peak_bytes(step)), {}, fits ? Status::none : Status::bad}},
      {"routing",
       {step.routing +
        (step.routing_evidence == Evidence::assumed ? "" : fmt::format(" ({})", to_string(step.routing_evidence)))}},
      {"simulated",
       {fmt::format("{} of {} ranks{}", r.simulated_ranks, step.run.layout.world(),
                    r.uplink_shares ? ", shared uplinks approximated"
                    : r.folded      ? "; the others are their twins"
                                    : "")}}};
  if (step.replayed < step.microbatches)
    facts.entries.push_back(
        {"timeline",
         {fmt::format("the first {} of {} microbatches; the others take as long as the last of these", step.replayed,
                      step.microbatches)}});
  report.sections.push_back({"step", "Result", {}, {facts, evidence_table(r)}});
  if (step.features) report.sections.back().items.push_back(relatives_table(*step.features));
  report.sections.push_back({"time", "Where the time goes", step.collectives, {time_table(r)}});
  report.sections.push_back({"memory", "Memory", {}, {memory_table(step)}});
  if (step.memory) {
    report.sections.back().items.push_back(
        memory_parts_table(memory_parts(step.moments, fullest.reserved.bytes, fullest.process.bytes)));
    report.sections.back().items.push_back(memory_moments_table(step.moments));
  }
  for (const StepTimeline& t : r.timelines)
    if (t.rank == r.critical_rank && t.ops.size() <= kMostDrawnOps)
      report.sections.push_back(
          {"timeline", "Timeline", {}, {timeline_chart(fmt::format("Rank {}", t.rank), {{"predicted", {t}}})}});
  report.payload = payload(step);
  return report;
}

}  // namespace wt
