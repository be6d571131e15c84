// Units of an epoch dealt to canonical nodes: a cut at the end of a node makes two pieces of a unit.
#pragma once
#include <cstdint>
#include <memory>
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

/// The units in their order, or shuffled by `run`, cut at samples N*1/C, N*2/C, ... (rounded down).
std::vector<NodePieces> deal_units(const EpochUnits& units, std::int64_t num_canonical_nodes, NumpyRandom* run);
/// The same of units in the order `order`.
std::vector<NodePieces> cut_units(const EpochUnits& units, const std::vector<std::size_t>& order,
                                  std::int64_t num_canonical_nodes);

/// The begin of each piece within its node, and the end of the last.
std::vector<std::int64_t> piece_places(const NodePieces& pieces);
/// Appends the ids of a piece in the unit's order.
void append_piece(const EpochUnits& units, const UnitPiece& piece, std::vector<std::int64_t>& ids);

}  // namespace wt
