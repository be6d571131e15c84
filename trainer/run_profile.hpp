// What a run says about the machine: CPU seconds of every kind of op, as measurements for `windtunnel calibrate`.
#pragma once
#include <vector>

#include "configs/spec/profile.hpp"
#include "configs/spec/run.hpp"
#include "sim/program/timeline.hpp"

namespace wt {

/// `timelines`: measured steps of one rank, ops as unroll(program) has them; not empty. `collectives`: those that begin
/// with work of their own (the cast before a gather) count too; false where collectives are faked.
Profile run_profile(const RunSpec& run, const Program& program, const std::vector<StepTimeline>& timelines, bool collectives = true);

}  // namespace wt
