// Two passes of a stage at once, so that the rows of one travel while the other computes (Layout::exchange_overlap).
#pragma once
#include <vector>

#include "sim/program/program.hpp"

namespace wt {

/// The ops of both, each in its own order: turn by turn one piece of each, a piece ending with an exchange of rows.
/// Both are loops over microbatches, of ops and of loops over layers.
std::vector<Node> overlapped(const Loop& one, const Loop& other);

}  // namespace wt
