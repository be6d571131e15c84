// The random events of a run: failing nodes, spare nodes, slow nodes, lost replicas. Only for simulate_run.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <random>
#include <vector>

#include "sim/months/simulate_run.hpp"

namespace wt::detail {

inline std::int64_t ns(double seconds) { return std::llround(seconds * 1e9); }

/// A Weibull time by inversion. `scale_ns` = mean / Gamma(1 + 1/shape), u from [0, 1).
inline std::int64_t weibull_ns(double scale_ns, double inverse_shape, double u) {
  const double e = -std::log1p(-u);
  const double t = scale_ns * (inverse_shape == 1 ? e : std::pow(e, inverse_shape));
  return t < static_cast<double>(kNever) ? std::llround(t) : kNever;
}
inline double weibull_scale_ns(double mean_s, double shape) { return mean_s * 1e9 / std::tgamma(1 + 1 / shape); }

/// Draws by inversion, because distributions of the standard library differ between implementations. Its engines do
/// not.
class Draw {
 public:
  Draw(double mean_s, double shape, std::uint64_t seed)
      : never_(mean_s <= 0), inverse_shape_(1 / shape), scale_ns_(weibull_scale_ns(mean_s, shape)) {
    if (!never_) engine_.emplace(seed);
  }
  std::int64_t operator()() {
    if (never_) return kNever;
    return weibull_ns(scale_ns_, inverse_shape_, static_cast<double>((*engine_)() >> 11) * 0x1p-53);
  }

 private:
  bool never_;
  double inverse_shape_, scale_ns_;
  std::optional<std::mt19937_64> engine_;  ///< seeding an engine takes longer than simulating an uptime
};

/// Nodes that each fail by a clock of their own, which runs while the job runs. A failed node is replaced by a new one.
class NodeFailures {
 public:
  NodeFailures(const FailureLaw& law, std::uint64_t seed)
      : life_(static_cast<double>(law.nodes) * law.mean_s, law.shape, seed) {
    for (std::int64_t node = 0; node < law.nodes; ++node) due_.push(life_());
  }
  bool any() const { return !due_.empty(); }
  std::int64_t next() const { return due_.top(); }
  void replace() {
    const std::int64_t failed = due_.top();
    due_.pop();
    due_.push(std::min(failed + life_(), kNever));
  }

 private:
  Draw life_;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> due_;
};

/// True with this probability. Probability 0 needs no draw.
class Chance {
 public:
  Chance(double probability, std::uint64_t seed) : probability_(probability) {
    if (probability > 0) engine_.emplace(seed);
  }
  bool operator()() { return probability_ > 0 && static_cast<double>((*engine_)() >> 11) * 0x1p-53 < probability_; }

 private:
  double probability_;
  std::optional<std::mt19937_64> engine_;
};

/// Failed nodes in repair. The job can run while at most `spares` of them are away.
class Spares {
 public:
  Spares(std::int64_t spares, std::int64_t repair) : spares_(spares), repair_(repair) {}
  /// How long a job waits that lost a node at `failed` and is otherwise ready at `ready`.
  std::int64_t wait(std::int64_t failed, std::int64_t ready) {
    if (spares_ < 0) return 0;
    back_.push_back(failed + repair_);
    while (!back_.empty() && back_.front() <= ready) back_.pop_front();
    const auto away = static_cast<std::int64_t>(back_.size());
    return away <= spares_ ? 0 : back_[static_cast<std::size_t>(away - spares_ - 1)] - ready;
  }

 private:
  std::int64_t spares_, repair_;
  std::deque<std::int64_t> back_;  ///< in order, as all repairs take equally long
};

/// Slow nodes, by the running time of the job. Phases may overlap. All last equally long, so they end in order.
class Stragglers {
 public:
  Stragglers(const StragglerLaw& law, std::uint64_t seed)
      : gap_(law.mean_s, 1.0, seed), duration_(ns(law.duration_s)), exchanged_(law.exchanged), onset_(gap_()) {}

  /// Whether a node of the job is slow, and until when that holds; kNever = for good.
  struct Phase {
    bool slow;
    std::int64_t until;
  };
  Phase at(std::int64_t time) {
    if (!exchanged_)
      while (onset_ + duration_ <= time) next(onset_);
    if (time < onset_) return {false, onset_};
    return {true, exchanged_ ? kNever : onset_ + duration_};
  }
  /// When the next slow node is detected, if detected ones are exchanged; else kNever.
  std::int64_t found() const { return exchanged_ ? onset_ + duration_ : kNever; }
  void exchange(std::int64_t time) { next(time); }
  /// Nodes that became slow before `time`. Several in one phase that ends with an exchange count once.
  std::int64_t count(std::int64_t time) {
    at(time);
    return before_ + (onset_ < time);
  }

 private:
  void next(std::int64_t from) {
    onset_ = std::min(from + gap_(), kNever);
    ++before_;
  }
  Draw gap_;
  std::int64_t duration_;
  bool exchanged_;
  std::int64_t onset_, before_ = 0;
};

/// Replicas that are lost and rejoin while the job runs on. Internal times are wall times.
class Replicas {
 public:
  Replicas(const ReplicaTolerance& t, const Draw& gap, Spares& spares)
      : count_(t.replicas),
        microbatches_(t.microbatches),
        recover_(ns(t.recover_s)),
        stall_(ns(t.stall_s)),
        gap_(gap),
        spares_(spares) {}

  /// An uptime begins at `wall`. The clock of losses starts anew.
  void restart(std::int64_t wall) {
    wall_ = wall;
    losses_ = 0;
    stall_due_ = false;
    loss_ = std::min(wall + gap_(), kNever);
  }
  /// Adds the losses and returns up to `time` of the uptime to the job's health, which holds the effect of slow nodes.
  void at(std::int64_t time, Health& h) {
    const std::int64_t now = wall_ + time;
    lose_until(now);
    while (!back_.empty() && back_.front() <= now) back_.pop_front();
    const auto away = static_cast<std::int64_t>(back_.size());
    h.too_few = 2 * away > count_;
    if (stall_due_ && !h.too_few && stall_ > 0) {
      h.pause = stall_;
      lose_until(now + stall_);
    }
    stall_due_ = false;
    if (away > 0)
      h.step = std::llround(static_cast<double>(h.step) *
                            replica_step_factor(count_, count_ - std::min(away, count_ - 1), microbatches_));
    if (!back_.empty()) h.until = std::min(h.until, back_.front() - wall_);
    h.redo = loss_ < kNever && loss_ - wall_ <= h.until;
    if (h.redo) h.until = loss_ - wall_;
  }
  /// Losses in the uptime, which ends after `length`.
  std::int64_t lost(std::int64_t length) {
    lose_until(wall_ + length);
    return losses_;
  }
  /// When all replicas are back.
  std::int64_t all_back() const { return back_.empty() ? 0 : back_.back(); }

 private:
  void lose_until(std::int64_t time) {
    for (; loss_ <= time; loss_ = std::min(loss_ + gap_(), kNever)) {
      const std::int64_t ready = loss_ + stall_ + recover_, back = ready + spares_.wait(loss_, ready);
      back_.insert(std::ranges::upper_bound(back_, back), back);
      ++losses_;
      stall_due_ = true;
    }
  }
  std::int64_t count_, microbatches_, recover_, stall_;
  Draw gap_;
  Spares& spares_;
  std::int64_t wall_ = 0, loss_ = kNever, losses_ = 0;
  bool stall_due_ = false;
  std::deque<std::int64_t> back_;  ///< rejoin times, in order
};

}  // namespace wt::detail
