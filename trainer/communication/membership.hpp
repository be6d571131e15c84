// Which processes train together. Where a run goes on without a replica, and takes it back, processes live through
// several memberships: each is a generation of its own, with new ranks, a new watch and new communicators. The agent
// decides on the next one and leaves it in the launch's store.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/communication/rank_environment.hpp"

namespace c10d {
class Store;
}

namespace wt {

struct Membership {
  int generation = 0;
  std::vector<std::int64_t> processes;  ///< ids on this machine; rank r is processes[r]
  /// Ranks of the generation before leave it together after a step, because processes come back; else at once, because
  /// some of them are gone.
  bool planned = false;
};

/// The agent: what follows `generation`. Ranks of numbers between the two never came together.
void publish_membership(c10d::Store& launch, int generation, const Membership& next);
/// What follows `generation`; none, as long as nothing does.
std::optional<Membership> membership_after(c10d::Store& launch, int generation);

/// This process in the next membership. None: it is not in it.
std::optional<RankEnvironment> environment_in(const Membership& next, RankEnvironment now);

// In the store of a generation:
/// A rank that is to join has all that it needs before it meets the others.
void note_ready(c10d::Store& of_generation);
std::int64_t ready_ranks(c10d::Store& of_generation);
/// A rank has met the others and begins to train after so many steps, the same for all.
void note_training(c10d::Store& of_generation, std::int64_t steps_done);
struct InTraining {
  std::int64_t ranks = 0;
  std::int64_t steps_done = 0;  ///< of one that trains
};
InTraining in_training(c10d::Store& of_generation);

}  // namespace wt
