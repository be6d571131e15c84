// Two passes of a stage at once, so that the rows of one travel while the other computes (Layout::exchange_overlap).
#pragma once
#include <vector>

#include "sim/program/program.hpp"

namespace wt {

/// A pass of one microbatch, ops and loops over layers, cut behind every exchange of rows.
std::vector<Body> pieces_of(const Body& pass);

}  // namespace wt
