// The constants of links (sim/cost/collectives/link_constants.hpp), fitted to measured collectives.
#pragma once
#include <vector>

#include "sim/cost/collectives/link_constants.hpp"

namespace wt {

/// Throws Error{usage} without times. All on one node, or all over several. `near`: constants of almost the same times,
/// where the search for these begins.
LinkConstants fit_links(const std::vector<TimedLoad>& times, const LinkConstants* near = nullptr);

}  // namespace wt
