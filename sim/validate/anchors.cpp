#include "sim/validate/anchors.hpp"

#include <algorithm>
#include <random>

namespace wt {

std::map<std::size_t, std::vector<std::size_t>> draw_anchors(
    const std::map<std::string, std::vector<std::size_t>>& jobs, const AnchorsAsked& asked) {
  const auto known = static_cast<std::size_t>(asked.anchors);
  std::map<std::size_t, std::vector<std::size_t>> out;
  for (const auto& [name, members] : jobs) {
    if (members.size() <= known) continue;
    for (const std::size_t index : members) {
      std::vector<std::size_t> others;
      for (const std::size_t other : members)
        if (other != index) others.push_back(other);
      std::mt19937_64 draw(asked.seed * 1'000'003 + index);
      std::ranges::shuffle(others, draw);
      others.resize(known);
      out[index] = std::move(others);
    }
  }
  return out;
}

}  // namespace wt
