// Numbers of the ops of all simulated ranks. Ranks of one program go through it side by side, so the same op of each
// has the next number: what an executor knows of ops lies in memory in the order in which it is asked for.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/replay/rank_program.hpp"

namespace wt {

class OpNumbers {
 public:
  /// Ranks of one program.
  struct Group {
    const RankProgram* program;
    std::size_t first;               ///< number of the first rank's first op
    std::vector<std::size_t> ranks;  ///< of op i of ranks[k] the number is first + i * ranks.size() + k
  };

  /// The program of each rank.
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
