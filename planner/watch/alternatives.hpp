// What can be done about nodes that are to be excluded, and what each way costs: the closed forms of one loss. A cost
// whose inputs nobody gave is UNKNOWN, never a guess.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace wt {

/// What the costs are computed from. Times in seconds of wall time.
struct LossFigures {
  std::optional<double> restart_s =
      {};  ///< from the stop to the first new step; a save before it leaves no work to redo
  std::optional<double> repair_s = {};       ///< until an excluded node is back
  std::optional<double> remaining_s = {};    ///< of the run at its usual pace
  std::optional<double> slow_factor = {};    ///< step time as it is now over the usual one
  std::optional<double> shrunk_factor = {};  ///< step time on what is left over the usual one; none where nothing fits
  std::string shrunk_layout = {};            ///< the run file of that
  bool spare = false;                        ///< enough nodes stand by
};

enum class Way { go_on, spare, shrink, wait };
std::string to_string(Way way);
std::optional<Way> way_from(const std::string& words);

struct Alternative {
  Way way = Way::go_on;
  bool possible = true;
  std::optional<double> lost_s = {};   ///< of wall time, until the run's end; none = UNKNOWN
  std::optional<double> goodput = {};  ///< remaining / (remaining + lost); none = UNKNOWN
  std::string note = {};               ///< what is missing, and when this way would pay
};

/// All four, in the order of Way. With R remaining, r restart, t repair, a slow and f shrunk factor:
///   go on   R (a - 1): nobody repairs a node that is in use
///   spare   r
///   shrink  r + R (f - 1): nothing lets it grow again by itself; where a human does, 2 r + t (1 - 1/f)
///   wait    t + r
std::vector<Alternative> alternatives(const LossFigures& figures);

/// The possible one that is known to lose least; none where no cost is known.
std::optional<Way> least_lost(const std::vector<Alternative>& alternatives);

/// Answers for a run that is to go on without so many of its nodes from this step on.
struct LossQuestion {
  std::int64_t nodes_lost = 0;
  std::int64_t step = 0;  ///< done
  std::optional<double> slow_factor = {};
};
using AskPlanner = std::function<LossFigures(const LossQuestion&)>;

}  // namespace wt
