// What loading a checkpoint puts on the network: the ranks that hold the state first read it, each its own part, and
// broadcast it to the ranks that keep copies. Ops of a step program, so that the replay prices them as it does a
// step's.
#pragma once
#include "sim/program/compose/compose.hpp"

namespace wt {

/// In order: embedding, each layer's dense and expert weights, head; of each the three tensors that a checkpoint has
/// (master, first and second moment) with a third of bytes_per_parameter each. No op where nobody keeps a copy. A
/// pipeline has a program for each stage.
ProgramSet restore_programs(const ModelSpec& model, const Layout& layout, double bytes_per_parameter);
/// Elements whose optimizer state a rank of each stage keeps. shape (pipeline,)
std::vector<double> state_elements_of_stages(const ModelSpec& model, const Layout& layout);

}  // namespace wt
