// Random draws that match their distribution even if there are few.
#pragma once
#include <cstdint>
#include <vector>

namespace wt {

/// One standard-normal value from each of n strata of equal probability, in an order given by the seed. Quantiles are
/// exact to within a stratum, and lists of two seeds are independent (McKay, Beckman, Conover 1979).
std::vector<double> stratified_normals(std::int64_t n, std::uint64_t seed);

}  // namespace wt
