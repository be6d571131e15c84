// The value of knowing a price of one cluster before an option is chosen: how often the choice would change, and the
// saving. Uses the plans' simulations; simulates nothing.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/decision.hpp"

namespace wt {

/// The classes of prices of every cluster with feasible options, ordered by the saving; only those that would change
/// the choice. A class moves all options of its cluster, and each keeps its plan's layout. Empty if the fewest GPUs are
/// preferred, because prices do not change numbers of GPUs.
std::vector<OptionWorth> option_worths(const Decision& decision);
/// What to measure first, of Decision::next, or that nothing would change the choice; "" if prices are not varied.
std::string option_worth_sentence(const Decision& decision);

}  // namespace wt
