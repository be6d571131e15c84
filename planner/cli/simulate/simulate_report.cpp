#include "planner/cli/simulate/simulate_report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "configs/base/json_members.hpp"
#include "configs/base/quantity.hpp"
#include "configs/files/layout_words.hpp"
#include "configs/files/model_words.hpp"
#include "configs/files/peak_flops.hpp"
#include "planner/cli/parts/cells.hpp"
#include "planner/cli/parts/json_parts.hpp"
#include "planner/cli/parts/memory_tables.hpp"
#include "planner/cli/parts/op_table.hpp"
#include "planner/cli/parts/own_sheet.hpp"
#include "planner/cli/parts/relatives.hpp"
#include "planner/cli/parts/throughput.hpp"
#include "reports/render/program_words.hpp"
#include "reports/render/timeline_chart.hpp"
#include "sim/cost/kernels/machine_data.hpp"
#include "sim/replay/step_shares.hpp"

namespace wt {

WT_TO_JSON(EnergyAmount, value, low, high)
WT_TO_JSON(OwnRun, name, measured_s, before_s, after_s)

void to_json(nlohmann::json& json, const OwnPeak& peak) {
  json = {{"name", peak.name},
          {"reserved", peak.measured.of == MemoryOf::peak_reserved},
          {"measured_bytes", peak.measured.bytes},
          {"before_bytes", peak.before_bytes},
          {"after_bytes", peak.after_bytes}};
}
WT_TO_JSON(ReplayResult, step_s, low_s, high_s, exposed_s, slowed_s, simulated_ranks, critical_rank)

namespace {

constexpr std::size_t kMostDrawnOps = 1200;  ///< a chart with more bars opens slowly and is unreadable

Cell share(double part, double whole) { return {part / whole * 100, fmt::format("{:.1f}", part / whole * 100)}; }

OpKey key_of(const OpClassTotal& total) { return {total.action, total.direction, total.group}; }

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

/// None where a GPU's peak is unknown, or ranks share cores.
std::optional<Throughput> throughput_of(const SimulatedRun& step) {
  const auto peak_flops = mean_peak_flops(step.cluster, step.run.layout.world());
  if (step.cluster.shared_cores() || !peak_flops) return std::nullopt;
  return Throughput{.flops_per_token = step.run.flops_per_token(),
                    .tokens_per_s_per_gpu = step.run.tokens_per_s_per_gpu(step.replay.step_s),
                    .peak_flops = *peak_flops};
}

std::optional<StepEnergy> energy_of(const SimulatedRun& step) {
  if (!step.power) return std::nullopt;
  const ReplayResult& r = step.replay;
  return step_energy(*step.power, {.step_s = r.step_s,
                                   .low_s = r.low_s,
                                   .high_s = r.high_s,
                                   .shares = step_shares(r.totals, r.step_s),
                                   .tokens = static_cast<double>(step.run.tokens_per_step()),
                                   .gpus = step.run.layout.world(),
                                   .gpus_per_node = step.cluster.gpus_per_node});
}

/// "0.912 J (0.8 to 1.03, 80 % interval)"; watts as whole numbers.
Cell energy_cell(const EnergyAmount& amount, const char* unit) {
  const auto text = [&](double value) { return fmt::format("{:.{}f}", value, value < 1 ? 3 : value < 10 ? 2 : 0); };
  return {amount.value, fmt::format("{} {} ({} to {}, 80 % interval)", text(amount.value), unit, text(amount.low),
                                    text(amount.high))};
}

/// Where the watts come from, and where they are counted.
std::string power_sentence(const PowerSpec& power) {
  const PriceAmount& compute = power.compute_W;
  const std::string watts = compute.low == compute.high ? fmt::format("{:g}", compute.low)
                                                        : fmt::format("{:g} to {:g}", compute.low, compute.high);
  return fmt::format(
      "A GPU that computes draws {} W ({}). Power is that at the input of the nodes, with fans and losses of their "
      "supplies. Switches between nodes, storage and the cooling of the room are not in it.",
      watts, to_string(compute.evidence));
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
  const auto throughput = throughput_of(step);
  out.update({{"schema", "windtunnel.simulation/1"},
              {"mfu", throughput ? nlohmann::json(throughput->mfu()) : nlohmann::json()},
              {"flops_per_token", step.run.flops_per_token()},
              {"parameters", step.run.model.total_parameters()},
              {"active_parameters", step.run.model.active_parameters()},
              {"tokens_per_s_per_gpu", step.run.tokens_per_s_per_gpu(r.step_s)},
              {"tokens_per_s", static_cast<double>(step.run.tokens_per_step()) / r.step_s},
              {"world", step.run.layout.world()},
              {"layout", step.run.layout.name()},
              {"layout_words", layout_words(step.run.layout, step.stack)},
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
  out["own_steps"] =
      step.own
          ? nlohmann::json{{"runs", step.own->runs}, {"peaks", step.own->peaks}, {"factors", step.own->steps.factors()}}
          : nlohmann::json();
  const auto energy = energy_of(step);
  out["gpu_W"] = energy ? nlohmann::json(energy->gpu_W) : nlohmann::json();
  out["token_J"] = energy ? nlohmann::json(energy->token_J) : nlohmann::json();
  return out;
}

/// The measured steps beside their predictions, and what they say of the stack on this machine.
Section own_section(const OwnRuns& own) {
  Table runs{.title = "Measured steps",
             .columns = {"run", numeric("measured", "s"), numeric("predicted without them", "s"),
                         numeric("with them", "s"), numeric("off", "%")}};
  for (const OwnRun& run : own.runs)
    runs.rows.push_back({run.name, Cell(run.measured_s), Cell(run.before_s), Cell(run.after_s),
                         percent(run.after_s / run.measured_s - 1)});
  Table factors{.title = "What they say of the stack on this machine", .columns = {"constant", numeric("times")}};
  for (const auto& [name, factor] : own.steps.factors()) factors.rows.push_back({name, Cell(factor)});
  factors.note = "A constant moves as far as the measured steps consist of it.";
  Section out{"own-steps", "Your measured steps", {}, {runs, factors}};
  if (own.peaks.empty()) return out;
  Table peaks{.title = "Measured peaks of memory",
              .columns = {"run", "kind", numeric("measured", "GiB"), numeric("predicted without them", "GiB"),
                          numeric("with them", "GiB"), numeric("off", "%")}};
  const auto gib = [](double bytes) { return Cell(bytes / (1 << 30)); };
  for (const OwnPeak& peak : own.peaks)
    peaks.rows.push_back({peak.name, peak.measured.of == MemoryOf::peak_reserved ? "reserved" : "allocated",
                          gib(peak.measured.bytes), gib(peak.before_bytes), gib(peak.after_bytes),
                          percent(peak.after_bytes / peak.measured.bytes - 1)});
  out.items.push_back(peaks);
  return out;
}

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

Report simulate_report(const SimulatedRun& step, const std::vector<std::string>& collectives) {
  const ReplayResult& r = step.replay;
  const MemoryUse fullest = fullest_memory(step);
  const bool fits = fullest.fits();
  Report report{.title = fmt::format("One step of {} on {}", step.run.name, step.cluster.name)};
  const auto throughput = throughput_of(step);
  const std::string pace =
      throughput
          ? fmt::format("{} tokens/s/GPU, MFU {:.1f} %", format_number(throughput->tokens_per_s_per_gpu),
                        100 * throughput->mfu())
          : fmt::format("{} tokens/s", format_number(static_cast<double>(step.run.tokens_per_step()) / r.step_s));
  report.answer =
      fmt::format("A step takes {} on {} ranks ({}), {}{}.", format_seconds(r.step_s), step.run.layout.world(),
                  layout_label(step.run.layout, step.stack), pace,
                  fits ? ""
                       : fmt::format("; but it may not fit: a rank runs out of its {} with a probability of {:.0f} %",
                                     format_bytes(fullest.usable_bytes), 100 * fullest.runs_out())) +
      large_assumption(step) + (step.features ? beyond_sentence(*step.features) : "");
  report.answer_range = fmt::format("{} to {} (80 % interval)", format_seconds(r.low_s), format_seconds(r.high_s));
  report.status = fits ? Status::none : Status::bad;

  KeyValues facts{.title = "The step"};
  facts.entries = {
      {"step time", {r.step_s, format_seconds(r.step_s)}},
      {"parameters", {parameters_text(step.run.model)}},
      {"layout", {layout_words(step.run.layout, step.stack)}},
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
  if (const std::string what = approximations_text(step.run.model); !what.empty())
    facts.entries.emplace(facts.entries.begin() + 2, "approximated", Cell(what));
  if (throughput)
    facts.entries.insert(
        facts.entries.begin() + 1,
        {{"tokens/s/GPU", {throughput->tokens_per_s_per_gpu, format_number(throughput->tokens_per_s_per_gpu)}},
         {"MFU", mfu_cell(*throughput)}});
  std::vector<std::string> paragraphs;
  if (const std::string own = own_sheet_sentence(step.cluster); !own.empty()) paragraphs.push_back(own);
  if (const auto energy = energy_of(step)) {
    facts.entries.push_back({"power of a GPU with its part of the node", energy_cell(energy->gpu_W, "W")});
    facts.entries.push_back({"energy of a token", energy_cell(energy->token_J, "J")});
    paragraphs.push_back(power_sentence(*step.power));
  }
  if (step.replayed < step.microbatches)
    facts.entries.push_back(
        {"timeline",
         {fmt::format("the first {} of {} microbatches; the others take as long as the last of these", step.replayed,
                      step.microbatches)}});
  report.sections.push_back({"step", "Result", paragraphs, {facts, evidence_table(r)}});
  if (step.features) report.sections.back().items.push_back(relatives_table(*step.features));
  if (step.own) report.sections.push_back(own_section(*step.own));
  report.sections.push_back({"time", "Where the time goes", collectives, {op_table(r)}});
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
