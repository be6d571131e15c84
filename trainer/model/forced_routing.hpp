// Which experts the tokens of a rank choose when a plan's routing decides instead of the router.
#pragma once
#include <cstdint>
#include <vector>

namespace wt {

/// [token * top_k + choice] -> expert, so that expert e is chosen counts[e] times and no token has one twice; which
/// tokens meet which experts is shuffled by the seed. `counts` sum to tokens * top_k, each at most `tokens` (what
/// whole_rows() gives).
std::vector<std::int64_t> choose_experts(const std::vector<std::int64_t>& counts, std::int64_t tokens,
                                         std::int64_t top_k, std::uint64_t seed);

}  // namespace wt
