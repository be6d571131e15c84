#include "trainer/data/unit_pieces.hpp"

#include <numeric>

namespace wt {

std::vector<NodePieces> cut_units(const EpochUnits& units, const std::vector<std::size_t>& order,
                                  std::int64_t num_canonical_nodes) {
  std::vector<NodePieces> nodes;
  auto next = order.begin();
  std::int64_t used = 0;  // samples of the next unit that are already assigned
  std::int64_t placed = 0;
  for (std::int64_t node = 1; node <= num_canonical_nodes; ++node) {
    const std::int64_t node_end = units.samples() * node / num_canonical_nodes;
    NodePieces& mine = nodes.emplace_back();
    while (next != order.end()) {
      const UnitPiece rest = {*next, used, units.samples_of(*next)};
      if (placed + rest.size() <= node_end) {
        mine.push_back(rest);
        placed += rest.size();
        used = 0;
        ++next;
        continue;
      }
      const std::int64_t room = node_end - placed;
      if (room > 0) mine.push_back({rest.unit, rest.begin, rest.begin + room});
      used += room;
      placed = node_end;
      break;
    }
  }
  return nodes;
}

std::vector<NodePieces> deal_units(const EpochUnits& units, std::int64_t num_canonical_nodes, NumpyRandom* run) {
  std::vector<std::size_t> order(units.units());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (run != nullptr) run->shuffle(std::span(order));
  return cut_units(units, order, num_canonical_nodes);
}

std::vector<std::int64_t> piece_places(const NodePieces& pieces) {
  std::vector<std::int64_t> places = {0};
  for (const UnitPiece& piece : pieces) places.push_back(places.back() + piece.size());
  return places;
}

void append_piece(const EpochUnits& units, const UnitPiece& piece, std::vector<std::int64_t>& ids) {
  const auto first = static_cast<std::int64_t>(ids.size());
  units.append_ids(piece.unit, ids);
  ids.erase(ids.begin() + first + piece.end, ids.end());
  ids.erase(ids.begin() + first, ids.begin() + first + piece.begin);
}

}  // namespace wt
