// Whether experts should move while loads drift: a placement planned on the loads seen last, every so many windows of
// time, against the first placement kept. Each window is judged with a placement that was planned before it.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "planner/placement/expert_slots.hpp"
#include "sim/program/routing/load_windows.hpp"

namespace wt {

struct ReplacementCosts {
  std::function<double(const LoadScenario&, const Placement&)> step_s;
  std::function<double(const Placement& from, const Placement& to)> move_s;  ///< training stands still so long
};

struct ReplacementOption {
  std::int64_t every_steps = 0;  ///< 0 = the first placement stays
  std::int64_t moves = 0;
  double load = 1;      ///< max/mean over the expert ranks, mean over layers and windows
  double step_s = 0;    ///< mean over the windows
  double move_s = 0;    ///< mean of a move
  double with_moves_s;  ///< step_s, and what moves add to each step
};

struct ReplacementStudy {
  std::int64_t windows = 0;  ///< judged: all but the first, which the first placement is planned on
  std::int64_t window_steps = 0;
  std::vector<ReplacementOption> options;  ///< the first placement kept, then by rising period
  std::size_t chosen = 0;                  ///< the least with_moves_s
  /// Share of the time that the chosen one saves.
  double gain() const { return 1 - options[chosen].with_moves_s / options[0].with_moves_s; }
};

/// Periods of 1, 2, 4 ... windows. `slots`: further slots and nodes; `from` is not used. Asks for step_s of each window
/// once a period, and the first placement. Throws Error{usage} with fewer than two windows.
ReplacementStudy study_replacement(const LoadWindows& windows, std::int64_t layers, std::int64_t expert_ranks,
                                   const SlotOptions& slots, const ReplacementCosts& costs);

}  // namespace wt
