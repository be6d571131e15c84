// Which processes train together. If a run continues without a replica, and later takes it back, processes live through
// several memberships. Each membership is a generation with new ranks, a new watch and new communicators. The agent
// decides on the next one and publishes it in the launch's store.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/communication/rank_environment.hpp"

namespace c10d {
class Store;
}

namespace wt {

struct Membership {
  int generation = 0;
  std::vector<std::int64_t> processes;  ///< ids on this machine; rank r is processes[r]
  /// True: the previous generation's ranks leave it together after a step, because processes return. False: they leave
  /// at once, because some are lost.
  bool planned = false;
};

/// Agent: publishes the membership after `generation`. Generation numbers in between never came together.
void publish_membership(c10d::Store& launch, int generation, const Membership& next);
/// The membership after `generation`; none if not decided yet.
std::optional<Membership> membership_after(c10d::Store& launch, int generation);
/// This process's environment in the next membership. None: it is not a member.
std::optional<RankEnvironment> environment_in(const Membership& next, RankEnvironment now);

// In the store of a generation:
/// A joining rank reports that it has everything it needs before meeting the others.
void note_ready(c10d::Store& of_generation);
std::int64_t ready_ranks(c10d::Store& of_generation);
/// A rank reports that it has met the others and begins to train after this number of steps, the same for all.
void note_training(c10d::Store& of_generation, std::int64_t steps_done);
struct InTraining {
  std::int64_t ranks = 0;
  std::int64_t steps_done = 0;  ///< as reported by one of them
};
InTraining in_training(c10d::Store& of_generation);

}  // namespace wt
