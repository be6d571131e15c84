// The uptime in closed form: every chunk but the first takes the same cycle, so a division finds where a time falls.
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
  }
  return "";
}

namespace detail {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Where chunks lie. Chunk 1 starts at `begin`; chunk j >= 2 starts when the save of chunk j - 1 ended.
struct Chunks {
  const RunClock& clock;
  std::int64_t start, begin;
  std::int64_t first_steps = std::min(clock.interval - start % clock.interval, clock.steps - start);
  std::int64_t first_saved = begin + first_steps * clock.step + clock.blocking;
  std::int64_t cycle = clock.blocking + std::max(clock.interval * clock.step, clock.persist);

  std::int64_t starts(std::int64_t j) const { return j == 1 ? begin : first_saved + (j - 2) * cycle; }
  std::int64_t steps_before(std::int64_t j) const { return j == 1 ? 0 : first_steps + (j - 2) * clock.interval; }
  std::int64_t at(std::int64_t time) const { return time < first_saved ? 1 : 2 + (time - first_saved) / cycle; }

  /// The step count at the end of the first step that ends at or after `time`.
  std::int64_t step_ending_after(std::int64_t time) const {
    const std::int64_t j = at(time - 1);  // a step that ends at `time` belongs to the chunk before
    const std::int64_t planned = j == 1 ? first_steps : clock.interval;
    const std::int64_t into =
        std::max<std::int64_t>(1, ceil_div(std::max<std::int64_t>(0, time - starts(j)), clock.step));
    return std::min(clock.steps, start + steps_before(j) + std::min(into, planned + 1));
  }
};

}  // namespace

Uptime jump_uptime(const RunClock& clock, std::int64_t start, bool first, std::int64_t failure, std::int64_t stop) {
  const std::int64_t reload = first ? 0 : clock.reload;
  const std::int64_t ready = clock.restart + reload, begin = ready + clock.startup;
  const Chunks chunks{clock, start, begin};
  const std::int64_t target = stop >= kNever ? clock.steps : chunks.step_ending_after(stop);

  const std::int64_t todo = target - start;
  const std::int64_t last = todo <= chunks.first_steps ? 1 : 1 + ceil_div(todo - chunks.first_steps, clock.interval);
  const std::int64_t last_steps = todo - chunks.steps_before(last), last_starts = chunks.starts(last);
  const std::int64_t persisted_before = last == 1 ? 0 : last_starts + clock.persist;
  const std::int64_t done =
      std::max(last_starts + last_steps * clock.step, persisted_before) + clock.blocking + clock.persist;

  Uptime out;
  out.length = std::min(failure, done);
  const auto spend = [&](Bucket bucket) -> std::int64_t& { return out.spent[static_cast<std::size_t>(bucket)]; };
  const auto part = [&](std::int64_t from, std::int64_t to) {
    return std::clamp<std::int64_t>(out.length - from, 0, to - from);
  };
  spend(Bucket::accelerator_init) = part(0, clock.restart);
  spend(Bucket::checkpoint_restore) = part(clock.restart, ready);
  spend(Bucket::program_startup) = part(ready, begin);
  out.secured = start;
  if (failure >= done) {
    out.how = target == clock.steps ? UptimeEnd::finished : UptimeEnd::planned;
    out.secured = target;
    spend(Bucket::productive) = todo * clock.step;
    spend(Bucket::checkpoint_save) = done - begin - todo * clock.step;
    return out;
  }
  if (failure <= begin) return out;

  const std::int64_t j = std::min(last, chunks.at(failure)), starts = chunks.starts(j);
  const std::int64_t steps = j == last ? last_steps : j == 1 ? chunks.first_steps : clock.interval;
  const std::int64_t worked =
      chunks.steps_before(j) * clock.step + std::clamp<std::int64_t>(failure - starts, 0, steps * clock.step);
  // The save before this chunk counts if its persist ended; the one before that always does, as persists do not
  // overlap.
  if (j > 1 && starts + clock.persist <= failure)
    out.secured = start + chunks.steps_before(j);
  else if (j > 2)
    out.secured = start + chunks.steps_before(j - 1);
  const std::int64_t kept = (out.secured - start) * clock.step;
  spend(Bucket::productive) = kept;
  spend(Bucket::wasted_progress) = worked - kept;
  spend(Bucket::checkpoint_save) = failure - begin - worked;
  return out;
}

}  // namespace detail
}  // namespace wt
