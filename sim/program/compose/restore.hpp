// The network traffic of loading a checkpoint: the first ranks with the state each read their own part, and broadcast
// it to the ranks that keep copies. These are ops of a step program, so that the replay times them like a step's.
#pragma once
#include "sim/program/compose/compose.hpp"

namespace wt {

/// In order: embedding, each layer's dense and expert weights, head. Each has the checkpoint's three tensors (master,
/// first and second moment) with a third of bytes_per_parameter each. No op if there are no copies. A pipeline has one
/// program per stage.
ProgramSet restore_programs(const ModelSpec& model, const Layout& layout, double bytes_per_parameter);
/// Elements whose optimizer state a rank of each stage keeps; one value per stage.
std::vector<double> state_elements_of_stages(const ModelSpec& model, const Layout& layout);

}  // namespace wt
