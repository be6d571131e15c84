#include "planner/cadence/cadence_runs.hpp"

namespace wt {

CadenceInput cadence_input(const FailurePreset& preset, std::int64_t nodes, SourcedNumber step_s,
                           SourcedNumber blocking_s, SourcedNumber persist_s, SourcedNumber repair_s) {
  CadenceInput in;
  in.step_s = std::move(step_s);
  in.mtbf_s = preset.job_mtbf_s(nodes);
  in.blocking_s = std::move(blocking_s);
  in.persist_s = std::move(persist_s);
  in.recovery = preset.recovery;
  in.planned_mean_s = preset.planned_mtbs_s(nodes);
  in.planned_stop_s = preset.planned_duration_s();
  in.nodes = nodes;
  in.repair_s = std::move(repair_s);
  return in;
}

RunScenario run_scenario(const CadenceInput& in, const CadencePlan& plan, std::int64_t steps) {
  RunScenario s;
  s.steps = steps;
  s.step_s = in.step_s.value;
  s.interval_steps = plan.interval_steps;
  s.blocking_s = in.save_s();
  s.persist_s = in.persist_s.value;
  s.failures.mean_s = in.mtbf_s.value;
  s.detect_s = in.recovery.detect_s.value;
  s.reschedule_s = in.recovery.reschedule_s.value;
  s.restart_s = in.recovery.restart_s.value;
  s.reload_s = in.recovery.reload_s.value;
  s.spread = {in.recovery.detect_s.sigma(), in.recovery.reschedule_s.sigma(), in.recovery.restart_s.sigma(),
              in.recovery.reload_s.sigma(), 0};
  s.planned_mean_s = in.planned_mean_s.value;
  s.planned_stop_s = in.planned_stop_s.value;
  if (in.stragglers)
    s.stragglers = {in.stragglers->onset.job_mean_s(in.nodes), in.stragglers->step_factor.value,
                    in.stragglers->duration_s.value, in.stragglers->exchanged};
  s.local = in.local;
  s.silent = in.silent;
  s.tolerance = in.tolerance;
  s.maintenance_every_s = in.maintenance.every_s;
  s.maintenance_s = in.maintenance.duration_s;
  s.spares = static_cast<std::int64_t>(plan.spares.value);
  s.repair_s = in.repair_s.value;
  return s;
}

CadenceRuns simulate_cadence(const CadenceInput& in, const CadencePlan& plan, std::int64_t steps, std::int64_t runs,
                             std::uint64_t seed) {
  const RunScenario scenario = run_scenario(in, plan, steps);
  return {scenario, simulate_runs(scenario, runs, seed)};
}

}  // namespace wt
