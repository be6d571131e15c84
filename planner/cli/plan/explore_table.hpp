// The rows of a plan among which the reader of a page moves.
#pragma once
#include <optional>

#include "planner/plan/explored.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// `start`, `prices` and `within_s`: what the page shows at first.
Section explore_section(const std::vector<ExploredRow>& rows, std::size_t start, const std::optional<PriceSpec>& prices,
                        std::optional<double> within_s);

}  // namespace wt
