// Numbers for the ops of all simulated ranks. Ranks of one program advance together, so the same op of each rank gets
// consecutive numbers. An executor's data on ops is then in memory in the order of access.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/replay/rank_program.hpp"

namespace wt {

class OpNumbers {
 public:
  /// The ranks of one program.
  struct Group {
    const RankProgram* program;
    std::size_t first;               ///< number of the first rank's first op
    std::vector<std::size_t> ranks;  ///< op i of ranks[k] has the number first + i * ranks.size() + k
  };

  /// `programs`: one for each rank.
  explicit OpNumbers(const std::vector<const RankProgram*>& programs);

  std::size_t size() const { return size_; }
  std::size_t operator()(std::size_t rank, std::size_t op) const { return first_[rank] + op * stride_[rank]; }
  const std::vector<Group>& groups() const { return groups_; }

 private:
  std::size_t size_ = 0;
  std::vector<std::size_t> first_, stride_;  ///< by rank
  std::vector<Group> groups_;
};

}  // namespace wt
