// The weight matrices that Muon orthogonalises, and the work items of the orthogonalisation.
#pragma once
#include "sim/program/compose/compose.hpp"

namespace wt {

/// `count` matrices of (m, n), m <= n.
struct MuonMatrices {
  std::int64_t m = 0, n = 0;
  double count = 0;
  double elements() const { return count * static_cast<double>(m) * static_cast<double>(n); }
};

/// Matrices of a group on one rank in one layer: projections (q, k and v separately), router, FFN and experts (gate and
/// up separately). A tensor rank orthogonalises its slices separately. Embedding and output projection have none,
/// because they use AdamW, as in Liu et al. 2025 (arXiv 2502.16982, section 2.2).
std::vector<MuonMatrices> muon_matrices(const ModelSpec& model, const Layout& layout, Group group, std::int64_t layer);

/// Newton-Schulz iterations of Muon.
inline constexpr std::int64_t kNewtonSchulz = 5;

/// The products of all iterations on `matrices.count` matrices, in bf16: X Xt, its square, and the polynomial of both
/// times X; 2 m m n, 2 m m m and 2 m m n FLOPs each (Jordan 2024, kellerjordan.github.io/posts/muon).
std::vector<WorkItem> newton_schulz(const MuonMatrices& matrices);

}  // namespace wt
