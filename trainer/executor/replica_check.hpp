// Replicas have the same state and, after reduction, the same gradients, bit by bit. If they do not, a device or its
// memory has silently changed a number. Costs a hash of the compared data, in host memory, and one number per rank over
// the network.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/parameters/weights.hpp"

namespace wt {

/// Ranks, ascending, whose hash differs from the majority of their replicas, or all replicas if there is no majority.
/// Ranks `state_ranks` apart are replicas.
std::vector<std::int64_t> ranks_that_differ(const std::vector<std::uint64_t>& hashes, std::int64_t state_ranks);

/// The ranks blamed after two attempts at the same gradients.
struct GradientBlame {
  std::vector<std::int64_t> ranks;
  bool persistent = false;  ///< the second attempt differs between replicas, too
};
/// Among the ranks that may be wrong in the second attempt, those whose hash changed between attempts, if that
/// distinguishes them.
GradientBlame blame(const std::vector<std::uint64_t>& first, const std::vector<std::uint64_t>& second,
                    std::int64_t state_ranks);

/// Every call but due() is collective over all ranks.
class ReplicaCheck {
 public:
  /// All arguments must outlive this.
  ReplicaCheck(const RunSpec& run, Communicators& communicators, const std::vector<ShardedGroup>& groups)
      : run_(run), communicators_(communicators), groups_(groups) {}

  bool on() const { return run_.resilience.verify_interval > 0; }
  bool due(std::int64_t step) const { return on() && step % run_.resilience.verify_interval == 0; }

  /// Compares reduced gradients before the optimizer uses them. False: the step must be repeated from its beginning,
  /// and then checked again. Throws Error{silent} on a rank that is wrong both times; the other ranks lose it as a
  /// peer.
  bool gradients_agree(std::int64_t step);
  /// Ranks that were wrong once in the step that was repeated last; the list is then cleared.
  std::vector<std::int64_t> repeated_for();
  /// Compares masters and moments before they are saved. Throws as gradients_agree() does.
  void check_state(std::int64_t step);

 private:
  std::vector<std::uint64_t> gather(std::uint64_t own);
  /// Ends the run, blaming these ranks.
  [[noreturn]] void end(std::int64_t step, const std::vector<std::int64_t>& wrong, const std::string& what);

  const RunSpec& run_;
  Communicators& communicators_;
  const std::vector<ShardedGroup>& groups_;
  std::optional<std::vector<std::uint64_t>> first_;  ///< hashes of the attempt that is being repeated
  std::vector<std::int64_t> repeated_for_;
};

}  // namespace wt
