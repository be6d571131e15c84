// Judges the memory that plans and simulations ask for (sim/cost/memory/stack_memory.hpp) by published figures.
#pragma once
#include <string>
#include <vector>

#include "sim/cost/memory/stack_memory.hpp"
#include "sim/measurements/outside_rows.hpp"
#include "sim/measurements/run_rows.hpp"
#include "sim/program/memory/live_memory.hpp"
#include "sim/validate/judged.hpp"

namespace wt {

/// Bytes of tensors at the peak, as `windtunnel simulate` prints them of the run's files: on the rank with most, or of
/// the first stage where the stack's tables print that one. Throws Error{usage} where no layout of ours is the row's.
LiveMemory simulated_memory(const RunRow& row, const StackSpec& stack);

/// One judged row, in order, for every row with a memory and every unusable one. Each is asked of the model without the
/// row's own group (MemoryModel::group_of) or origin. `stack`: the name of the stack of all of `rows`; empty = by their
/// framework, of `stacks`. `model`: of the reference's samples; rows have no part in it that the reference has not. The
/// baseline holds the bytes a parameter on the GPU constant: the median of the other groups of `reference` with the
/// same kind of figure.
std::vector<Judged> judge_memory(const std::vector<RunRow>& rows, const std::vector<RunRow>& reference,
                                 const std::vector<StackSpec>& stacks, const std::string& stack = "",
                                 LeftOut left_out = LeftOut::group);

/// The same of what processes take outside of their allocator; each row without its own origin. The baseline is the
/// median of the other origins' rows, of one GPU or of several as the row's.
std::vector<Judged> judge_outside(const std::vector<OutsideRow>& rows, const std::vector<OutsideRow>& reference,
                                  const std::vector<StackSpec>& stacks);

}  // namespace wt
