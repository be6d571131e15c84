// One uptime of a run: from the first process start after a stop to the next failure, planned stop or the end. Times
// are whole nanoseconds, so that buckets sum to the wall time exactly and both implementations agree to the last digit.
//
// An uptime is: restart, reload (not the first time), start-up of the first step, then chunks of steps, each followed
// by a save. A save blocks for `blocking`, then persists in the background; the next one waits until that is done. What
// a failure leaves is the last checkpoint whose persist had ended. A planned stop takes effect at the end of the first
// step that ends at or after its time: save, wait for the persist, stop. So does the end of the run. A step that starts
// while a node of the job is slow takes longer, to its end. The loss of a replica cuts the step under way short, which
// is done again by those that are left; one that is back joins at the start of a step.
//
// Local saves lie between these, every `local_interval` steps; they block for `local_blocking` and persist nothing. The
// copy that a save of either level leaves in host memory is what a failure leaves where that memory survives (not the
// copy of the run's last save: with that the run would have no step left, but is only done when it has persisted).
// Before a save of either level its state is verified: after a silent error the uptime ends there, once the persist in
// flight is done, and the last save is loaded again.
#pragma once
#include <array>
#include <cstdint>
#include <functional>

namespace wt {

/// Google's goodput buckets (ML Goodput Measurement), as far as a run model can tell them apart.
enum class Bucket {
  productive,               ///< steps whose result was kept, as long as they take without a slow node
  accelerator_init,         ///< processes and communicators
  program_startup,          ///< what the first step takes beyond an average one
  checkpoint_save,          ///< blocking part, and waiting for an earlier or a last persist
  checkpoint_restore,       ///< reload
  wasted_progress,          ///< steps done and lost to a failure
  infrastructure_recovery,  ///< detect, reschedule, waiting for a spare, stalls after the loss of a replica
  custom_events,            ///< planned stops, verification
  other,  ///< what kept steps took longer because a node was slow or a replica away; Google's goodput does not charge
          ///< it
};
inline constexpr std::size_t kBuckets = 9;
const char* to_string(Bucket bucket);

using BucketTimes = std::array<std::int64_t, kBuckets>;  ///< ns, by Bucket

namespace detail {

inline constexpr std::int64_t kNever = INT64_MAX / 4;  ///< ns; room for sums

/// The scenario in whole nanoseconds and steps.
struct RunClock {
  std::int64_t steps, interval, step, blocking, persist, restart, reload, startup;
  std::int64_t local_interval = 0;  ///< divides `interval`; 0 = there is no local level
  std::int64_t local_blocking = 0, local_reload = 0;
  std::int64_t verify = 0;  ///< before each save
};

/// How the job is at a time, and until when that stays so (after the time asked for; kNever = for good).
struct Health {
  std::int64_t step = 0;  ///< what a step takes that starts now, at least the clock's
  std::int64_t until = kNever;
  std::int64_t pause = 0;  ///< the job stalls for so long before its next step; ask again then
  bool gone = false;       ///< too few replicas are left: the uptime ends now, as by a failure
  bool redo = false;       ///< at `until` a replica is lost: the step under way then is done again by the others
};
/// At a time of the uptime. Times asked for never decrease, and none is later than the uptime's end.
using HealthAt = std::function<Health(std::int64_t time)>;

/// Steps done since the run began, and how much longer than usual they took.
struct Work {
  std::int64_t steps = 0;
  std::int64_t longer = 0;  ///< ns, of all of them
  Work after(std::int64_t more, std::int64_t longer_each) const { return {steps + more, longer + more * longer_each}; }
};

/// Checkpoints between uptimes.
struct Saved {
  Work loaded;   ///< what the next uptime starts from: a local copy where that is newer than the persisted one
  Work secured;  ///< the last one persisted
};

/// What is in store for an uptime; kNever = does not happen.
struct Events {
  std::int64_t failure = kNever;  ///< ns into the uptime
  std::int64_t stop = kNever;     ///< asked to stop then
  std::int64_t silent = kNever;   ///< first silent error, in ns of time spent on steps in this uptime
  bool local_lost = true;         ///< the failure takes local copies along
  /// First silent error that is known, ns into the uptime: in the step under way then, or the next.
  std::int64_t wrong = kNever;
};

enum class UptimeEnd { failed, planned, finished, corrupted };

struct Uptime {
  UptimeEnd how = UptimeEnd::failed;
  std::int64_t length = 0;  ///< ns
  Saved saved;              ///< what it leaves
  BucketTimes spent{};      ///< sums to length; falling back behind `from` takes from the productive time of before
};

/// `first`: the run's first uptime, which loads nothing.
Uptime jump_uptime(const RunClock& clock, const Saved& from, bool first, const Events& events, const HealthAt& health);

/// How a run passes its time.
struct RunExecution {
  std::function<Uptime(const RunClock& clock, const Saved& from, bool first, const Events& events,
                       const HealthAt& health)>
      uptime;
  std::function<void(std::int64_t span)> down = [](std::int64_t) {};  ///< between uptimes, ns
};

}  // namespace detail
}  // namespace wt
