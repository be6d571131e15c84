// The uptime step by step and save by save. It shares no arithmetic with jump_uptime, which it checks.
#include "sim/months/uptime.hpp"

#include <algorithm>

namespace wt::detail {
namespace {

/// Exact integer time.
class CountedTime : public UptimeTime {
 public:
  explicit CountedTime(std::int64_t failure) : failure_(failure) {}
  std::int64_t now() const override { return now_; }
  bool pass(std::int64_t span) override {
    const bool whole = now_ + span <= failure_;
    now_ = whole ? now_ + span : failure_;
    return whole;
  }
  void start_persist(std::int64_t span) override { persist_ends_ = now_ + span; }
  bool wait_persisted() override { return persist_ends_ <= now_ || pass(persist_ends_ - now_); }
  bool persisted() const override { return persist_ends_ > 0 && persist_ends_ <= now_; }

 private:
  std::int64_t now_ = 0, failure_, persist_ends_ = 0;
};

}  // namespace

Uptime step_uptime(const RunClock& clock, const Saved& from, bool first, const Events& events, const HealthAt& health,
                   UptimeTime& time) {
  BucketTimes spent{};
  const auto booked = [&](Bucket bucket, const auto& wait) {
    const std::int64_t before = time.now();
    const bool whole = wait();
    spent[static_cast<std::size_t>(bucket)] += time.now() - before;
    return whole;
  };
  const auto pass = [&](std::int64_t span, Bucket bucket) { return booked(bucket, [&] { return time.pass(span); }); };
  const auto wait_persisted = [&] { return booked(Bucket::checkpoint_save, [&] { return time.wait_persisted(); }); };
  Work done = from.loaded, secured = from.secured, saved = secured, local = done;
  std::int64_t trained = 0;  // step time
  UptimeEnd how = UptimeEnd::failed;

  const auto train = [&] {
    const std::int64_t reload = done.steps > secured.steps ? clock.local_reload : clock.reload;
    if (!pass(clock.restart, Bucket::accelerator_init)) return;
    if (!first && !pass(reload, Bucket::checkpoint_restore)) return;
    if (!pass(clock.startup, Bucket::program_startup)) return;
    while (true) {
      Health now = health(time.now());
      if (now.pause > 0) {
        if (!pass(now.pause, Bucket::infrastructure_recovery)) return;
        now = health(time.now());
      }
      if (now.too_few) return;
      const std::int64_t cut = now.redo ? now.until - time.now() : now.step;
      if (!pass(std::min(cut, now.step), Bucket::wasted_progress)) return;
      if (cut < now.step) continue;
      trained += now.step;
      done = done.after(1, now.step - clock.step);
      const bool finished = done.steps == clock.steps, stopping = time.now() >= events.stop;
      const bool wrong = time.now() >= events.silent_at;
      const bool global = finished || stopping || done.steps % clock.interval == 0;
      if (!global && (clock.local_interval == 0 || done.steps % clock.local_interval != 0)) continue;
      if (!pass(clock.verify, Bucket::custom_events)) return;
      const bool corrupted = wrong || trained > events.silent;
      if (global || corrupted) {
        if (!wait_persisted()) return;
        secured = saved;
      }
      if (corrupted) {
        how = UptimeEnd::corrupted;
        return;
      }
      if (!pass(global ? clock.blocking : clock.local_blocking, Bucket::checkpoint_save)) return;
      if (!finished) local = done;
      if (!global) continue;
      saved = done;
      time.start_persist(clock.persist);
      if (!finished && !stopping) continue;
      if (!wait_persisted()) return;
      local = done;
      how = finished ? UptimeEnd::finished : UptimeEnd::planned;
      return;
    }
  };
  train();
  if (time.persisted()) secured = saved;

  // Work is booked as wasted until it is known to be kept.
  const Work loaded = how == UptimeEnd::failed && events.local_lost ? secured : local;
  const std::int64_t kept = (loaded.steps - from.loaded.steps) * clock.step,
                     longer = loaded.longer - from.loaded.longer;
  spent[static_cast<std::size_t>(Bucket::wasted_progress)] -= kept + longer;
  spent[static_cast<std::size_t>(Bucket::productive)] += kept;
  spent[static_cast<std::size_t>(Bucket::other)] += longer;
  return {how, time.now(), {loaded, secured}, spent};
}

RunExecution counted_steps() {
  return {[](const RunClock& clock, const Saved& from, bool first, const Events& events, const HealthAt& health) {
    CountedTime time(events.failure);
    return step_uptime(clock, from, first, events, health, time);
  }};
}

}  // namespace wt::detail
