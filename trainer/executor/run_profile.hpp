// What a run says about the machine: seconds of every kind of op, as measurements for `windtunnel calibrate`.
#pragma once
#include <vector>

#include "configs/files/profile.hpp"
#include "configs/files/run.hpp"
#include "sim/program/timeline.hpp"
#include "trainer/executor/executor.hpp"

namespace wt {

/// `timelines`: measured steps of the executor's rank, not empty. CPU seconds of the thread on the CPU, else the
/// device's. `collectives`: those that begin with work of their own (the cast before a gather) count too; false in a
/// rehearsal, which is alone.
Profile run_profile(const RunSpec& run, const Executor& executor, const std::vector<StepTimeline>& timelines,
                    bool collectives = true);

}  // namespace wt
