// One uptime of a run: from a process start to the next failure, planned stop or the end. Times are whole nanoseconds.
// So buckets sum to the wall time exactly, and both implementations agree to the last digit.
//
// An uptime is: restart, reload (not the first time), start-up of the first step, then chunks of steps, each followed
// by a save. A save blocks for `blocking`, then persists in the background. The next save waits for that. After a
// failure, the last checkpoint that was persisted is left. A planned stop takes effect at the end of the first step
// that ends at or after its time: save, wait for the persist, stop. The end of the run does the same. A step that
// starts while a node is slow is slower to its end. The loss of a replica cuts the step in progress short, and the
// surviving replicas repeat it. A returning replica joins at the start of a step.
//
// Local saves are `local_interval` steps apart. They block for `local_blocking` and persist nothing. Every save of
// either level leaves a copy in host memory. After a failure that this memory survives, the copy is left too. (Except
// the copy of the run's last save: no step is left after it, but the run is done only when it is persisted.) Before a
// save of either level its state is verified. After a silent error the uptime ends there, once the persist in progress
// is done, and the last save is loaded again.
#pragma once
#include <array>
#include <cstdint>
#include <functional>

namespace wt {

/// Google's goodput buckets (ML Goodput Measurement), as far as a run model can tell them apart.
enum class Bucket {
  productive,               ///< kept steps, at their time without slow nodes
  accelerator_init,         ///< processes and communicators
  program_startup,          ///< additional time of the first step
  checkpoint_save,          ///< blocking, and waiting for a persist
  checkpoint_restore,       ///< reload
  wasted_progress,          ///< steps lost to a failure
  infrastructure_recovery,  ///< detection, rescheduling, waiting for a spare, stalls after the loss of a replica
  custom_events,            ///< planned stops, verification
  other,  ///< additional time of kept steps, due to slow nodes or lost replicas; no bucket of Google's has it
};
inline constexpr std::size_t kBuckets = 9;
const char* to_string(Bucket bucket);

using BucketTimes = std::array<std::int64_t, kBuckets>;  ///< ns, by Bucket

namespace detail {

inline constexpr std::int64_t kNever = INT64_MAX / 4;  ///< ns; leaves room for sums

/// The scenario in whole nanoseconds and steps.
struct RunClock {
  std::int64_t steps, interval, step, blocking, persist, restart, reload, startup;
  std::int64_t local_interval = 0;  ///< divides `interval`; 0 = there is no local level
  std::int64_t local_blocking = 0, local_reload = 0;
  std::int64_t verify = 0;  ///< before each save
};

/// The job's health at a time, and until when it holds (later than that time; kNever = for good).
struct Health {
  std::int64_t step = 0;  ///< duration of a step that starts now, at least RunClock::step
  std::int64_t until = kNever;
  std::int64_t pause = 0;  ///< the job stalls this long before its next step; ask again then
  bool too_few = false;    ///< too few replicas are left: the uptime ends now, as after a failure
  bool redo = false;       ///< at `until` a replica is lost, and the survivors repeat the step in progress
};
/// Health at a time of the uptime. Successive calls never go back in time, nor beyond the uptime's end.
using HealthAt = std::function<Health(std::int64_t time)>;

/// Steps done since the run began, and their time beyond the normal step time.
struct Work {
  std::int64_t steps = 0;
  std::int64_t longer = 0;  ///< ns, over all steps
  Work after(std::int64_t more, std::int64_t longer_each) const { return {steps + more, longer + more * longer_each}; }
};

/// Checkpoints between uptimes.
struct Saved {
  Work loaded;   ///< what the next uptime loads: the local copy if it is newer than the persisted one
  Work secured;  ///< the last persisted checkpoint
};

/// Coming events of an uptime; kNever = does not happen.
struct Events {
  std::int64_t failure = kNever;  ///< ns into the uptime
  std::int64_t stop = kNever;     ///< a stop is requested then, ns into the uptime
  std::int64_t silent = kNever;   ///< first drawn silent error, in ns of step time in this uptime
  bool local_lost = true;         ///< the failure also loses local copies
  /// First silent error of a trace, ns into the uptime: in the step in progress then, or the next.
  std::int64_t silent_at = kNever;
};

enum class UptimeEnd { failed, planned, finished, corrupted };

struct Uptime {
  UptimeEnd how = UptimeEnd::failed;
  std::int64_t length = 0;  ///< ns
  Saved saved;              ///< the checkpoints after it
  BucketTimes spent{};      ///< sums to length; work lost from before the uptime is subtracted from productive time
};

/// `first`: the run's first uptime, which loads nothing.
Uptime jump_uptime(const RunClock& clock, const Saved& from, bool first, const Events& events, const HealthAt& health);

/// How a run passes its time.
struct RunExecution {
  std::function<Uptime(const RunClock& clock, const Saved& from, bool first, const Events& events,
                       const HealthAt& health)>
      uptime;
  std::function<void(std::int64_t span)> down = [](std::int64_t) {};  ///< time between uptimes, ns
};

}  // namespace detail
}  // namespace wt
