// What a layer computes again as a number, for shapes in profiles: 1 block, 2 attention, 4 experts, 8 norm, 16 core, 32
// products.
#pragma once
#include "configs/spec/recompute.hpp"

namespace wt {

std::int64_t mask_of(const LayerRecompute& recompute);
/// The plan that has these modules in every layer.
Recompute recompute_of_mask(std::int64_t mask);

}  // namespace wt
