// What a stack changes of a run's step program: how it uses memory, and how it distributes layers over pipeline stages.
#pragma once
#include <cstdint>
#include <vector>

#include "configs/files/model.hpp"
#include "configs/files/stack.hpp"
#include "sim/program/compose/compose.hpp"

namespace wt {

/// How a stack's programs use memory, and whether its attention keeps scores.
void take_memory(const StackSpec& stack, ProgramOptions& options);
/// Memory, and the layers of stages where the run does not say them. Throws Error{usage} where the layout has what the
/// stack has not.
void take_stack(const StackSpec& stack, const ModelSpec& model, Layout& layout, ProgramOptions& options);

/// Layers of each chunk of a pipeline: the first ones one more where the chunks do not divide the layers; or by cost,
/// with the output projection in it (StackSpec::balanced_stages). Empty = equally many.
std::vector<std::int64_t> deal_layers(const ModelSpec& model, const Layout& layout, bool balanced);

}  // namespace wt
