// Op times of a run, as measurements for `windtunnel calibrate`.
#pragma once
#include <vector>

#include "configs/files/profile.hpp"
#include "configs/files/run.hpp"
#include "sim/program/timeline.hpp"
#include "trainer/executor/executor.hpp"

namespace wt {

/// `timelines`: measured steps of the executor's rank, not empty. Times are CPU seconds of the thread on the CPU,
/// otherwise the device's. `collectives`: whether collectives that begin with work (the cast before a gather) count;
/// false in a rehearsal, which has no peers.
Profile run_profile(const RunSpec& run, const Executor& executor, const std::vector<StepTimeline>& timelines,
                    bool collectives = true);

}  // namespace wt
