// The uptime in closed form: while the step time stays the same, every chunk but the first takes the same cycle, so a
// division finds where a time falls. A change of the step time begins a new stretch.
#include "sim/run/uptime.hpp"

#include <algorithm>

namespace wt {

const char* to_string(Bucket bucket) {
  switch (bucket) {
    case Bucket::productive:
      return "productive";
    case Bucket::accelerator_init:
      return "accelerator_init";
    case Bucket::program_startup:
      return "program_startup";
    case Bucket::checkpoint_save:
      return "checkpoint_save";
    case Bucket::checkpoint_restore:
      return "checkpoint_restore";
    case Bucket::wasted_progress:
      return "wasted_progress";
    case Bucket::infrastructure_recovery:
      return "infrastructure_recovery";
    case Bucket::custom_events:
      return "custom_events";
    case Bucket::other:
      return "other";
  }
  return "";
}

namespace detail {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// What is known at the start of a step.
struct Progress {
  std::int64_t now;
  Work done, saved, secured;      ///< so far, at the last save, in the last checkpoint known to be whole
  std::int64_t persist_ends = 0;  ///< of the last save; 0 = there was none
};

/// Where chunks lie from there on. Chunk 1 is what is left of the one under way, chunk j >= 2 starts when the save of
/// chunk j - 1 ended.
struct Stretch {
  const RunClock& clock;
  Progress begin;
  bool slow;
  std::int64_t step = slow ? clock.slow_step : clock.step;
  std::int64_t first_steps =
      std::min(clock.interval - begin.done.steps % clock.interval, clock.steps - begin.done.steps);
  std::int64_t first_saved = std::max(begin.now + first_steps * step, begin.persist_ends) + clock.blocking;
  std::int64_t cycle = clock.blocking + std::max(clock.interval * step, clock.persist);

  std::int64_t starts(std::int64_t j) const { return j == 1 ? begin.now : first_saved + (j - 2) * cycle; }
  std::int64_t steps_before(std::int64_t j) const { return j == 1 ? 0 : first_steps + (j - 2) * clock.interval; }
  std::int64_t steps_in(std::int64_t j) const { return j == 1 ? first_steps : clock.interval; }
  std::int64_t at(std::int64_t time) const { return time < first_saved ? 1 : 2 + (time - first_saved) / cycle; }

  /// The step count at the end of the first step that ends at or after `time`.
  std::int64_t step_ending_after(std::int64_t time) const {
    const std::int64_t j = at(time - 1);  // a step that ends at `time` belongs to the chunk before
    const std::int64_t into = std::max<std::int64_t>(1, ceil_div(std::max<std::int64_t>(0, time - starts(j)), step));
    return std::min(clock.steps, begin.done.steps + steps_before(j) + std::min(into, steps_in(j) + 1));
  }

  /// At the start of step `into` of chunk j, counted from 0.
  Progress in_chunk(std::int64_t j, std::int64_t into) const {
    Progress p = begin;
    p.now = starts(j) + into * step;
    p.done = begin.done.after(steps_before(j) + into, slow);
    if (j == 1) return p;
    p.secured = j == 2 ? begin.saved : begin.done.after(steps_before(j - 1), slow);  // persists do not overlap
    p.saved = begin.done.after(steps_before(j), slow);
    p.persist_ends = starts(j) + clock.persist;
    return p;
  }

  /// At the first step that starts at or after `time`.
  Progress at_step_after(std::int64_t time) const {
    const std::int64_t j = at(time), into = ceil_div(time - starts(j), step);
    return into < steps_in(j) ? in_chunk(j, into) : in_chunk(j + 1, 0);
  }
};

}  // namespace

Uptime jump_uptime(const RunClock& clock, std::int64_t start, bool first, std::int64_t failure, std::int64_t stop,
                   const HealthAt& health) {
  Uptime out;
  const auto spend = [&](Bucket bucket) -> std::int64_t& { return out.spent[static_cast<std::size_t>(bucket)]; };
  const std::int64_t ready = clock.restart + (first ? 0 : clock.reload), begin = ready + clock.startup;
  const auto part = [&](std::int64_t from, std::int64_t to) {
    return std::clamp<std::int64_t>(failure - from, 0, to - from);
  };
  spend(Bucket::accelerator_init) = part(0, clock.restart);
  spend(Bucket::checkpoint_restore) = part(clock.restart, ready);
  spend(Bucket::program_startup) = part(ready, begin);
  out.secured = start;
  if (failure <= begin) {
    out.length = failure;
    return out;
  }

  const auto time_of = [&](const Work& w) {
    return (w.steps - start) * clock.step + w.slow * (clock.slow_step - clock.step);
  };
  const auto finish = [&](const Work& secured, std::int64_t worked) {
    out.secured = secured.steps;
    spend(Bucket::productive) = (secured.steps - start) * clock.step;
    spend(Bucket::other) = secured.slow * (clock.slow_step - clock.step);
    spend(Bucket::wasted_progress) = worked - time_of(secured);
    spend(Bucket::checkpoint_save) = out.length - begin - worked;
    return out;
  };
  for (Progress p{begin, {start, 0}, {start, 0}, {start, 0}};;) {
    const Health now = health(p.now);
    const Stretch stretch{clock, p, now.slow};
    const std::int64_t target = stop >= kNever ? clock.steps : stretch.step_ending_after(stop);
    if (now.until < failure) {
      const Progress next = stretch.at_step_after(now.until);
      if (next.now < failure && next.done.steps < target) {
        p = next;
        continue;
      }
    }

    const std::int64_t todo = target - p.done.steps;
    const std::int64_t last =
        todo <= stretch.first_steps ? 1 : 1 + ceil_div(todo - stretch.first_steps, clock.interval);
    const std::int64_t last_steps = todo - stretch.steps_before(last);
    const Progress at_last = stretch.in_chunk(last, 0);
    const std::int64_t done =
        std::max(at_last.now + last_steps * stretch.step, at_last.persist_ends) + clock.blocking + clock.persist;
    out.length = std::min(failure, done);
    if (failure >= done) {
      out.how = target == clock.steps ? UptimeEnd::finished : UptimeEnd::planned;
      const Work all = p.done.after(todo, now.slow);
      return finish(all, time_of(all));
    }
    const std::int64_t j = std::min(last, stretch.at(failure));
    const Progress chunk = stretch.in_chunk(j, 0);
    const std::int64_t steps = j == last ? last_steps : stretch.steps_in(j);
    const bool persisted = chunk.persist_ends > 0 && chunk.persist_ends <= failure;
    return finish(persisted ? chunk.saved : chunk.secured,
                  time_of(chunk.done) + std::clamp<std::int64_t>(failure - chunk.now, 0, steps * stretch.step));
  }
}

}  // namespace detail
}  // namespace wt
