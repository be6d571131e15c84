#include "sim/own_runs/own_runs.hpp"

#include <cmath>

#include "configs/base/error.hpp"
#include "configs/files/study.hpp"
#include "sim/cost/ops/remembered_cost.hpp"
#include "sim/program/memory/choose_microbatch.hpp"
#include "sim/program/routing/named_routing.hpp"
#include "sim/replay/simulated_step.hpp"

namespace wt {

double predicted_step_s(const RunSpec& file, const ClusterSpec& cluster, const TimeSources& sources) {
  const RunSpec run = choose_microbatch(file, kForTensors * cluster.usable_memory_bytes, file.name);
  const NamedRouting routing = read_routing(routing_for_model(run.model), run.model, run.tokens(), run.layout.expert);
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
  std::vector<OwnStep> steps;
  OwnRuns out;
  for (const MeasuredStep& m : measured) {
    if (m.cluster.shared_cores())
      throw_usage("--measured: found a step on {}, whose ranks share cores; needs GPUs: there a profile says the times",
                  m.cluster.name);
    const double before_s = predicted_step_s(m.run, m.cluster, sources);
    steps.push_back({sensitivity(m.run, m.cluster, sources), std::log(m.step_s / before_s)});
    out.runs.push_back({m.run_file, m.step_s, before_s, 0});
  }
  out.steps = OwnSteps(steps);
  TimeSources known = sources;
  known.factors = out.steps.factors();
  for (std::size_t i = 0; i < measured.size(); ++i)
    out.runs[i].after_s = predicted_step_s(measured[i].run, measured[i].cluster, known);
  return out;
}

double interval_ratio(const OwnSteps& steps, const StepSensitivity& sensitivity) {
  return std::exp(kNormal80 * steps.log_spread(sensitivity));
}

StepRatiosByKind ratios_of(const OwnSteps& steps, const StepSensitivity& sensitivity, const ClusterSpec& cluster) {
  const double ratio = interval_ratio(steps, sensitivity);
  return StepRatiosByKind(1 + cluster.others.size(), StepRatios{1 / ratio, ratio});
}

}  // namespace wt
