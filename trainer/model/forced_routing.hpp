// The experts that a rank's tokens choose when a plan's routing replaces the router.
#pragma once
#include <cstdint>
#include <vector>

namespace wt {

/// [token * top_k + choice] -> expert, such that expert e is chosen counts[e] times and no token has an expert twice.
/// The seed shuffles which tokens choose which experts. `counts` must sum to tokens * top_k, each at most `tokens`, as
/// from whole_rows().
std::vector<std::int64_t> choose_experts(const std::vector<std::int64_t>& counts, std::int64_t tokens,
                                         std::int64_t top_k, std::uint64_t seed);

}  // namespace wt
