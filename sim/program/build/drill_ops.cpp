#include "sim/program/build/drill_ops.hpp"

#include "sim/program/build/build.hpp"

namespace wt {

void check_drill(const Scenario& scenario, const RunSpec& run) {
  const ProgramSet programs = build_program_set(run.model, run.layout, program_options(run));
  std::vector<std::string> ids, collectives;
  for (const OpInstance& op : unroll(programs.programs[0])) {
    ids.push_back(op.id());
    if (op.op->asynchronous()) collectives.push_back(op.id());
  }
  check_drill(scenario, run, ids, collectives);
}

}  // namespace wt
