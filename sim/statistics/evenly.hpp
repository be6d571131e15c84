// A sample evenly spread over the order of its members.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace wt {

/// All of `members` if there are at most `most`, else `most` of them.
template <typename T>
std::vector<T> evenly(const std::vector<T>& members, std::size_t most) {
  const std::size_t n = std::min(members.size(), most);
  std::vector<T> out;
  out.reserve(n);
  for (std::size_t i = 0; i < n; ++i) out.push_back(members[i * members.size() / n]);
  return out;
}

}  // namespace wt
