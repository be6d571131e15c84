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

Uptime step_uptime(const RunClock& clock, const Saved& from, bool first, const Events& events, const HealthAt& health) {
  Walk walk{0, events.failure, {}};
  Work done = from.loaded, secured = from.secured, saved = secured, local = done;
  std::int64_t persist_ends = 0, trained = 0;  // of the save in flight, 0 = none; time in steps
  UptimeEnd how = UptimeEnd::failed;

  const auto train = [&] {
    const std::int64_t reload = done.steps > secured.steps ? clock.local_reload : clock.reload;
    if (!walk.pass(clock.restart, Bucket::accelerator_init)) return;
    if (!first && !walk.pass(reload, Bucket::checkpoint_restore)) return;
    if (!walk.pass(clock.startup, Bucket::program_startup)) return;
    while (true) {
      Health now = health(walk.now);
      if (now.pause > 0) {
        if (!walk.pass(now.pause, Bucket::infrastructure_recovery)) return;
        now = health(walk.now);
      }
      if (now.gone || !walk.pass(now.step, Bucket::wasted_progress)) return;
      trained += now.step;
      done = done.after(1, now.step - clock.step);
      const bool finished = done.steps == clock.steps, stopping = walk.now >= events.stop;
      const bool global = finished || stopping || done.steps % clock.interval == 0;
      if (!global && (clock.local_interval == 0 || done.steps % clock.local_interval != 0)) continue;
      if (!walk.pass(clock.verify, Bucket::custom_events)) return;
      const bool corrupted = trained > events.silent;
      if (global || corrupted) {
        if (!walk.wait_until(persist_ends, Bucket::checkpoint_save)) return;
        secured = saved;
      }
      if (corrupted) {
        how = UptimeEnd::corrupted;
        return;
      }
      if (!walk.pass(global ? clock.blocking : clock.local_blocking, Bucket::checkpoint_save)) return;
      if (!finished) local = done;
      if (!global) continue;
      saved = done;
      persist_ends = walk.now + clock.persist;
      if (!finished && !stopping) continue;
      if (!walk.wait_until(persist_ends, Bucket::checkpoint_save)) return;
      local = done;
      how = finished ? UptimeEnd::finished : UptimeEnd::planned;
      return;
    }
  };
  train();
  if (persist_ends > 0 && persist_ends <= walk.now) secured = saved;

  // Work was booked as wasted until it is known to be kept.
  const Work loaded = how == UptimeEnd::failed && events.local_lost ? secured : local;
  const std::int64_t kept = (loaded.steps - from.loaded.steps) * clock.step,
                     longer = loaded.longer - from.loaded.longer;
  walk.spent[static_cast<std::size_t>(Bucket::wasted_progress)] -= kept + longer;
  walk.spent[static_cast<std::size_t>(Bucket::productive)] += kept;
  walk.spent[static_cast<std::size_t>(Bucket::other)] += longer;
  return {how, walk.now, {loaded, secured}, walk.spent};
}

}  // namespace wt::detail
