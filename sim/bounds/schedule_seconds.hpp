// A pipeline's step, pass by pass: each stage goes through its schedule (sim/program/compose/pipeline_schedule.hpp),
// and a pass waits for the neighbouring chunk's. A lower bound: passes take what they take at least, and gradients,
// weights and the optimizer nothing.
#pragma once
#include "sim/bounds/layer_seconds.hpp"

namespace wt {

/// `message_s`: from stage to stage. Of one_f_one_b, with chunks, and with passes beside each other or without; other
/// schedules split backward passes, whose parts are not known here.
double scheduled_step_s(const LayerSeconds& seconds, const Layout& layout,
                        const std::vector<std::int64_t>& chunk_layers, std::int64_t microbatches, double message_s);

}  // namespace wt
