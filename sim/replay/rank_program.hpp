// The unrolled program of one rank class as flat arrays: what an op depends on and who depends on it, without strings.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/program/program.hpp"

namespace wt {

/// Price or bytes change with the rows received.
bool depends_on_rows(const Op& op);
/// Gathers and reductions that share a communicator (OpCost::separate_reduce_group) with the others of their group.
bool of_shard_group(const Op& op);

struct RankProgram {
  /// `shared`: the mesh whose shard groups have one communicator for gathers and reductions
  /// (OpCost::separate_reduce_group); none = every lane its own. The program must outlive it. Throws what unroll()
  /// throws.
  explicit RankProgram(const Program& program, const Mesh* shared = nullptr);

  int size() const { return static_cast<int>(ops.size()); }
  bool collective(int i) const;
  /// True where the issuing host itself does the op (segments, host ops, copies on the compute lane).
  bool on_host(int i) const { return !ops[static_cast<std::size_t>(i)].op->asynchronous(); }

  const Program* source;
  std::vector<OpInstance> ops;
  std::vector<int> lane_previous, lane_next;  ///< -1 at the ends
  std::vector<int> communicator_previous;     ///< where it is on another lane, else -1
  /// What each op's start depends on when issue order binds only within a lane and a communicator: its waits, and the
  /// previous op of both.
  std::vector<int> depends;                     ///< how many
  std::vector<int> dependent_first, dependent;  ///< ops to tell when op i is done: dependent[first[i] .. first[i + 1])
  std::vector<bool> row_dependent;              ///< price or bytes change with the rows received
};

}  // namespace wt
