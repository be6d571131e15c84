// The uptime step by step and save by save, written without any of the arithmetic of the jumping one.
#include "sim/run/uptime.hpp"

namespace wt::detail {
namespace {

/// Lets time pass until the failure.
struct Walk {
  std::int64_t now = 0, failure = 0;
  BucketTimes spent{};

  /// False when the failure cuts the span short.
  bool pass(std::int64_t span, Bucket bucket) {
    const bool whole = now + span <= failure;
    const std::int64_t passed = whole ? span : failure - now;
    now += passed;
    spent[static_cast<std::size_t>(bucket)] += passed;
    return whole;
  }
  bool wait_until(std::int64_t time, Bucket bucket) { return time <= now || pass(time - now, bucket); }
};

}  // namespace

Uptime step_uptime(const RunClock& clock, std::int64_t start, bool first, std::int64_t failure, std::int64_t stop,
                   const HealthAt& health) {
  Walk walk{0, failure, {}};
  Work done{start, 0}, secured = done, saved = done;
  std::int64_t persist_ends = 0;  // the save in flight; 0 = none
  UptimeEnd how = UptimeEnd::failed;

  const auto train = [&] {
    if (!walk.pass(clock.restart, Bucket::accelerator_init)) return;
    if (!first && !walk.pass(clock.reload, Bucket::checkpoint_restore)) return;
    if (!walk.pass(clock.startup, Bucket::program_startup)) return;
    while (true) {
      const bool slow = health(walk.now).slow;
      if (!walk.pass(slow ? clock.slow_step : clock.step, Bucket::wasted_progress)) return;
      done = done.after(1, slow);
      const bool finished = done.steps == clock.steps, stopping = walk.now >= stop;
      if (!finished && !stopping && done.steps % clock.interval != 0) continue;
      if (!walk.wait_until(persist_ends, Bucket::checkpoint_save)) return;
      secured = saved;
      if (!walk.pass(clock.blocking, Bucket::checkpoint_save)) return;
      saved = done;
      persist_ends = walk.now + clock.persist;
      if (!finished && !stopping) continue;
      if (!walk.wait_until(persist_ends, Bucket::checkpoint_save)) return;
      how = finished ? UptimeEnd::finished : UptimeEnd::planned;
      return;
    }
  };
  train();
  if (persist_ends > 0 && persist_ends <= walk.now) secured = saved;

  // Work was booked as wasted until it is known to be kept.
  const std::int64_t kept = (secured.steps - start) * clock.step,
                     longer = secured.slow * (clock.slow_step - clock.step);
  walk.spent[static_cast<std::size_t>(Bucket::wasted_progress)] -= kept + longer;
  walk.spent[static_cast<std::size_t>(Bucket::productive)] += kept;
  walk.spent[static_cast<std::size_t>(Bucket::other)] += longer;
  return {how, walk.now, secured.steps, walk.spent};
}

}  // namespace wt::detail
