// A value that a map may lack.
#pragma once

namespace wt {

/// The value under the key, or else the fallback.
template <typename Map>
typename Map::mapped_type value_or(const Map& map, const typename Map::key_type& key,
                                   typename Map::mapped_type fallback = {}) {
  const auto found = map.find(key);
  return found == map.end() ? fallback : found->second;
}

}  // namespace wt
