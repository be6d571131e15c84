// Routing of one step for the simulated expert groups: rows from each source rank to each expert rank.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "configs/files/layout.hpp"
#include "sim/program/routing/routing.hpp"

namespace wt {

class RoutingTable {
 public:
  /// `groups`: indices of expert groups of data ranks (Layout::row_rank(rank) / expert), ascending.
  RoutingTable(const RoutingSource& routing, const Layout& layout, int layers, int microbatches, std::int64_t step,
               std::vector<std::int64_t> groups);

  /// Rows that a rank receives; 0 if the expert axis is 1 or the op is outside the layers.
  double rows(int microbatch, int layer, std::int64_t rank) const;
  /// The same by the slots of its experts, in slot order; empty for a model without experts.
  std::span<const double> by_expert(int microbatch, int layer, std::int64_t rank) const;
  /// [source coordinate * expert + expert coordinate] of the rank's expert group.
  const std::vector<double>& sends(int microbatch, int layer, std::int64_t rank) const;

 private:
  std::size_t at(int microbatch, int layer, std::int64_t rank) const;

  Layout layout_;
  std::int64_t expert_;
  int layers_;
  int last_;    ///< last microbatch, which may have fewer tokens than the others
  bool alike_;  ///< all microbatches before the last are routed alike, so only the first is stored
  std::vector<std::int64_t> groups_;
  std::vector<std::vector<double>> sends_, slots_;  ///< by microbatch, layer and group
  std::vector<double> rows_;                        ///< by microbatch, layer, group and expert coordinate
};

}  // namespace wt
