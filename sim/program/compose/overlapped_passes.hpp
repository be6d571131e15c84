// Two interleaved passes of a stage: the rows of one are exchanged while the other computes (Layout::exchange_overlap).
#pragma once
#include <vector>

#include "sim/program/program.hpp"

namespace wt {

/// Splits a microbatch's pass (ops and loops over layers) after every exchange of rows.
std::vector<Body> pieces_of(const Body& pass);

}  // namespace wt
