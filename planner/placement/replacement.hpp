// Whether experts should move while loads drift. Compares the first placement, kept, with placements that are planned
// again on the latest loads, every so many windows of time. Each window is judged with a placement planned before it.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "planner/placement/expert_slots.hpp"
#include "sim/program/routing/load_windows.hpp"

namespace wt {

struct ReplacementCosts {
  std::function<double(const LoadScenario&, const Placement&)> step_s;
  std::function<double(const Placement& from, const Placement& to)> move_s;  ///< standstill of training
};

struct ReplacementOption {
  std::int64_t every_steps = 0;  ///< 0 = the first placement is kept
  std::int64_t moves = 0;
  double load = 1;      ///< max/mean over the expert ranks, averaged over layers and windows
  double step_s = 0;    ///< mean over the windows
  double move_s = 0;    ///< mean time of a move
  double with_moves_s;  ///< step_s plus the moves' time per step
};

struct ReplacementStudy {
  std::int64_t windows = 0;  ///< judged windows: all but the first, which the first placement is planned on
  std::int64_t window_steps = 0;
  std::vector<ReplacementOption> options;  ///< first the placement that is kept, then by increasing period
  std::size_t chosen = 0;                  ///< the one with the least with_moves_s
  /// Relative time saved by the chosen option.
  double gain() const { return 1 - options[chosen].with_moves_s / options[0].with_moves_s; }
};

/// Periods of 1, 2, 4 ... windows. `slots`: the options except `from`, which is ignored. Calls step_s for each window
/// once a period and once for the first placement. Throws Error{usage} with fewer than two windows.
ReplacementStudy study_replacement(const LoadWindows& windows, std::int64_t layers, std::int64_t expert_ranks,
                                   const SlotOptions& slots, const ReplacementCosts& costs);

}  // namespace wt
