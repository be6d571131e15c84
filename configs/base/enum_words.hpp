// The words of an enumeration in files and reports. Words are in the order of their enumerators, which count from 0.
#pragma once
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

namespace wt {

template <typename Enum, typename Words>
std::string word_for(Enum value, const Words& words) {
  return words[static_cast<std::size_t>(value)];
}

/// Empty for a word that is none of them.
template <typename Enum, typename Words>
std::optional<Enum> enumerator_of(const std::string& word, const Words& words) {
  const auto found = std::find(std::begin(words), std::end(words), word);
  if (found == std::end(words)) return std::nullopt;
  return static_cast<Enum>(found - std::begin(words));
}

}  // namespace wt
