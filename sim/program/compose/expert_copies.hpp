// Replicated experts. A placement that lists an expert more than once gives it copies. Each rank splits its rows for
// the expert into nearly equal parts, one per copy. The copies' gradients are summed before they are reduced, so that
// all copies take the same step. Every copy keeps its own optimizer state (the same bits, so that no weights are sent).
// Norms and checkpoints count the copy in the lowest slot.
#pragma once
#include <cstdint>
#include <vector>

#include "configs/files/layout.hpp"
#include "configs/files/model.hpp"

namespace wt {

bool has_copies(const ModelSpec& model, const Layout& layout);
/// Whether a lower slot of the layer holds the same expert.
bool is_further_copy(const Layout& layout, std::int64_t layer, std::int64_t slot);

/// Rows of each slot when a rank sends `counts[e]` rows to expert e. Whole numbers are split as evenly as possible,
/// lower slots first, in the order of the rows; fractions are split equally.
std::vector<double> rows_per_slot(const Layout& layout, std::int64_t layer, const std::vector<double>& counts);

/// The gradients that one expert rank exchanges with its group after a layer's backward pass.
struct CopyExchange {
  std::vector<std::int64_t> experts;  ///< logical experts of this rank, ascending, each once
  std::vector<std::vector<std::int64_t>>
      shared;                              ///< by expert rank: experts that both have, ascending; none with itself
  std::vector<std::int64_t> rows() const;  ///< number of experts sent to, and received from, each rank
  std::int64_t total() const;
};
CopyExchange copy_exchange(const ModelSpec& model, const Layout& layout, std::int64_t layer, std::int64_t expert_rank);

}  // namespace wt
