// One sentence, then why, then how sure.
#include "reports/build/plan_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/hash.hpp"
#include "configs/spec/support/number.hpp"
#include "configs/spec/support/quantity.hpp"
#include "reports/build/provenance.hpp"
#include "reports/render/charts.hpp"
#include "reports/render/timeline_chart.hpp"

namespace wt {
namespace {

Section layout_section(const PlanInputs& inputs, const Plan& plan) {
  const Certificate& c = plan.search.certificate;
  std::int64_t infeasible = 0;
  std::string reasons;
  for (const auto& [reason, count] : c.infeasible) {
    infeasible += count;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", reason, count);
  }
  Section s{.id = "layout", .title = "Layout"};
  s.paragraphs.push_back(plan_scope(inputs) + ".");
  s.paragraphs.push_back(fmt::format(
      "Of {} layouts {} do not fit ({}), {} were bounded away and {} simulated. {}", c.enumerated, infeasible,
      reasons.empty() ? "none" : reasons, c.bounded, c.simulated,
      c.proved ? "No other layout of the space has a shorter step in this model: the bound proves it."
               : fmt::format("The bound leaves a gap of {:.2f} %: a layout not simulated may be that much faster.",
                             100 * c.gap)));
  if (!plan.search.tie_break.empty()) s.paragraphs.push_back(plan.search.tie_break + ".");
  s.paragraphs.push_back(plan.placement_note);
  KeyValues chosen{.title = "Chosen"};
  const Microbatches n = Microbatches::split(inputs.study.global_batch / inputs.study.gpus, plan.layout.microbatch);
  chosen.entries = {
      {"mesh", fmt::format("replicate {} x shard {} (expert {} inside)", plan.layout.replicate, plan.layout.shard,
                           plan.layout.expert)},
      {"recompute", to_string(plan.layout.recompute)},
      {"microbatch", fmt::format("{} sequences, {} a step{}", n.each, n.count,
                                 n.even() ? "" : fmt::format(", the last of {}", n.last))},
      {"step", Cell(plan.step.step_s,
                    fmt::format("{} ({} to {}, 80 % of the prices)", format_seconds(plan.step.step_s),
                                format_seconds(plan.step.low_s), format_seconds(plan.step.high_s)),
                    Evidence::derived)},
      {"exposed communication", Cell(plan.step.exposed_s, format_seconds(plan.step.exposed_s), Evidence::derived)},
      {"slowed by communication", Cell(plan.step.slowed_s, format_seconds(plan.step.slowed_s), Evidence::derived)},
      {"expert load, max/mean",
       Cell(plan.imbalance, fmt::format("{:.2f} (memory is sized for {:.2f}, p99 over {})", plan.imbalance,
                                        plan.imbalance_p99, p99_basis(inputs)))}};
  if (plan.step.mfu > 0)
    chosen.entries.emplace_back(
        "MFU", Cell(plan.step.mfu,
                    fmt::format("{:.1f} % = {:.1f} GFLOP a token (no recompute, causal attention) x {:.0f} "
                                "tokens/s/GPU over {:.0f} TFLOP/s",
                                100 * plan.step.mfu, inputs.study.model.flops_per_token(inputs.study.seq) / 1e9,
                                plan.step.tokens_per_s_per_gpu, inputs.peak_flops / 1e12),
                    Evidence::derived));
  s.items.push_back(chosen);
  s.items.push_back(candidate_table(inputs, plan, 12));
  return s;
}

/// Two layers from the middle of the model, forward or backward, as the critical rank runs them.
Chart layers_chart(const StepTimeline& timeline, std::int64_t layers, bool forward) {
  Chart chart = timeline_chart("", {{"predicted", {timeline}}});
  const std::int64_t first = std::max<std::int64_t>(0, layers / 2 - 1);
  const auto wanted = [&](const std::string& id) {
    for (std::int64_t layer : {first, first + 1})
      if (id.starts_with(fmt::format("mb0.L{}.", layer)))
        return forward ? id.ends_with(".fwd") : id.ends_with(".bwd") || id.ends_with(".rec") || id.ends_with(".reduce");
    return false;
  };
  std::vector<Span>& spans = chart.series[0].spans;
  std::erase_if(spans, [&](const Span& span) { return !wanted(span.name); });
  std::vector<std::string> labels;
  std::vector<std::size_t> row_of(chart.labels.size(), 0);
  for (std::size_t row = 0; row < chart.labels.size(); ++row)
    if (std::any_of(spans.begin(), spans.end(), [&](const Span& span) { return span.row == row; })) {
      row_of[row] = labels.size();
      labels.push_back(chart.labels[row]);
    }
  double start = spans.empty() ? 0 : spans.front().start;
  for (const Span& span : spans) start = std::min(start, span.start);
  for (Span& span : spans) span.row = row_of[span.row], span.start -= start, span.end -= start;
  chart.labels = std::move(labels);
  chart.title = fmt::format("Layers {} and {}, {}", first, first + 1, forward ? "forward" : "backward");
  chart.value_axis = "time from the first of these operations";
  return chart;
}

Section step_section(const PlanInputs& inputs, const Plan& plan) {
  Section s{.id = "step", .title = "One simulated step"};
  s.paragraphs.push_back(evidence_sentence(plan.step.evidence) + ".");
  Table work{
      .title = "Where the critical rank's time goes",
      .columns = {
          {"work"}, {"operations", "", Align::right}, {"busy", "ms", Align::right}, {"exposed", "ms", Align::right}}};
  std::vector<OpClassTotal> totals = plan.step.totals;
  std::stable_sort(totals.begin(), totals.end(), [](const auto& a, const auto& b) { return a.busy_s > b.busy_s; });
  for (std::size_t i = 0; i < std::min<std::size_t>(10, totals.size()); ++i) {
    const OpClassTotal& t = totals[i];
    const char* direction = t.direction == Direction::forward     ? "forward"
                            : t.direction == Direction::recompute ? "recompute"
                                                                  : "backward";
    work.rows.push_back({fmt::format("{}{}{}, {}", to_string(t.action), t.group == Group::none ? "" : " of ",
                                     t.group == Group::none ? "" : to_string(t.group), direction),
                         Cell(as_double(t.count), std::to_string(t.count)), Cell(1e3 * t.busy_s),
                         Cell(1e3 * t.exposed_s)});
  }
  s.items.push_back(work);
  if (plan.step.critical)
    for (bool forward : {true, false}) {
      Chart chart = layers_chart(*plan.step.critical, inputs.study.model.layers, forward);
      if (!chart.labels.empty()) s.items.push_back(std::move(chart));
    }
  return s;
}

Section memory_section(const PlanInputs& inputs, const Plan& plan) {
  const StepMemory& m = plan.memory;
  const std::string routing = fmt::format(" Routing load is at p99 over {}.", p99_basis(inputs));
  Section s{.id = "memory", .title = "Memory"};
  s.paragraphs.push_back(
      inputs.memory
          ? fmt::format("A rank's process takes {} ({} to {}, 80 % interval) of the {} that it may use. Its allocator "
                        "reserves {} of that, for {} of tensors. The rest is the CUDA context and NCCL.",
                        format_bytes(m.process.bytes), format_bytes(m.process.low), format_bytes(m.process.high),
                        format_bytes(plan.memory_limit_bytes), format_bytes(m.reserved.bytes),
                        format_bytes(m.live.peak()))
          : fmt::format("A rank's tensors take {} of the {} that it may use. Only tensors are counted.",
                        format_bytes(m.live.peak()), format_bytes(plan.memory_limit_bytes)));
  s.paragraphs.back() += routing;
  std::vector<std::pair<double, std::string>> parts;
  for (const auto& [name, bytes] : plan.memory.parts) parts.emplace_back(-bytes, name);
  std::sort(parts.begin(), parts.end());
  Chart chart{.kind = ChartKind::stacked_bar,
              .title = "At the peak",
              .unit = "GiB",
              .labels = {"a rank"},
              .line = ReferenceLine{plan.memory_limit_bytes / kGiB_bytes, "limit"},
              .horizontal = true};
  double others = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i < 9)
      chart.series.push_back({.name = parts[i].second, .values = {-parts[i].first / kGiB_bytes}});
    else
      others -= parts[i].first / kGiB_bytes;
  }
  if (others > 0) chart.series.push_back({.name = "others", .values = {others}});
  for (const auto& [name, bytes] : {std::pair{"allocator's gaps", m.reserved.bytes - m.live.peak()},
                                    {"context and NCCL", m.process.bytes - m.reserved.bytes}})
    if (bytes > 0) chart.series.push_back({.name = name, .values = {bytes / kGiB_bytes}});
  s.items.push_back(chart);
  return s;
}

Section time_section(const PlanInputs& inputs, const Plan& plan) {
  const CadencePlan& c = plan.schedule.cadence;
  const RunDistribution& d = plan.runs.distribution;
  Section s{.id = "goodput", .title = "Finish date and goodput"};
  s.paragraphs.push_back(fmt::format(
      "{} simulated runs of {} steps with the failures of {}: half are done after {:.1f} days, 90 % after {:.1f}, 95 % "
      "after {:.1f}; {:.0f} failures a run. A save every {} steps ({}), {:.0f} spare nodes.",
      d.runs, plan.schedule.steps, inputs.failures.name, d.p50_s / kDay_s, d.p90_s / kDay_s, d.p95_s / kDay_s,
      d.failures, c.interval_steps, format_seconds(c.interval_s.value), c.spares.value));
  for (const std::string& sentence : plan_disturbances(inputs, plan)) s.paragraphs.push_back(sentence);
  if (c.persist_bound)
    s.paragraphs.push_back(
        "The interval is as long as a save takes to reach storage: faster storage would allow a shorter one.");
  KeyValues saves{.title = "A save and a restore"};
  for (const auto& [name, n] : {std::pair{"blocks training", &plan.schedule.input.blocking_s},
                                {"reaches storage", &plan.schedule.input.persist_s},
                                {"reload", &plan.schedule.input.recovery.reload_s},
                                {"time between failures", &plan.schedule.input.mtbf_s}})
    saves.entries.emplace_back(name,
                               Cell(n->value, format_seconds(n->value) + ": " + n->evidence.source, n->evidence.kind));
  s.items.push_back(saves);
  Table cadence{.title = "Other intervals",
                .columns = {{"case"}, {"save every", "min", Align::right}, {"goodput", "%", Align::right}},
                .note = "Closed form. The optimum is flat: a longer interval spares storage for little goodput."};
  cadence.rows.push_back({"chosen", Cell(c.interval_s.value / 60), Cell(100 * c.goodput.value)});
  for (double minutes : {10.0, 30.0, 60.0})
    cadence.rows.push_back(
        {fmt::format("every {:.0f} minutes", minutes), Cell(minutes),
         Cell(100 * goodput_at(plan.schedule.input, 60 * minutes, plan.schedule.input.mtbf_s.value))});
  s.items.push_back(cadence);
  std::vector<std::pair<std::string, double>> losses;
  for (std::size_t b = 1; b < kBuckets; ++b)
    if (d.bucket_mean_s[b] > 0)
      losses.emplace_back(to_string(static_cast<Bucket>(b)), -100 * d.bucket_mean_s[b] / d.mean_s);
  s.items.push_back(waterfall("Goodput", "% of wall time", {"wall time", 100}, losses, "goodput"));
  Table table{.title = "With other clusters' failure rates",
              .columns = {{"preset"},
                          {"time between failures", "h", Align::right},
                          {"save every", "min", Align::right},
                          {"goodput", "%", Align::right},
                          {"expected", "days", Align::right}},
              .note = "Expected days by the closed form; the interval is chosen anew for each."};
  for (const PresetRow& row : plan.presets)
    table.rows.push_back({Cell(row.title), Cell(row.mtbf_s / 3600, Evidence::published), Cell(row.interval_s / 60),
                          Cell(100 * row.goodput), Cell(row.days)});
  s.items.push_back(table);
  return s;
}

Section sensitivity_section(const Plan& plan, const std::vector<SensitivityRow>& rows) {
  Section s{.id = "sensitivity", .title = "What it depends on"};
  s.paragraphs.push_back(
      "One input at a time: this layout simulated again with the cadence chosen anew, and beside it "
      "the layout that would then be best. A cluster that is not InfiniBand may lie outside these "
      "ranges: a real EFA fleet reached 28 and 11 GB/s bus bandwidth in 256 MB all-gathers over 32 and "
      "64 nodes (HF Ultrascale Playbook).");
  std::vector<Sensitivity> bars;
  Table table{
      .title = "Would another layout be better?",
      .columns =
          {{"input"}, {"end"}, {"this layout", "days", Align::right}, {"regret", "%", Align::right}, {"better layout"}},
      .note = "Regret: how much longer this layout's step takes than the best one's at that end. Days: closed form."};
  for (const SensitivityRow& row : rows) {
    bars.push_back({row.input, row.low.days, row.high.days});
    for (const auto& [name, end] : {std::pair{"low", &row.low}, {"high", &row.high}})
      table.rows.push_back({row.input, name, Cell(end->days), Cell(100 * end->regret),
                            end->best.empty() ? Cell("none", Status::good) : Cell(end->best, Status::warn)});
  }
  s.items.push_back(tornado("Expected days", "days", {plan.schedule.days(), "plan"}, std::move(bars)));
  s.items.push_back(table);
  return s;
}

Section evidence_section(const PlanInputs& inputs, const Plan& plan) {
  Section s{.id = "evidence", .title = "What it rests on"};
  s.paragraphs.push_back(evidence_sentence(plan.step.evidence) +
                         ". Counted by the root: what follows from a published time counts as published.");
  std::string largest;
  const std::vector<PricedClass>& sources = plan.priced_by;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, sources.size()); ++i)
    largest +=
        fmt::format("{}{}, {:.0f} % of the computation, rests on {} figure{} ({}{})", i ? "; " : "", sources[i].name,
                    100 * sources[i].share, sources[i].points, sources[i].points == 1 ? "" : "s",
                    sources[i].points > 1 ? "the first: " : "", sources[i].source);
  if (!largest.empty()) s.paragraphs.push_back("Largest sources: " + largest + ".");
  for (const std::string& assumption : plan_assumptions(inputs, plan)) s.paragraphs.push_back(assumption);
  Chart chart{.kind = ChartKind::bar,
              .title = "Share of the step time",
              .unit = "%",
              .labels = {},
              .series = {{.name = "share"}}};
  for (Evidence kind : {Evidence::measured, Evidence::published, Evidence::assumed, Evidence::derived}) {
    if (kind == Evidence::derived && plan.step.evidence[static_cast<std::size_t>(kind)] < 0.005) continue;
    chart.labels.push_back(to_string(kind));
    chart.series[0].values.push_back(100 * plan.step.evidence[static_cast<std::size_t>(kind)]);
  }
  s.items.push_back(chart);
  Table cluster{.title = "The cluster's numbers", .columns = {{"section"}, {"source"}}};
  for (const auto& [section, from] : inputs.study.cluster.sources) cluster.rows.push_back({section, to_string(from)});
  s.items.push_back(cluster);
  return s;
}

}  // namespace

Report plan_report(const PlanInputs& inputs, const Plan& plan, const std::vector<SensitivityRow>& sensitivities) {
  Report report;
  report.title = "Plan of " + inputs.study.name;
  report.answer = plan_answer(inputs, plan);
  report.answer_range = "Range: " + plan_range(inputs) + ".";
  report.status = plan.search.certificate.proved ? Status::good : Status::warn;
  report.sections = {layout_section(inputs, plan),
                     step_section(inputs, plan),
                     memory_section(inputs, plan),
                     time_section(inputs, plan),
                     sensitivity_section(plan, sensitivities),
                     evidence_section(inputs, plan)};
  report.provenance = provenance(
      {{"configuration", fmt::format("study {}, hash {:016x}", inputs.study.name, hash_of(inputs.study.text))},
       {"seed", std::to_string(inputs.study.seed)},
       {"prices", inputs.basis}});
  report.payload = plan_json(inputs, plan);
  return report;
}

}  // namespace wt
