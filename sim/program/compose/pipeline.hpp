// The program of one pipeline stage, or of a model without a pipeline and with resident weights
// (Layout::resident_weights): weights are gathered before the first microbatch, gradients reduced after the last one.
#pragma once
#include "sim/program/compose/compose.hpp"

namespace wt {

/// `model` is a tensor rank's slice. The stage's microbatches are a flat list of loops in the order of stage_schedule.
/// A chunk's received input is "block.output" of the layer before it, the received gradient of its output is
/// "block.input.gradient" of the layer after it.
Program stage_program(const ModelSpec& model, const Layout& layout, const ProgramOptions& options, std::int64_t stage,
                      std::int64_t expert_rank);
/// Only the program's Program::resident.
std::vector<Buffer> stage_resident(const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                                   std::int64_t stage);

}  // namespace wt
