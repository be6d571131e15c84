// Replicas hold the same state and, after their reduction, the same gradients, bit by bit. Where they do not, a device
// or its memory has changed a number without a message. Costs a hash of what is compared, in host memory, and one
// number a rank over the network.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/parameters/weights.hpp"

namespace wt {

/// By rank; ranks `state_ranks` apart hold the same. Those whose hash is not that of most of their replicas; of
/// replicas without a majority all. Ascending.
std::vector<std::int64_t> ranks_that_differ(const std::vector<std::uint64_t>& hashes, std::int64_t state_ranks);

/// Whom two attempts at the same gradients blame.
struct GradientBlame {
  std::vector<std::int64_t> ranks;
  bool persistent = false;  ///< the second attempt differs between replicas, too
};
/// Of the ranks that may be wrong in the second attempt, those that changed their mind, where that tells them apart.
GradientBlame blame(const std::vector<std::uint64_t>& first, const std::vector<std::uint64_t>& second,
                    std::int64_t state_ranks);

/// Collective over all ranks, every call but due().
class ReplicaCheck {
 public:
  /// All outlive this.
  ReplicaCheck(const RunSpec& run, Communicators& communicators, const std::vector<ShardedGroup>& groups)
      : run_(run), communicators_(communicators), groups_(groups) {}

  bool on() const { return run_.resilience.verify_interval > 0; }
  bool due(std::int64_t step) const { return on() && step % run_.resilience.verify_interval == 0; }

  /// Of the reduced gradients, before the optimizer takes them. False: the step has to be repeated from its beginning,
  /// after which it is asked again. Throws Error{silent} on the rank that is wrong both times; the others lose it.
  bool gradients_agree(std::int64_t step);
  /// Those that were wrong once in the step that was repeated last; empty from then on.
  std::vector<std::int64_t> repeated_for();
  /// Masters and moments, before they are saved. Throws as gradients_agree().
  void check_state(std::int64_t step);

 private:
  std::vector<std::uint64_t> gather(std::uint64_t own);
  /// Ends the run in the name of these ranks.
  [[noreturn]] void end(std::int64_t step, const std::vector<std::int64_t>& wrong, const std::string& what);

  const RunSpec& run_;
  Communicators& communicators_;
  const std::vector<ShardedGroup>& groups_;
  std::optional<std::vector<std::uint64_t>> first_;  ///< of the attempt that is repeated
  std::vector<std::int64_t> repeated_for_;
};

}  // namespace wt
