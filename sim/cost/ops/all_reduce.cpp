#include "sim/cost/ops/all_reduce.hpp"

namespace wt {

std::string to_string(AllReduce algorithm) {
  static const char* const names[] = {"ring", "tree", "nvls", "nvls_tree", "hierarchical"};
  return names[static_cast<int>(algorithm)];
}

std::optional<AllReduce> all_reduce_named(const std::string& name) {
  for (const AllReduce each : kAllReduces)
    if (to_string(each) == name) return each;
  return std::nullopt;
}

}  // namespace wt
