// The uptime in closed form. While the step time is constant, every chunk but the first takes the same time, so a
// division finds the chunk of any time. A chunk ends with a save that persists. It consists of pieces, which end with a
// local save, by the same arithmetic. A change of the step time begins a new stretch.
#include "sim/months/uptime.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "configs/base/number.hpp"

namespace wt {

const char* to_string(Bucket bucket) {
  static constexpr const char* words[] = {"productive",
                                          "accelerator_init",
                                          "program_startup",
                                          "checkpoint_save",
                                          "checkpoint_restore",
                                          "wasted_progress",
                                          "infrastructure_recovery",
                                          "custom_events",
                                          "other"};
  return words[static_cast<std::size_t>(bucket)];
}

namespace detail {
namespace {

/// The state at the start of a step.
struct Progress {
  std::int64_t now;
  Work done, saved, secured,
      local;  ///< so far; at the last save; at the last save known to be persisted; at the last save of either level
  std::int64_t persist_ends = 0;  ///< of the last save; 0 = no save yet
  std::int64_t checks = 0;        ///< verifications so far
};

/// Spans of time that begin with steps, numbered from 1. All but the first are alike.
struct Spans {
  std::int64_t first_steps, steps;  ///< in the first span; in each other
  std::int64_t first_time, time;

  std::int64_t starts(std::int64_t j) const { return j == 1 ? 0 : first_time + (j - 2) * time; }
  std::int64_t steps_before(std::int64_t j) const { return j == 1 ? 0 : first_steps + (j - 2) * steps; }
  std::int64_t steps_in(std::int64_t j) const { return j == 1 ? first_steps : steps; }
  std::int64_t at(std::int64_t t) const { return t < first_time ? 1 : 2 + (t - first_time) / time; }
};

/// Where chunks lie from `begin` on. Chunk 1 is the rest of the current chunk. Chunk j >= 2 starts when the save of
/// chunk j - 1 has ended.
struct Stretch {
  const RunClock& clock;
  const Progress& begin;
  std::int64_t step;
  bool pieced = clock.local_interval > 0;  ///< else each chunk is one piece, which saves the divisions
  std::int64_t local = pieced ? clock.local_interval : clock.interval;
  std::int64_t pieces_in_chunk = pieced ? clock.interval / local : 1;  ///< except in chunk 1
  std::int64_t local_save = clock.verify + clock.local_blocking;
  std::int64_t offset = begin.done.steps % local;  ///< steps of chunk 1's first piece that are done already
  Spans chunks = lay_out();

  Spans lay_out() const {
    const std::int64_t since_save = pieced ? begin.done.steps % clock.interval : offset;
    const std::int64_t first = std::min(clock.interval - since_save, clock.steps - begin.done.steps);
    const std::int64_t trained = begin.now + pieces(1).starts(piece_of(1, first)) + last_steps(1, first) * step;
    return {first, clock.interval, std::max(trained + clock.verify, begin.persist_ends) + clock.blocking - begin.now,
            clock.blocking +
                std::max(clock.interval * step + (pieces_in_chunk - 1) * local_save + clock.verify, clock.persist)};
  }
  std::int64_t starts(std::int64_t j) const { return begin.now + chunks.starts(j); }
  std::int64_t at(std::int64_t time) const { return chunks.at(time - begin.now); }

  /// Steps up to the next local save, then pieces of `local` steps, each followed by a local save.
  Spans pieces(std::int64_t j) const {
    const std::int64_t first = local - (j == 1 ? offset : 0);
    return {first, local, first * step + local_save, local * step + local_save};
  }
  /// The piece of chunk j that holds the chunk's n-th step; both count from 1.
  std::int64_t piece_of(std::int64_t j, std::int64_t n) const {
    return pieced ? 1 + ((j == 1 ? offset : 0) + n - 1) / local : 1;
  }
  std::int64_t last_steps(std::int64_t j, std::int64_t n) const { return n - pieces(j).steps_before(piece_of(j, n)); }
  /// The piece at time t of the chunk. The number may exceed that of the chunk's last piece.
  std::int64_t piece_at(const Spans& pieces, std::int64_t t) const { return pieced ? pieces.at(t) : 1; }

  /// The step count at the end of the first step that ends at or after `time`.
  std::int64_t step_ending_after(std::int64_t time) const {
    const std::int64_t j = at(time - 1);  // a step that ends at `time` belongs to the chunk before
    const std::int64_t into = std::max<std::int64_t>(0, time - starts(j));
    const Spans piece = pieces(j);
    const std::int64_t i = piece_at(piece, std::max<std::int64_t>(0, into - 1));
    const std::int64_t n = std::max<std::int64_t>(1, ceil_div(std::max<std::int64_t>(0, into - piece.starts(i)), step));
    const std::int64_t in_chunk = piece.steps_before(i) + std::min(n, piece.steps_in(i) + 1);
    return std::min(clock.steps,
                    begin.done.steps + chunks.steps_before(j) + std::min(in_chunk, chunks.steps_in(j) + 1));
  }

  /// The step count at which a silent error is found that occurs after `more` ns of step time.
  std::int64_t step_finding(std::int64_t more) const {
    return check_after(begin.done.steps + (more < 0 ? 1 : more / step + 1));
  }
  /// The step count at the next save of either level.
  std::int64_t check_after(std::int64_t count) const { return ceil_div(count, local) * local; }

  /// The step count at the end of the step in progress at `time`, or of the next one. Empty: the run is over by then.
  std::optional<std::int64_t> step_in_progress_at(std::int64_t time) const {
    const std::int64_t wrong_step = step_ending_after(time);
    return at_step(wrong_step).now + step < time ? std::nullopt : std::optional(wrong_step);
  }

  Work after(std::int64_t more) const { return begin.done.after(more, step - clock.step); }

  /// At the start of step `into` of chunk j, counted from 0.
  Progress in_chunk(std::int64_t j, std::int64_t into) const {
    const std::int64_t before = chunks.steps_before(j), piece = piece_of(j, into + 1);
    const std::int64_t now = starts(j) + into * step + (piece - 1) * local_save, checks = begin.checks + piece - 1;
    const Work done = after(before + into);
    const auto local_or = [&](const Work& save) {
      return piece > 1 ? after(before + pieces(j).steps_before(piece)) : save;
    };
    if (j == 1) return {now, done, begin.saved, begin.secured, local_or(begin.local), begin.persist_ends, checks};
    const Work save = after(before);
    return {now,
            done,
            save,
            j == 2 ? begin.saved : after(chunks.steps_before(j - 1)),  // persists do not overlap
            local_or(save),
            starts(j) + clock.persist,
            checks + piece_of(1, chunks.first_steps) + (j - 2) * pieces_in_chunk};
  }

  /// At the start of the step that brings the count to `count`.
  Progress at_step(std::int64_t count) const {
    const std::int64_t n = count - begin.done.steps;
    const std::int64_t j = n <= chunks.first_steps ? 1 : 1 + ceil_div(n - chunks.first_steps, clock.interval);
    return in_chunk(j, n - chunks.steps_before(j) - 1);
  }

  /// At the first step that starts at or after `time`.
  Progress at_step_after(std::int64_t time) const {
    const std::int64_t j = at(time), t = time - starts(j);
    const Spans piece = pieces(j);
    const std::int64_t i = piece_at(piece, t), n = ceil_div(t - piece.starts(i), step);
    const std::int64_t into = n < piece.steps_in(i) ? piece.steps_before(i) + n : piece.steps_before(i + 1);
    return into < chunks.steps_in(j) ? in_chunk(j, into) : in_chunk(j + 1, 0);
  }

  /// At `time`, if that interrupts a step, which must be repeated: `done` excludes it and `cut` is the time already
  /// spent on it. Otherwise as at_step_after.
  Progress at_cut(std::int64_t time, std::int64_t& cut) const {
    const std::int64_t j = at(time), t = time - starts(j);
    const Spans piece = pieces(j);
    const std::int64_t i = piece_at(piece, t), in_piece = t - piece.starts(i), n = in_piece / step;
    if (in_piece % step == 0 || n >= piece.steps_in(i) || piece.steps_before(i) + n >= chunks.steps_in(j))
      return at_step_after(time);
    Progress p = in_chunk(j, piece.steps_before(i) + n);
    cut = time - std::exchange(p.now, time);
    return p;
  }
};

/// Fills `out`, which must be newly made. An out-parameter, because a returned Uptime would be copied.
void jump(const RunClock& clock, const Saved& from, bool first, const Events& events, const HealthAt& health,
          Uptime& out) {
  const std::int64_t failure = events.failure;
  const auto spend = [&](Bucket bucket) -> std::int64_t& { return out.spent[static_cast<std::size_t>(bucket)]; };
  const std::int64_t reload = first ? 0 : from.loaded.steps > from.secured.steps ? clock.local_reload : clock.reload;
  const std::int64_t ready = clock.restart + reload, begin = ready + clock.startup;
  const auto part = [&](std::int64_t from_time, std::int64_t to) {
    return std::clamp<std::int64_t>(failure - from_time, 0, to - from_time);
  };
  spend(Bucket::accelerator_init) = part(0, clock.restart);
  spend(Bucket::checkpoint_restore) = part(clock.restart, ready);
  spend(Bucket::program_startup) = part(ready, begin);

  std::int64_t stalled = 0, redone = 0;
  const auto time_of = [&](const Work& w) {
    return (w.steps - from.loaded.steps) * clock.step + w.longer - from.loaded.longer;
  };
  const auto finish = [&](UptimeEnd how, std::int64_t length, const Saved& saved, std::int64_t worked,
                          std::int64_t verified) {
    out.how = how;
    out.length = length;
    out.saved = saved;
    const Work& kept = saved.loaded;
    spend(Bucket::productive) = (kept.steps - from.loaded.steps) * clock.step;
    spend(Bucket::other) = kept.longer - from.loaded.longer;
    spend(Bucket::wasted_progress) = worked - time_of(kept) + redone;
    spend(Bucket::custom_events) = verified;
    spend(Bucket::infrastructure_recovery) = stalled;
    spend(Bucket::checkpoint_save) = std::max<std::int64_t>(0, length - begin) - worked - redone - verified - stalled;
  };
  /// A failure at `time`, with the checkpoints of `p` and the local copy `local`.
  const auto fail = [&](std::int64_t time, const Progress& p, const Work& local, std::int64_t worked,
                        std::int64_t verified) {
    const Work secured = p.persist_ends > 0 && p.persist_ends <= time ? p.saved : p.secured;
    return finish(UptimeEnd::failed, time, {events.local_lost ? secured : local, secured}, worked, verified);
  };

  Progress p{begin, from.loaded, from.secured, from.secured, from.loaded};
  if (failure <= begin) return fail(failure, p, p.local, 0, 0);
  while (true) {
    Health now = health(p.now);
    if (now.pause > 0) {
      const std::int64_t passed = std::min(now.pause, failure - p.now);
      stalled += passed;
      p.now += passed;
      if (passed < now.pause) return fail(failure, p, p.local, time_of(p.done), p.checks * clock.verify);
      now = health(p.now);
    }
    if (now.too_few) return fail(p.now, p, p.local, time_of(p.done), p.checks * clock.verify);
    const Stretch stretch{clock, p, now.step};
    std::int64_t target = events.stop >= kNever ? clock.steps : stretch.step_ending_after(events.stop);
    bool corrupted = false;
    if (events.silent < kNever) {
      const std::int64_t more = events.silent - time_of(p.done), found = stretch.step_finding(more);
      corrupted = more < (target - p.done.steps) * now.step;
      if (corrupted) target = std::min(target, found);
    }
    if (events.silent_at < kNever)
      if (const auto wrong_step = stretch.step_in_progress_at(events.silent_at); wrong_step && *wrong_step <= target) {
        corrupted = true;
        target = std::min(target, stretch.check_after(*wrong_step));
      }
    if (now.until < failure) {
      std::int64_t cut = 0;
      const Progress next = now.redo ? stretch.at_cut(now.until, cut) : stretch.at_step_after(now.until);
      if (next.now < failure && next.done.steps < target) {
        p = next;
        redone += cut;
        continue;
      }
    }

    const Spans& chunks = stretch.chunks;
    const std::int64_t todo = target - p.done.steps;
    const std::int64_t last = todo <= chunks.first_steps ? 1 : 1 + ceil_div(todo - chunks.first_steps, clock.interval);
    const std::int64_t j = std::min(last, stretch.at(failure));
    bool all_copied = false;
    if (j == last) {
      const Progress at_last = stretch.in_chunk(last, todo - chunks.steps_before(last) - 1);  // start of the last step
      const std::int64_t all_checked = std::max(at_last.now + now.step + clock.verify, at_last.persist_ends);
      const std::int64_t copied = all_checked + clock.blocking, done = corrupted ? all_checked : copied + clock.persist;
      if (failure >= done) {
        const Work all = stretch.after(todo);
        const std::int64_t verified = (at_last.checks + 1) * clock.verify;
        if (corrupted)
          return finish(UptimeEnd::corrupted, done, {at_last.local, at_last.saved}, time_of(all), verified);
        return finish(target == clock.steps ? UptimeEnd::finished : UptimeEnd::planned, done, {all, all}, time_of(all),
                      verified);
      }
      all_copied = !corrupted && target < clock.steps && failure >= copied;
    }
    const std::int64_t steps = j == last ? todo - chunks.steps_before(last) : chunks.steps_in(j);
    const Spans pieces = stretch.pieces(j);
    const std::int64_t last_piece = stretch.piece_of(j, steps);
    const std::int64_t i = std::min(last_piece, stretch.piece_at(pieces, failure - stretch.starts(j)));
    const Progress piece = stretch.in_chunk(j, pieces.steps_before(i));
    const std::int64_t into = failure - piece.now,
                       training = (i == last_piece ? stretch.last_steps(j, steps) : pieces.steps_in(i)) * now.step;
    return fail(failure, piece, all_copied ? stretch.after(todo) : piece.local,
                time_of(piece.done) + std::clamp<std::int64_t>(into, 0, training),
                piece.checks * clock.verify + std::clamp<std::int64_t>(into - training, 0, clock.verify));
  }
}

}  // namespace

Uptime jump_uptime(const RunClock& clock, const Saved& from, bool first, const Events& events, const HealthAt& health) {
  Uptime out;
  jump(clock, from, first, events, health, out);
  return out;
}

}  // namespace detail
}  // namespace wt
