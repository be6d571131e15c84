// One uptime of a run: from the first process start after a stop to the next failure, planned stop or the end. Times
// are whole nanoseconds, so that buckets sum to the wall time exactly and both implementations agree to the last digit.
//
// An uptime is: restart, reload (not the first time), start-up of the first step, then chunks of steps, each followed
// by a save. A save blocks for `blocking`, then persists in the background; the next one waits until that is done. What
// a failure leaves is the last checkpoint whose persist had ended. A planned stop takes effect at the end of the first
// step that ends at or after its time: save, wait for the persist, stop. So does the end of the run. A step that starts
// while a node of the job is slow takes longer, to its end.
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
  infrastructure_recovery,  ///< detect, reschedule, waiting for a spare
  custom_events,            ///< planned stops
  other,  ///< what kept steps took longer because a node was slow; Google's goodput does not charge it
};
inline constexpr std::size_t kBuckets = 9;
const char* to_string(Bucket bucket);

using BucketTimes = std::array<std::int64_t, kBuckets>;  ///< ns, by Bucket

namespace detail {

inline constexpr std::int64_t kNever = INT64_MAX / 4;  ///< ns; room for sums

/// The scenario in whole nanoseconds and steps.
struct RunClock {
  std::int64_t steps, interval, step, blocking, persist, restart, reload, startup;
  std::int64_t slow_step = 0;  ///< while a node is slow
};

/// Whether a node of the job is slow, and until when that stays so (after the time asked for; kNever = for good).
struct Health {
  bool slow = false;
  std::int64_t until = kNever;
};
/// At a time of the uptime. Times asked for never decrease, and none is later than the uptime's end.
using HealthAt = std::function<Health(std::int64_t time)>;

/// Steps done, by how long they took.
struct Work {
  std::int64_t steps = 0;
  std::int64_t slow = 0;  ///< of them
  Work after(std::int64_t more, bool slowly) const { return {steps + more, slow + (slowly ? more : 0)}; }
};

enum class UptimeEnd { failed, planned, finished };

struct Uptime {
  UptimeEnd how = UptimeEnd::failed;
  std::int64_t length = 0;   ///< ns
  std::int64_t secured = 0;  ///< steps in the checkpoint that the next uptime loads
  BucketTimes spent{};       ///< sums to length
};

/// Starts after `start` steps, fails at `failure` and is asked to stop at `stop` (ns into the uptime; kNever = not).
using UptimeModel = Uptime (*)(const RunClock& clock, std::int64_t start, bool first, std::int64_t failure,
                               std::int64_t stop, const HealthAt& health);
Uptime jump_uptime(const RunClock& clock, std::int64_t start, bool first, std::int64_t failure, std::int64_t stop,
                   const HealthAt& health);
/// The same by going through every step and save: the reference that jump_uptime is tested against.
Uptime step_uptime(const RunClock& clock, std::int64_t start, bool first, std::int64_t failure, std::int64_t stop,
                   const HealthAt& health);

}  // namespace detail
}  // namespace wt
