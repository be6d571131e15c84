#include "sim/machine/op_cost.hpp"

namespace wt {

std::string to_string(Lookup lookup) {
  static const char* names[] = {"exact", "staircase", "fitted", "roofline"};
  return names[static_cast<int>(lookup)];
}

}  // namespace wt
