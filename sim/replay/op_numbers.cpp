#include "sim/replay/op_numbers.hpp"

#include <algorithm>

namespace wt {

OpNumbers::OpNumbers(const std::vector<const RankProgram*>& programs)
    : first_(programs.size()), stride_(programs.size()) {
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    auto group = std::ranges::find(groups_, programs[rank], &Group::program);
    if (group == groups_.end()) group = groups_.insert(groups_.end(), {programs[rank], 0, {}});
    group->ranks.push_back(rank);
  }
  for (Group& group : groups_) {
    group.first = size_;
    for (std::size_t k = 0; k < group.ranks.size(); ++k) {
      first_[group.ranks[k]] = group.first + k;
      stride_[group.ranks[k]] = group.ranks.size();
    }
    size_ += group.ranks.size() * group.program->ops.size();
  }
}

}  // namespace wt
