#include "planner/money/draws.hpp"

#include <boost/math/distributions/normal.hpp>
#include <numeric>
#include <random>

#include "configs/base/hash.hpp"

namespace wt {

std::vector<double> stratified_normals(std::int64_t n, std::uint64_t seed) {
  std::vector<std::int64_t> layers(static_cast<std::size_t>(n));
  std::iota(layers.begin(), layers.end(), 0);
  std::mt19937_64 random(splitmix64(seed));
  for (std::size_t i = layers.size(); i > 1; --i) std::swap(layers[i - 1], layers[random() % i]);
  std::vector<double> out;
  out.reserve(layers.size());
  for (const std::int64_t layer : layers)
    out.push_back(
        boost::math::quantile(boost::math::normal(), (static_cast<double>(layer) + 0.5) / static_cast<double>(n)));
  return out;
}

}  // namespace wt
