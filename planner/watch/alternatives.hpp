// Options for a run that must exclude nodes, and the time that each loses: closed forms of one loss. A loss with
// missing inputs is UNKNOWN, never a guess.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace wt {

/// The inputs. All times are wall seconds.
struct LossFigures {
  /// From the stop to the first new step; there is no work to redo, because a save comes before.
  std::optional<double> restart_s = {};
  std::optional<double> repair_s = {};     ///< until an excluded node is back
  std::optional<double> remaining_s = {};  ///< of the run at its normal pace
  std::optional<double> slow_factor = {};  ///< current step time over the normal one
  /// Step time on the remaining nodes over the normal one; empty if no layout fits.
  std::optional<double> shrunk_factor = {};
  std::string shrunk_layout = {};  ///< run file of that layout
  bool spare = false;              ///< enough standby nodes
};

enum class RecoveryOption { go_on, spare, shrink, wait };
std::string to_string(RecoveryOption option);
std::optional<RecoveryOption> recovery_option_from(const std::string& words);

struct Alternative {
  RecoveryOption option = RecoveryOption::go_on;
  bool possible = true;
  std::optional<double> lost_s = {};   ///< wall time lost until the run's end; empty = UNKNOWN
  std::optional<double> goodput = {};  ///< remaining / (remaining + lost); empty = UNKNOWN
  std::string note = {};               ///< missing inputs, and when this option would pay
};

/// All four, in the order of RecoveryOption. With R remaining, r restart, t repair, a slow and f shrunk factor, the
/// lost time is
///   go on   R (a - 1): nobody repairs a node in use
///   spare   r
///   shrink  r + R (f - 1), as the run does not grow by itself; if a human makes it grow, 2 r + t (1 - 1/f)
///   wait    t + r
std::vector<Alternative> alternatives(const LossFigures& figures);

/// The possible option with the least known loss; empty if no loss is known.
std::optional<RecoveryOption> cheapest_option(const std::vector<Alternative>& alternatives);

/// Asks for the figures of a run that continues without some of its nodes.
struct LossQuestion {
  std::int64_t nodes_lost = 0;
  std::int64_t step = 0;  ///< last step done
  std::optional<double> slow_factor = {};
};
using AskPlanner = std::function<LossFigures(const LossQuestion&)>;

}  // namespace wt
