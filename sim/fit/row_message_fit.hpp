// Fits times of rows sent one by one (sim/cost/collectives/row_messages.hpp) to published benchmarks of dispatch and
// combine.
#pragma once
#include <vector>

#include "sim/cost/collectives/row_messages.hpp"
#include "sim/measurements/row_exchange_rows.hpp"

namespace wt {

RowMessages row_messages(const std::vector<RowExchangeRow>& rows);

}  // namespace wt
