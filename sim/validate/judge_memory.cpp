#include "sim/validate/judge_memory.hpp"

#include <fmt/format.h>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"
#include "configs/base/statistics.hpp"
#include "sim/cost/memory/dispatcher_memory.hpp"
#include "sim/fit/expert_loads.hpp"
#include "sim/fit/memory_fit.hpp"
#include "sim/fit/row_program.hpp"
#include "sim/measurements/run_layout.hpp"
#include "sim/program/routing/named_routing.hpp"
#include "sim/replay/routed_memory.hpp"

namespace wt {
namespace {

std::string regime_of(const RunRow& row, bool described) {
  if (row.unusable.empty() && !described && !by_formula(row.memory_of)) return "peak, stack not described";
  return word_for(row.memory_of,
                  std::array{"not usable", "peak allocated", "peak reserved", "peak, of what is not said",
                             "weights and optimizer of the layers", "activations of the layers"});
}

double parameters_a_gpu(const RunRow& row) {
  return static_cast<double>(row.model.total_parameters()) / static_cast<double>(row.tp * row.pp);
}

/// Median bytes per parameter in the reference's other groups. Uses peaks of any kind if the row's kind has none.
std::optional<double> bytes_a_parameter(const RunRow& of, const std::vector<RunRow>& reference) {
  std::vector<double> same, peaks;
  for (const RunRow& row : reference) {
    if (!row.unusable.empty() || row.memory_of == MemoryOf::nothing || row.group == of.group ||
        by_formula(row.memory_of) != by_formula(of.memory_of))
      continue;
    peaks.push_back(row.memory_bytes / parameters_a_gpu(row));
    if (row.memory_of == of.memory_of) same.push_back(peaks.back());
  }
  if (same.empty()) same = peaks;
  if (same.empty()) return std::nullopt;
  return quantile(same, 0.5);
}

Forecast forecast(const RunRow& row, const StackSpec& stack, const MemoryModel& model) {
  try {
    const LiveMemory live =
        by_formula(row.memory_of) ? layer_memory(peak_program(row, stack)) : simulated_memory(row, stack);
    const MemoryForecast of = model.of_stack(stack).of(row.memory_of, live);
    return {.value = of.bytes, .low = of.low, .high = of.high, .evidence = of.evidence, .reason = {}};
  } catch (const Error& error) {
    if (error.code() != Code::usage) throw;
    return {.value = {}, .evidence = {}, .reason = error.what()};
  }
}

}  // namespace

LiveMemory simulated_memory(const RunRow& row, const StackSpec& stack) {
  const StepProgram program = peak_program(row, stack);
  const std::string loads = expert_loads(row).routing;
  if (loads.empty()) return live_memory(program, stack.memory);
  const NamedRouting routing = read_routing({loads}, row.model, run_spec_of(row).tokens(), row.ep);
  return routed_memory(program, *routing.source, printed_ranks(stack.memory));
}

std::vector<Judged> judge_memory(const std::vector<RunRow>& rows, const std::vector<RunRow>& reference,
                                 const std::vector<StackSpec>& stacks, const std::string& stack, LeftOut left_out) {
  std::optional<StackSpec> given;
  if (!stack.empty()) given = read_stack(stack);
  const MemoryModel whole(memory_samples(reference, stacks));
  std::map<std::string, MemoryModel> without;
  std::vector<Judged> judged;
  for (const RunRow& row : rows) {
    if (row.unusable.empty() && row.memory_of == MemoryOf::nothing) continue;
    const StackSpec own = given ? *given : stack_of(row.framework, stacks);
    Judged& j = judged.emplace_back();
    j.line = row.line;
    j.name = row.name;
    j.group = whole.group_of(row);
    j.origin = row.origin;
    j.regime = (row.model.experts > 0 ? "MoE, " : "") + regime_of(row, !own.frameworks.empty());
    j.measured = row.memory_bytes;
    j.assumed = row.assumed;
    j.forecast.reason = j.baseline.reason = row.unusable;
    if (!row.unusable.empty()) continue;
    const bool by_origin = left_out == LeftOut::origin;
    const std::string& name = by_origin ? j.origin : j.group;
    auto model = without.find(name);
    if (model == without.end())
      model = without.emplace(name, by_origin ? whole.without_origin(name) : whole.without(name)).first;
    if (const std::string loads = expert_loads(row).assumed; row.ep > 1 && !loads.empty()) j.assumed.push_back(loads);
    j.forecast = forecast(row, own, model->second);
    if (const auto rate = bytes_a_parameter(row, reference)) j.baseline.value = *rate * parameters_a_gpu(row);
  }
  const auto ended = [](const RunRow& row) { return row.outcome != RunRow::Outcome::unsaid; };
  if (judged.empty() && std::ranges::none_of(rows, ended))
    throw_usage("validate memory: found no row with a memory, needs at least one (column mem_gb, or a metric in GiB)");
  add_intervals(judged, &Judged::baseline);
  return judged;
}

AnchoredRows judge_anchored_memory(const std::vector<RunRow>& rows, const std::vector<RunRow>& reference,
                                   const std::vector<StackSpec>& stacks, const AnchorsAsked& asked) {
  std::vector<RunRow> asked_about;
  for (const RunRow& row : rows)
    if (row.unusable.empty() && (row.memory_of == MemoryOf::peak_allocated || row.memory_of == MemoryOf::peak_reserved))
      asked_about.push_back(row);
  if (asked_about.empty()) throw_usage("--anchors: found no row with a peak that is said to be allocated or reserved");
  const std::vector<Judged> all = judge_memory(asked_about, reference, stacks, "", LeftOut::origin);
  std::map<std::string, std::vector<std::size_t>> jobs;
  for (std::size_t i = 0; i < asked_about.size(); ++i)
    if (all[i].forecast.value)
      jobs[fmt::format("{}|{}|{}|{}", all[i].origin, asked_about[i].model.name, asked_about[i].gpu,
                       asked_about[i].memory_of == MemoryOf::peak_reserved)]
          .push_back(i);
  const MemoryModel whole(memory_samples(reference, stacks));
  std::map<std::string, MemoryModel> without;
  AnchoredRows out;
  const auto anchors = draw_anchors(jobs, asked);
  for (const auto& [index, known] : anchors) {
    const auto live = [&](std::size_t i) {
      return simulated_memory(asked_about[i], stack_of(asked_about[i].framework, stacks));
    };
    const RunRow& row = asked_about[index];
    std::vector<MeasuredPeak> peaks;
    double log_rate = 0;
    for (const std::size_t other : known) {
      peaks.push_back({asked_about[other].memory_of, live(other), asked_about[other].memory_bytes});
      log_rate += std::log(asked_about[other].memory_bytes / parameters_a_gpu(asked_about[other])) /
                  static_cast<double>(known.size());
    }
    const std::string& origin = all[index].origin;
    auto model = without.find(origin);
    if (model == without.end()) model = without.emplace(origin, whole.without_origin(origin)).first;
    const MemoryForecast memory =
        model->second.of_stack(stack_of(row.framework, stacks)).knowing(peaks).of(row.memory_of, live(index));
    Judged j = all[index];
    j.forecast.value = memory.bytes, j.forecast.low = memory.low, j.forecast.high = memory.high;
    j.baseline.value = std::exp(log_rate) * parameters_a_gpu(row);
    out.without.push_back(all[index]);
    out.with.push_back(std::move(j));
    if (asked.progress) asked.progress(out.with.size(), anchors.size());
  }
  add_intervals(out.with, &Judged::baseline);
  return out;
}

std::vector<JudgedOutcome> judge_outcomes(const std::vector<RunRow>& rows, const std::vector<RunRow>& reference,
                                          const std::vector<OutsideRow>& outside, const std::vector<StackSpec>& stacks,
                                          const std::string& stack) {
  std::optional<StackSpec> given;
  if (!stack.empty()) given = read_stack(stack);
  const MemoryModel whole(memory_samples(reference, stacks));
  const OutsideMemory whole_outside = outside_memory(outside, stacks);
  std::map<std::string, StackMemories> without;
  std::vector<JudgedOutcome> judged;
  for (const RunRow& row : rows) {
    if (row.outcome == RunRow::Outcome::unsaid || row.gpu_bytes == 0) continue;
    JudgedOutcome& j = judged.emplace_back();
    j.line = row.line, j.name = row.name, j.origin = row.origin, j.reason = row.unusable;
    j.ran = row.outcome == RunRow::Outcome::ran;
    if (!row.unusable.empty()) continue;
    auto memory = without.find(row.origin);
    if (memory == without.end())
      memory = without
                   .emplace(row.origin, StackMemories{whole.without_origin(row.origin).constants(),
                                                      whole_outside.without(row.origin)})
                   .first;
    const StackSpec own = given ? *given : stack_of(row.framework, stacks);
    try {
      const double buffers = dispatcher_bytes(row.model, layout_of(row));
      j.runs_out = memory->second.of(own, row.gpus).process(simulated_memory(row, own), buffers).exceeds(row.gpu_bytes);
    } catch (const Error& error) {
      if (error.code() != Code::usage) throw;
      j.reason = error.what();
    }
  }
  return judged;
}

std::vector<Judged> judge_outside(const std::vector<OutsideRow>& rows, const std::vector<OutsideRow>& reference,
                                  const std::vector<StackSpec>& stacks) {
  const OutsideMemory whole = outside_memory(reference, stacks);
  std::vector<Judged> judged;
  for (const OutsideRow& row : rows) {
    Judged& j = judged.emplace_back();
    j.line = row.line;
    j.name = fmt::format("{}, {}", row.framework.empty() ? "framework not said" : row.framework, row.gpu);
    j.group = j.origin = row.origin;
    j.regime = !row.unusable.empty() ? "not usable" : row.alone() ? "one GPU alone" : "several GPUs";
    j.measured = row.outside_bytes();
    j.forecast.reason = j.baseline.reason = row.unusable;
    if (!row.unusable.empty()) continue;
    const MemoryForecast of = whole.without(row.origin).of_stack(stack_of(row.framework, stacks), row.gpus);
    j.forecast = {.value = of.bytes, .low = of.low, .high = of.high, .evidence = of.evidence, .reason = {}};
    std::vector<double> others;
    for (const OutsideRow& other : reference)
      if (other.unusable.empty() && other.origin != row.origin && other.alone() == row.alone())
        others.push_back(other.outside_bytes());
    if (!others.empty()) j.baseline.value = median(others);
  }
  add_intervals(judged, &Judged::baseline);
  return judged;
}

}  // namespace wt
