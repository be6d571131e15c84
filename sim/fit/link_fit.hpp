// Fits the constants of links (sim/cost/collectives/link_constants.hpp) to measured collectives.
#pragma once
#include <vector>

#include "sim/cost/collectives/link_constants.hpp"

namespace wt {

/// `times` are of one form of collective, either all on one node or all over several. The search begins at `near`, the
/// constants of almost the same times, if it is given. Throws Error{usage} if `times` is empty.
LinkConstants fit_links(const std::vector<TimedLoad>& times, const LinkConstants* near = nullptr);

}  // namespace wt
