#include "bench/formats/intervals.hpp"

#include <algorithm>

namespace wt {

Intervals merged(Intervals all) {
  std::ranges::sort(all);
  Intervals out;
  for (const auto& [begin, end] : all)
    if (!out.empty() && begin <= out.back().second)
      out.back().second = std::max(out.back().second, end);
    else
      out.emplace_back(begin, end);
  return out;
}

double seconds(const Intervals& merged) {
  double out = 0;
  for (const auto& [begin, end] : merged) out += end - begin;
  return out;
}

Intervals without(const Intervals& a, const Intervals& b) {
  Intervals out;
  auto hides = b.begin();
  for (auto [begin, end] : a) {
    while (hides != b.end() && hides->second <= begin) ++hides;
    for (auto each = hides; each != b.end() && each->first < end; ++each) {
      if (each->first > begin) out.emplace_back(begin, each->first);
      begin = std::max(begin, each->second);
    }
    if (begin < end) out.emplace_back(begin, end);
  }
  return out;
}

}  // namespace wt
