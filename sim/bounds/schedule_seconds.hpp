// A pipeline's step, pass by pass. Each stage runs its schedule (sim/program/compose/pipeline_schedule.hpp), and a pass
// waits for that of the neighbouring chunk. A lower bound: passes have their least time; gradients, weights and the
// optimizer are free.
#pragma once
#include "sim/bounds/layer_seconds.hpp"

namespace wt {

/// `message_s`: time of a message between stages. Only for one_f_one_b, with or without chunks and overlapped passes.
/// Other schedules split backward passes, and the times of the parts are not known here.
double scheduled_step_s(const LayerSeconds& seconds, const Layout& layout,
                        const std::vector<std::int64_t>& chunk_layers, std::int64_t microbatches, double message_s);

}  // namespace wt
