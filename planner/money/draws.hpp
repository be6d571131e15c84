// Draws that come close to their law with few of them.
#pragma once
#include <cstdint>
#include <vector>

namespace wt {

/// One standard-normal value in each of n layers of equal probability, in an order of the seed: their quantiles are the
/// law's to within a layer, and lists of two seeds are independent of each other (McKay, Beckman, Conover 1979).
std::vector<double> stratified_normals(std::int64_t n, std::uint64_t seed);

}  // namespace wt
