#include "sim/own_runs/own_runs.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "configs/base/error.hpp"
#include "configs/base/statistics.hpp"
#include "configs/files/study.hpp"
#include "sim/cost/ops/remembered_cost.hpp"
#include "sim/cost/published_constants.hpp"
#include "sim/program/memory/choose_microbatch.hpp"
#include "sim/program/routing/named_routing.hpp"
#include "sim/question/step_program.hpp"
#include "sim/replay/routed_memory.hpp"
#include "sim/replay/simulated_step.hpp"

namespace wt {

namespace {

/// The run with a microbatch, where its file leaves it to the trainer.
RunSpec settled(const RunSpec& run, const ClusterSpec& cluster) {
  return choose_microbatch(run, kForTensors * cluster.usable_memory_bytes, run.name);
}

NamedRouting usual_routing(const RunSpec& run) {
  return read_routing(routing_for_model(run.model), run.model, run.tokens(), run.layout.expert);
}

std::vector<OwnPeak> peaks_of(const MeasuredStep& measured, const StackSpec& stack) {
  std::vector<OwnPeak> out;
  if (!measured.allocated_bytes && !measured.reserved_bytes) return out;
  const RunSpec run = settled(measured.run, measured.cluster);
  const LiveMemory live =
      routed_memory(step_program(run, stack).to_peak(), *usual_routing(run).source, printed_ranks(stack.memory));
  const auto add = [&](MemoryOf of, std::optional<double> bytes) {
    if (bytes) out.push_back({measured.run_file, {of, live, *bytes}});
  };
  add(MemoryOf::peak_allocated, measured.allocated_bytes);
  add(MemoryOf::peak_reserved, measured.reserved_bytes);
  return out;
}

/// Before and after, of all peaks.
void predict_peaks(OwnRuns& own, const StackMemory& before) {
  const StackMemory after = own.memory(before);
  for (OwnPeak& peak : own.peaks) {
    peak.before_bytes = before.of(peak.measured.of, peak.measured.live).bytes;
    peak.after_bytes = after.of(peak.measured.of, peak.measured.live).bytes;
  }
}

}  // namespace

double predicted_step_s(const RunSpec& file, const ClusterSpec& cluster, const TimeSources& sources) {
  const RunSpec run = settled(file, cluster);
  const NamedRouting routing = usual_routing(run);
  TimeSources of_run = sources;
  of_run.compute = run.precision, of_run.precisions = run.precisions;
  const MachineTimes times = make_times(of_run, cluster, run.layout.world());
  const RememberedCost cost(*times.cost);
  return simulated_step(step_question(run, cluster, times.stack, *routing.source), cost,
                        {.replay = {.timelines = false, .health = {}}})
      .replay.step_s;
}

StepSensitivity sensitivity(const RunSpec& run, const ClusterSpec& cluster, const TimeSources& sources) {
  StepSensitivity out{};
  const double step_s = predicted_step_s(run, cluster, sources);
  for (std::size_t i = 0; i < kStackFactors.size(); ++i) {
    TimeSources stretched = sources;
    stretched.factors.try_emplace(kStackFactors[i], 1).first->second *= std::exp(kSensitivityLog);
    out[i] = std::log(predicted_step_s(run, cluster, stretched) / step_s) / kSensitivityLog;
  }
  return out;
}

OwnRuns own_runs(const std::vector<MeasuredStep>& measured, const TimeSources& sources) {
  OwnRuns out;
  if (measured.empty()) return out;
  const StackSpec stack = sources.read_stack();
  std::vector<OwnStep> steps;
  for (const MeasuredStep& m : measured) {
    if (m.cluster.shared_cores())
      throw_usage("--measured: found a step on {}, whose ranks share cores; needs GPUs: there a profile says the times",
                  m.cluster.name);
    const double before_s = predicted_step_s(m.run, m.cluster, sources);
    steps.push_back({sensitivity(m.run, m.cluster, sources), std::log(m.step_s / before_s)});
    out.runs.push_back({m.run_file, m.step_s, before_s, 0});
    std::ranges::copy(peaks_of(m, stack), std::back_inserter(out.peaks));
  }
  out.steps = OwnSteps(steps);
  TimeSources known = sources;
  out.steps.settle([&](const std::map<std::string, double>& factors) {
    known.factors = factors;
    std::vector<double> changes;
    for (std::size_t i = 0; i < measured.size(); ++i)
      changes.push_back(std::log(predicted_step_s(measured[i].run, measured[i].cluster, known) / out.runs[i].before_s));
    return changes;
  });
  known.factors = out.steps.factors();
  for (std::size_t i = 0; i < measured.size(); ++i)
    out.runs[i].after_s = predicted_step_s(measured[i].run, measured[i].cluster, known);
  predict_peaks(out, PublishedConstants::get().memory.of(stack, measured.front().run.layout.world()));
  return out;
}

StackMemory OwnRuns::memory(const StackMemory& before) const {
  std::vector<MeasuredPeak> measured;
  for (const OwnPeak& peak : peaks) measured.push_back(peak.measured);
  return before.knowing(measured);
}

double interval_ratio(const OwnSteps& steps, const RunSpec& run, const ClusterSpec& cluster,
                      const TimeSources& sources) {
  return std::exp(kAt90 * steps.log_spread(sensitivity(run, cluster, sources), own_spread(run.model)));
}

StepRatiosByKind ratios_of(const OwnSteps& steps, const RunSpec& run, const ClusterSpec& cluster,
                           const TimeSources& sources) {
  const double ratio = interval_ratio(steps, run, cluster, sources);
  return StepRatiosByKind(1 + cluster.others.size(), StepRatios{1 / ratio, ratio});
}

}  // namespace wt
