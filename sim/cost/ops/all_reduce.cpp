#include "sim/cost/ops/all_reduce.hpp"

#include "configs/base/enum_words.hpp"

#include <array>

namespace wt {

std::string to_string(AllReduce algorithm) {
  return word_for(algorithm, std::array{"ring", "tree", "nvls", "nvls_tree", "hierarchical"});
}

std::optional<AllReduce> all_reduce_named(const std::string& name) {
  for (const AllReduce each : kAllReduces)
    if (to_string(each) == name) return each;
  return std::nullopt;
}

}  // namespace wt
