// A layer's recompute as a bit mask, for shapes in profiles. Bit i is the i-th Module: 1 block, 2 attention, 4 experts,
// 8 norm.
#pragma once
#include "configs/files/recompute.hpp"

namespace wt {

std::int64_t mask_of(const LayerRecompute& recompute);
/// Recompute of these modules in every layer.
Recompute recompute_of_mask(std::int64_t mask);

}  // namespace wt
