// The unrolled program of one rank class as flat arrays, without strings: the ops that each op depends on, and its
// dependents.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/program/program.hpp"

namespace wt {

/// Whether the op's time or bytes change with the rows received.
bool depends_on_rows(const Op& op);
/// Whether the op is a gather or reduction of a shard group. They share a communicator unless
/// MachineTraits::separate_reduce_group.
bool of_shard_group(const Op& op);

struct RankProgram {
  /// `shared`: the mesh whose shard groups use one communicator for gathers and reductions (see
  /// MachineTraits::separate_reduce_group); nullptr = a communicator for each lane. `program` must outlive the object.
  /// Throws as unroll() does.
  explicit RankProgram(const Program& program, const Mesh* shared = nullptr);

  int size() const { return static_cast<int>(ops.size()); }
  bool collective(int i) const;
  /// Whether the issuing host itself does the op (segments, host ops, copies on the compute lane).
  bool on_host(int i) const { return !ops[static_cast<std::size_t>(i)].op->asynchronous(); }

  const Program* source;
  std::vector<OpInstance> ops;
  std::vector<int> lane_previous, lane_next;  ///< -1 at the ends
  std::vector<int> communicator_previous;     ///< previous op of the communicator if it is on another lane, else -1
  /// Dependencies of each op's start: its waits, and the previous ops of its lane and communicator.
  std::vector<int> depends;                     ///< number of dependencies
  std::vector<int> dependent_first, dependent;  ///< dependents of op i: dependent[first[i] .. first[i + 1])
  std::vector<bool> row_dependent;              ///< by op: depends_on_rows
};

}  // namespace wt
