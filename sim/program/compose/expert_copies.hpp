// Replicated experts. A placement that lists an expert more than once gives it copies: each rank's rows for it are cut
// into nearly equal parts, one a copy, and the copies' gradients are summed before they are reduced, so that all copies
// take the same step. Every copy keeps its own optimizer state (equal bits on all of them, no weights to send); norms
// and checkpoints count the one in the lowest slot.
#pragma once
#include <cstdint>
#include <vector>

#include "configs/files/layout.hpp"
#include "configs/files/model.hpp"

namespace wt {

bool has_copies(const ModelSpec& model, const Layout& layout);
/// True when a lower slot of the layer holds the same expert.
bool is_further_copy(const Layout& layout, std::int64_t layer, std::int64_t slot);

/// Rows of each slot when a rank sends `counts[e]` rows to expert e: whole numbers as evenly as can be, lower slots
/// first, in the order of the rows; fractions in equal parts.
std::vector<double> rows_per_slot(const Layout& layout, std::int64_t layer, const std::vector<double>& counts);

/// What one expert rank exchanges with the others of its group after a layer's backward pass.
struct CopyExchange {
  std::vector<std::int64_t> experts;              ///< logical experts that the rank holds, ascending, each once
  std::vector<std::vector<std::int64_t>> shared;  ///< by expert rank: those that both hold, ascending; none with itself
  std::vector<std::int64_t> rows() const;         ///< experts sent to, and received from, each rank
  std::int64_t total() const;
};
CopyExchange copy_exchange(const ModelSpec& model, const Layout& layout, std::int64_t layer, std::int64_t expert_rank);

}  // namespace wt
