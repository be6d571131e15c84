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

Uptime step_uptime(const RunClock& clock, std::int64_t start, bool first, std::int64_t failure, std::int64_t stop) {
  Walk walk{0, failure, {}};
  std::int64_t done_steps = start, secured = start;
  std::int64_t saved_steps = start, persist_ends = 0;  // the save in flight; 0 = none
  UptimeEnd how = UptimeEnd::failed;

  const auto train = [&] {
    if (!walk.pass(clock.restart, Bucket::accelerator_init)) return;
    if (!first && !walk.pass(clock.reload, Bucket::checkpoint_restore)) return;
    if (!walk.pass(clock.startup, Bucket::program_startup)) return;
    while (true) {
      if (!walk.pass(clock.step, Bucket::wasted_progress)) return;
      ++done_steps;
      const bool finished = done_steps == clock.steps, stopping = walk.now >= stop;
      if (!finished && !stopping && done_steps % clock.interval != 0) continue;
      if (!walk.wait_until(persist_ends, Bucket::checkpoint_save)) return;
      secured = saved_steps;
      if (!walk.pass(clock.blocking, Bucket::checkpoint_save)) return;
      saved_steps = done_steps;
      persist_ends = walk.now + clock.persist;
      if (!finished && !stopping) continue;
      if (!walk.wait_until(persist_ends, Bucket::checkpoint_save)) return;
      how = finished ? UptimeEnd::finished : UptimeEnd::planned;
      return;
    }
  };
  train();
  if (persist_ends > 0 && persist_ends <= walk.now) secured = saved_steps;

  // Work was booked as wasted until it is known to be kept.
  const std::int64_t kept = (secured - start) * clock.step;
  walk.spent[static_cast<std::size_t>(Bucket::wasted_progress)] -= kept;
  walk.spent[static_cast<std::size_t>(Bucket::productive)] += kept;
  return {how, walk.now, secured, walk.spent};
}

}  // namespace wt::detail
