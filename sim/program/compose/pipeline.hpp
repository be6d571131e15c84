// The program of one pipeline stage, or of a model without one whose weights stay where they are
// (Layout::resident_weights): weights are gathered before the first microbatch, gradients summed behind the last one.
#pragma once
#include "sim/program/compose/compose.hpp"

namespace wt {

/// `model` is a tensor rank's slice. The stage's microbatches are a flat list of loops in the order of stage_schedule.
/// A stage receives a chunk's input as "block.output" of the layer before it, and the gradient of its output as
/// "block.input.gradient" of the one behind.
Program stage_program(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t stage,
                      std::int64_t expert_rank);
/// Its Program::resident alone.
std::vector<Buffer> stage_resident(const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                                   std::int64_t stage);

}  // namespace wt
