// Compares published memory figures with the memory model of plans and simulations (sim/cost/memory/stack_memory.hpp).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/memory/stack_memory.hpp"
#include "sim/measurements/outside_rows.hpp"
#include "sim/measurements/run_rows.hpp"
#include "sim/program/memory/live_memory.hpp"
#include "sim/validate/anchors.hpp"
#include "sim/validate/judged.hpp"

namespace wt {

/// Bytes of tensors at the peak, as `windtunnel simulate` prints them for the row's run files: on the fullest rank, or
/// on the first stage if the stack prints that one. Throws Error{usage} if none of our layouts matches the row.
LiveMemory simulated_memory(const RunRow& row, const StackSpec& stack);

/// One judged row for each of `rows` that has a memory figure or is unusable, in order. The model is fitted to
/// `reference` without the row's group (MemoryModel::group_of) or its origin. `stack` names the stack of all `rows`; if
/// it is empty, `stacks` is searched for the row's framework. The baseline assumes constant bytes per parameter on the
/// GPU: the median of the other groups in `reference` with the same kind of figure.
std::vector<Judged> judge_memory(const std::vector<RunRow>& rows, const std::vector<RunRow>& reference,
                                 const std::vector<StackSpec>& stacks, const std::string& stack = "",
                                 LeftOut left_out = LeftOut::group);

/// The same rows without and with others of their origin, model and GPU known (AllocatorMemory::knowing), those of
/// which there are enough others. Nothing else that the origin published has a part. The baseline with known rows has
/// their bytes a parameter.
AnchoredRows judge_anchored_memory(const std::vector<RunRow>& rows, const std::vector<RunRow>& reference,
                                   const std::vector<StackSpec>& stacks, const AnchorsAsked& asked);

/// A run that ended in one of two ways, with the predicted probability that its memory does not suffice.
struct JudgedOutcome {
  std::int64_t line = 0;
  std::string name, origin;
  bool ran = false;                ///< otherwise it ran out of memory
  std::optional<double> runs_out;  ///< probability; empty: no prediction, for `reason`
  std::string reason = {};
  bool right() const { return (*runs_out < 0.5) == ran; }
};
/// One for each row that says how its run ended and how much memory its GPUs have. Nothing that the row's origin
/// published has a part in the prediction, which is of the whole process (StackMemory::process).
std::vector<JudgedOutcome> judge_outcomes(const std::vector<RunRow>& rows, const std::vector<RunRow>& reference,
                                          const std::vector<OutsideRow>& outside, const std::vector<StackSpec>& stacks,
                                          const std::string& stack = "");

/// The same for the memory that processes use outside their allocator. Each row is predicted without its origin. The
/// baseline is the median of the other origins' rows, for one GPU or for several as in the row.
std::vector<Judged> judge_outside(const std::vector<OutsideRow>& rows, const std::vector<OutsideRow>& reference,
                                  const std::vector<StackSpec>& stacks);

}  // namespace wt
