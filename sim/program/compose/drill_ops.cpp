#include "sim/program/compose/drill_ops.hpp"

#include "configs/files/run.hpp"
#include "configs/files/scenario.hpp"
#include "sim/program/compose/compose.hpp"

namespace wt {

StepOps step_ops(const RunSpec& run) {
  const ProgramSet programs = build_program_set(run.model, run.layout, program_options(run));
  StepOps out;
  for (const OpInstance& op : unroll(programs.programs[0])) {
    out.ids.push_back(op.id());
    if (op.op->asynchronous()) out.collectives.push_back(op.id());
  }
  return out;
}

void check_drill(const Scenario& scenario, const RunSpec& run) {
  const StepOps ops = step_ops(run);
  check_drill(scenario, run, ops.ids, ops.collectives);
}

}  // namespace wt
