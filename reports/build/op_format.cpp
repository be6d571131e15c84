#include "reports/build/op_format.hpp"

#include <algorithm>

namespace wt {

std::string op_name(const OpKey& key) {
  static const char* const kDirections[] = {"", ", recomputed", ", backward"};
  std::string name = to_string(key.action);
  std::replace(name.begin(), name.end(), '_', ' ');
  if (key.group != Group::none) name += " (" + to_string(key.group) + ")";
  return name + kDirections[static_cast<int>(key.direction)];
}

}  // namespace wt
