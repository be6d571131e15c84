#include "trainer/model/forced_routing.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "configs/base/error.hpp"

namespace wt {

std::vector<std::int64_t> choose_experts(const std::vector<std::int64_t>& counts, std::int64_t tokens,
                                         std::int64_t top_k, std::uint64_t seed) {
  if (std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) != tokens * top_k)
    throw_runtime("forced routing: found {} rows, needs tokens x top_k = {}; fix the counts",
                  std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), tokens * top_k);
  std::vector<std::int64_t> place(static_cast<std::size_t>(tokens));
  std::iota(place.begin(), place.end(), std::int64_t{0});
  std::mt19937_64 generator(seed);
  std::shuffle(place.begin(), place.end(), generator);
  // Deals experts, each as many times in succession as it is chosen, to the tokens in turn. A run of at most `tokens`
  // equal experts never reaches a token twice, and after tokens * top_k of them every token has top_k.
  std::vector<std::int64_t> out(static_cast<std::size_t>(tokens * top_k));
  std::int64_t card = 0;
  for (std::size_t expert = 0; expert < counts.size(); ++expert)
    for (std::int64_t i = 0; i < counts[expert]; ++i, ++card)
      out[static_cast<std::size_t>(place[static_cast<std::size_t>(card % tokens)] * top_k + card / tokens)] =
          static_cast<std::int64_t>(expert);
  return out;
}

}  // namespace wt
