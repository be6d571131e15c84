// What it is worth to know a price of one cluster before an option is taken: how often another option would be, and
// what that saves. From the plans' own simulations; nothing is simulated again.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/decision.hpp"

namespace wt {

/// The classes of prices of every cluster whose options are in time and within budget, by what knowing them saves; only
/// those that would change the option. Options of one cluster move together, those of others stay. Each keeps its
/// plan's layout. None where the fewest GPUs are asked for: a price changes no number of GPUs.
std::vector<OptionWorth> option_worths(const Decision& decision);
/// What to measure first, of Decision::next, or that nothing would change the option; "" where no price is asked for.
std::string option_worth_sentence(const Decision& decision);

}  // namespace wt
