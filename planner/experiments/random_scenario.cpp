#include "planner/experiments/random_scenario.hpp"

#include <algorithm>
#include <csignal>
#include <random>

#include "configs/base/error.hpp"

namespace wt {
namespace {

/// Draws without the standard library's distributions, which differ between implementations.
class Dice {
 public:
  Dice(std::uint64_t seed, std::int64_t number) {
    std::seed_seq words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                        static_cast<std::uint32_t>(number)};
    engine_.seed(words);
  }
  /// first..last
  std::int64_t between(std::int64_t first, std::int64_t last) {
    return first + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(last - first + 1));
  }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }
  template <typename T>
  T of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(values.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

class Drawing {
 public:
  Drawing(const RunSpec& run, const StepPlaces& places, std::uint64_t seed, std::int64_t number)
      : run_(run), places_(places), dice_(seed, number) {
    scenario_.name = fmt::format("random-{}-{}", seed, number);
    scenario_.run = run.name;
  }

  Scenario draw() {
    shape();
    policy();
    const std::int64_t count = dice_.between(1, 3);
    for (std::int64_t i = 0; i < count && first_ <= run_.steps && !last_; ++i) {
      if (dice_.one_in(8)) damage();
      if (!last_) event();
    }
    expectation();
    return scenario_;
  }

 private:
  std::int64_t nodes() const { return run_.layout.world() / scenario_.nodes.ranks; }
  bool on_loss(Recovery recovery) const {
    const auto& ways = scenario_.policy.on_loss;
    return std::ranges::find(ways, recovery) != ways.end();
  }

  void shape() {
    std::vector<std::int64_t> sizes;
    for (std::int64_t ranks = 1; ranks <= run_.layout.world(); ++ranks)
      if (run_.layout.world() % ranks == 0) sizes.push_back(ranks);
    scenario_.nodes.ranks = dice_.of(sizes);
    if (dice_.one_in(2)) scenario_.nodes.per_rack = dice_.between(1, nodes());
    if (dice_.one_in(2)) scenario_.nodes.spares = dice_.between(1, nodes());
  }

  void policy() {
    auto& ways = scenario_.policy.on_loss;
    ways.clear();
    if (scenario_.nodes.spares > 0 && dice_.one_in(2)) ways.push_back(Recovery::spare);
    const Layout& l = run_.layout;
    const bool whole_replicas = l.replicate > 1 && l.optimizer_shard == 1 && l.shard % scenario_.nodes.ranks == 0;
    if (nodes() > 1 && dice_.one_in(3))
      ways.push_back(Recovery::shrink);
    else if (whole_replicas && run_.device == DeviceKind::cpu && dice_.one_in(3))
      ways.push_back(Recovery::without_replica);
    ways.push_back(dice_.one_in(6) ? Recovery::wait : Recovery::restart);
    // Equal faults by chance must not count as a recurring fault.
    scenario_.policy.max_restarts = scenario_.policy.retries_same_place = 10;
  }

  /// Draws an event of the current generation. An event that ends the ranks begins the next generation.
  void event() {
    FaultEvent out;
    out.generation = generation_;
    do out.what = effect();
    while (out.what.kind == FaultKind::maintenance && first_ > run_.steps - kStepsToEnd);
    const bool saves = out.what.kind == FaultKind::disk_full || out.what.kind == FaultKind::file_too_large;
    out.when = saves ? save(9) : place(out.what);  // so that something remains to be written
    out.who = victims(out);
    if (of_launch(out)) out.what.takes_local_copies = false;
    if (out.what.kind == FaultKind::hang || out.what.kind == FaultKind::slow)
      if (dice_.one_in(2)) out.lasts_s = 0.1 * static_cast<double>(dice_.between(1, 5));
    out.lasts_s = away_s(out);
    const bool in_step = out.when.place == FaultTime::Place::begin || out.when.place == FaultTime::Place::op;
    const bool comes_again = ends_ranks(out) && out.who.domain == FaultDomain::rank && in_step;
    if (comes_again && !on_loss(Recovery::without_replica) && dice_.one_in(6)) out.repeats = 2;
    go_on_after(out);
    scenario_.events.push_back(out);
  }

  /// Updates what can be drawn after the event.
  void go_on_after(const FaultEvent& e) {
    if (!ends_ranks(e)) {
      struck_ = true;
      first_ = e.when.step + 1;  // an event that ends the ranks must come later
      // If it is found, ranks restart; if not, they do not.
      last_ = e.what.kind == FaultKind::corrupt && run_.resilience.verify_interval > 0;
      return;
    }
    generation_ += e.repeats;
    struck_ = false;
    const bool in_save = e.when.place == FaultTime::Place::checkpoint;
    const bool whole = e.when.place == FaultTime::Place::manifest || (in_save && e.when.after >= 1);
    // A failed save is noticed by the next one at the latest. Copies in memory may be as new as that.
    const std::int64_t newer = in_save && run_.resilience.local.interval > 0 ? run_.save_interval + 1 : whole ? 1 : 0;
    first_ = std::max(first_, e.when.step + newer);
    if (e.what.kind == FaultKind::maintenance) first_ += kStepsToEnd + 1;  // the next ranks begin after the save
    // It is unknown when ranks come back.
    last_ = on_loss(Recovery::without_replica) || (e.lasts_s && on_loss(Recovery::shrink));
  }

  /// Damages a checkpoint that is complete by then, and kills ranks, so that it is read.
  void damage() {
    using enum FileDamage;
    const std::int64_t whole = 2 * run_.save_interval + 1;  // the second save waits for the first
    if (!run_.save || run_.save_interval == 0 || std::max(whole, first_) > run_.steps || generation_ > 0 ||
        on_loss(Recovery::without_replica))
      return;
    FaultEvent out;
    out.when.step = dice_.between(std::max(whole, first_), run_.steps);
    out.what.kind = FaultKind::damage;
    if (run_.resilience.local.interval > 0) {  // read first
      out.who = {FaultDomain::node, dice_.between(0, nodes() - 1), 0};
      out.what.level = CopyLevel::local;
      out.what.damage = dice_.of(std::vector{flip_bit, truncate, zero, remove});
    } else {
      out.who = {FaultDomain::storage, std::nullopt, 0};
      out.what.damage = dice_.of(std::vector{flip_bit, truncate, zero, remove, exchange, old_manifest, stale_latest});
    }
    scenario_.events.push_back(out);
    FaultEvent death;
    death.who = {FaultDomain::rank, dice_.between(0, run_.layout.world() - 1), 0};
    death.when.step = out.when.step;
    death.when.place = FaultTime::Place::op;
    death.when.op = places_.op_ids.back();
    death.lasts_s = away_s(death);
    scenario_.events.push_back(death);
    go_on_after(death);
  }

  FaultEffect effect() {
    using enum FaultKind;
    FaultEffect out;
    out.kind = dice_.of(std::vector{kill, abort, segfault, exit, exception, hang, slow, corrupt, disk_full,
                                    file_too_large, partition, maintenance});
    if (out.kind == kill) out.takes_local_copies = dice_.one_in(2);
    if (out.kind == exit) out.status = static_cast<int>(dice_.of(std::vector<std::int64_t>{1, 3, 4, 77}));
    if (out.kind == hang) out.thread = dice_.one_in(2);
    if (out.kind == slow) out.factor = static_cast<double>(dice_.between(2, 4));
    if (out.kind == disk_full || out.kind == file_too_large) out.bytes = static_cast<double>(dice_.between(0, 100'000));
    if (out.kind == maintenance) out.signal = dice_.one_in(2) ? SIGTERM : SIGUSR1;
    if (out.kind == corrupt) {
      using enum TensorKind;
      out.tensor = dice_.of(std::vector{gradient, weight, moment, activation});
      out.layer = dice_.between(0, run_.model.blocks() - 1);
      if (out.tensor != gradient && dice_.one_in(2)) return out;  // a gradient is 0 at the begin of a step
      out.bit = static_cast<int>(dice_.between(0, 31));
      out.element = dice_.between(0, 1'000'000);
    }
    return out;
  }

  /// A save with at most so many tenths of the rank's bytes written before the fault.
  FaultTime save(std::int64_t tenths) {
    FaultTime out;
    std::vector<std::int64_t> saves;
    for (std::int64_t step = first_; step <= run_.steps; ++step)
      if (step == run_.steps || (run_.save_interval > 0 && step % run_.save_interval == 0)) saves.push_back(step);
    out.step = dice_.of(saves);
    out.place = FaultTime::Place::checkpoint;
    out.after = static_cast<double>(dice_.between(0, tenths)) / 10;
    return out;
  }

  FaultTime place(const FaultEffect& what) {
    using enum FaultKind;
    const FaultKind kind = what.kind;
    const bool dies = kind == kill || kind == abort || kind == segfault || kind == exit;
    if (dies && run_.save && dice_.one_in(4)) {
      FaultTime out = save(10);
      if (dice_.one_in(4)) out.place = FaultTime::Place::manifest, out.after = 0;
      return out;
    }
    FaultTime out;
    const bool starting = dies && generation_ > 0 && dice_.one_in(3);
    if (starting && !struck_) {
      out.place = dice_.one_in(2) ? FaultTime::Place::reload : FaultTime::Place::restart;
      return out;
    }
    // Ranks that are asked to end do so after the next steps. The run must not be over by then.
    const std::int64_t last = run_.steps - (kind == maintenance ? kStepsToEnd : 0);
    // Moments are 0 before the first step: a fault that zeroes them would change nothing.
    const bool zeroes_moment = kind == corrupt && what.tensor == TensorKind::moment && !what.bit;
    out.step = dice_.between(zeroes_moment ? std::max<std::int64_t>(first_, 2) : first_, last);
    const bool other_ops = generation_ > 0 && on_loss(Recovery::shrink);  // with a smaller layout
    if (kind == corrupt && what.tensor == TensorKind::activation) {
      out.place = FaultTime::Place::op;
      out.op = fmt::format("mb0.L{}.attn.fwd", what.layer);  // exists in every layout
      return out;
    }
    if (kind == maintenance || kind == corrupt || kind == slow || other_ops || dice_.one_in(5)) return out;
    out.place = FaultTime::Place::op;
    out.phase = static_cast<FaultTime::Phase>(dice_.between(0, 2));
    out.op = dice_.of(out.phase == FaultTime::Phase::before ? places_.op_ids : places_.collectives);
    return out;
  }

  /// Entities that certainly exist: rank 0 if the world may have shrunk or nodes may have moved.
  Victims victims(const FaultEvent& event) {
    using enum FaultDomain;
    const FaultKind kind = event.what.kind;
    const bool one_rank = kind != FaultKind::kill && kind != FaultKind::partition && kind != FaultKind::slow;
    if (kind == FaultKind::maintenance) return {all, std::nullopt, 0};
    if (event.when.place == FaultTime::Place::manifest) return {rank, 0, 0};  // only rank 0 writes a manifest
    const bool in_save = event.when.place == FaultTime::Place::checkpoint;
    const bool same = generation_ == 0 || scenario_.policy.on_loss.front() == Recovery::restart;
    if (one_rank || in_save || !same) {
      const std::int64_t last = !same ? 0 : in_save ? run_.layout.shard - 1 : run_.layout.world() - 1;
      return {rank, dice_.between(0, last), 0};
    }
    const std::int64_t per_rack = scenario_.nodes.per_rack > 0 ? scenario_.nodes.per_rack : nodes();
    const bool in_step = event.when.place == FaultTime::Place::begin || event.when.place == FaultTime::Place::op;
    // A rack or a replica may be the whole run; then a partition would separate nothing.
    const bool dies = kind == FaultKind::kill;
    switch (kind == FaultKind::partition ? 0 : dice_.between(0, dies && in_step ? 5 : 2)) {
      case 0:
        return {rank, dice_.between(0, run_.layout.world() - 1), 0};
      case 1:
        return {node, dice_.between(0, nodes() - 1), 0};
      case 2:
        return {rack, dice_.between(0, (nodes() - 1) / per_rack), 0};
      case 3:
        return {replica, dice_.between(0, run_.layout.replicate - 1), 0};
      case 4:
        return {store, std::nullopt, 0};
      default:
        return {agent, std::nullopt, 0};
    }
  }

  static bool of_launch(const FaultEvent& event) {
    return event.who.domain == FaultDomain::store || event.who.domain == FaultDomain::agent;
  }

  /// The event removes all ranks of a node, and the policy can continue without it.
  bool takes_nodes(const FaultEvent& event) const {
    using enum FaultDomain;
    const bool nodes = event.who.domain == node || event.who.domain == rack || event.who.domain == replica ||
                       (event.who.domain == rank && scenario_.nodes.ranks == 1);
    return nodes && event.what.kind == FaultKind::kill && scenario_.policy.on_loss.front() != Recovery::restart;
  }
  std::optional<double> away_s(const FaultEvent& event) {
    if (!takes_nodes(event) || !(on_loss(Recovery::wait) || dice_.one_in(2))) return event.lasts_s;
    return 0.5 * static_cast<double>(dice_.between(1, 4));
  }

  /// Temporary hangs, slow phases and wrong numbers do not end ranks.
  static bool ends_ranks(const FaultEvent& event) {
    using enum FaultKind;
    if (event.what.kind == hang) return !event.lasts_s;
    return event.what.kind != slow && event.what.kind != corrupt;
  }

  void expectation() {
    for (const FaultEvent& event : scenario_.events) {
      if (event.what.kind == FaultKind::corrupt) scenario_.expect.state = Expectation::State::any;
      if (event.what.kind == FaultKind::maintenance || of_launch(event)) ++scenario_.expect.relaunches;
    }
    if ((on_loss(Recovery::shrink) || on_loss(Recovery::without_replica)) &&
        scenario_.expect.state == Expectation::State::bitwise)
      scenario_.expect.state = Expectation::State::layouts;
  }

  static constexpr std::int64_t kStepsToEnd = 4;
  const RunSpec& run_;
  const StepPlaces& places_;
  Dice dice_;
  Scenario scenario_;
  int generation_ = 0;
  bool last_ = false;       ///< what follows it is unknown
  bool struck_ = false;     ///< an event of this generation is drawn, so ranks must not end before its step
  std::int64_t first_ = 1;  ///< a step that this generation certainly reaches
};

}  // namespace

Scenario random_scenario(const RunSpec& run, const StepPlaces& places, std::uint64_t seed, std::int64_t number) {
  return Drawing(run, places, seed, number).draw();
}

}  // namespace wt
