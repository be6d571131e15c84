// Units of an epoch assigned to canonical nodes. At the boundary of two nodes a unit is cut into two pieces.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/data/epoch_units.hpp"

namespace wt {

/// Samples [begin, end) of a unit, kept together.
struct UnitPiece {
  std::size_t unit = 0;
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

using NodePieces = std::vector<UnitPiece>;

/// Cuts the units, in their order or shuffled by `run`, at samples N*1/C, N*2/C, ... (rounded down).
std::vector<NodePieces> deal_units(const EpochUnits& units, std::int64_t num_canonical_nodes, NumpyRandom* run);
/// The same with units in the order `order`.
std::vector<NodePieces> cut_units(const EpochUnits& units, const std::vector<std::size_t>& order,
                                  std::int64_t num_canonical_nodes);

/// The begin of each piece within its node, and the end of the last one.
std::vector<std::int64_t> piece_places(const NodePieces& pieces);
/// Appends the ids of a piece in the unit's order.
void append_piece(const EpochUnits& units, const UnitPiece& piece, std::vector<std::int64_t>& ids);

}  // namespace wt
