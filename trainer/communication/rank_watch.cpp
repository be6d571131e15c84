#include "trainer/communication/rank_watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "trainer/communication/first_failure.hpp"
#include "trainer/communication/generation.hpp"
#include "trainer/communication/rank_progress.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/faults/processes.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using nlohmann::json;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

/// After a failure elsewhere this rank usually ends by itself, because its peers are gone; time allowed for that.
constexpr double kEndsByItself_s = 1.5;
/// Time for the agent's decision after a loss, which usually takes less than a second.
constexpr double kDecision_s = 10;
/// Limit of an ending rank's use of the store, which may be unresponsive.
constexpr double kEnding_s = 8;
/// Limit of the wait for a store that is gone; ranks that have settled end in that time.
constexpr double kLeaving_s = 0.5;
/// Number of ranks that a message lists individually.
constexpr std::size_t kNamed = 8;

std::string list(const std::vector<std::int64_t>& ranks) {
  std::string out = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < std::min(ranks.size(), kNamed); ++i) out += fmt::format(" {}", ranks[i]);
  if (ranks.size() > kNamed) out += fmt::format(" and {} more", ranks.size() - kNamed);
  return out;
}

void pause_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

struct RankWatch::Impl {
  struct Group {
    std::string name;
    std::vector<std::int64_t> members;
    std::int64_t issued = 0;
  };

  RankEnvironment environment;
  double timeout_s = 0;
  int generation = 0;
  StorePtr store;      ///< for the main thread
  StorePtr own_store;  ///< for the publisher, because a waiting client blocks its other users
  StorePtr launch;     ///< for the publisher; keys of all generations

  mutable std::mutex mutex;
  std::condition_variable stopped;
  bool stop = false;
  std::int64_t step = 0;
  std::string op = "start";
  std::vector<Group> groups;
  std::optional<AwaitedCall> awaited;
  double awaited_since = 0;
  double failed_elsewhere_at = 0;  ///< time of another rank's failure; 0: none known
  double answered_at = 0;          ///< time of the store's last answer
  std::optional<Membership> next;
  std::condition_variable decided;
  std::atomic<bool> ending{false}, store_gone{false};
  std::thread publisher, enforcer, greeter;

  std::string position() const { return step > 0 ? fmt::format("{} of step {}", op, step) : op; }

  /// Returns false when the watch should stop.
  bool sleep(double seconds) {
    std::unique_lock lock(mutex);
    return !stopped.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return stop; });
  }

  std::string progress(std::int64_t beat) const {
    const std::lock_guard lock(mutex);
    json issued = json::object();
    for (const Group& group : groups) issued[group.name] = group.issued;
    return json{{"beat", beat}, {"at", position()}, {"awaits", awaited ? awaited->position : ""}, {"issued", issued}}
        .dump();
  }

  void publish() {
    try {
      for (std::int64_t beat = 1;; ++beat) {
        own_store->set(progress_key(environment.rank), progress(beat));
        if (environment.regroups) look_for_next();
        const bool failed = first_failure(*own_store).has_value();
        {
          const std::lock_guard lock(mutex);
          answered_at = Clocks::now().wall_s;
          if (failed && failed_elsewhere_at == 0) failed_elsewhere_at = answered_at;
        }
        if (!sleep(tick_s(environment.world))) return;
      }
    } catch (const std::exception&) {
      store_gone = true;  // together with the rank or agent that hosts it; the next call reports that
    }
  }

  /// Shuts down old connections before `next` is set, because the main thread may then create new ones.
  void look_for_next() {
    auto found = membership_after(*launch, generation);
    if (!found) return;
    if (!found->planned && !broken_up()) end_connections(environment.master_port);
    const std::lock_guard lock(mutex);
    next = std::move(found);
    decided.notify_all();
  }

  bool broken_up() const {
    const std::lock_guard lock(mutex);
    return next && !next->planned;
  }

  /// Whether earlier generations have used the store.
  bool store_is_shared() const { return environment.torchrun && environment.agent_store; }

  /// A store used only by this generation needs no number: it is the launcher's, or rank 0 has just created it.
  int find_generation(c10d::Store& launch) {
    if (!store_is_shared()) return environment.agent_store ? environment.restart_count : 0;
    if (environment.rank == 0) return open_generation(launch);
    try {
      return ask_generation(launch, environment.rank);
    } catch (const std::exception& e) {
      throw_runtime("rank {}: rank 0 has not come to the rendezvous store within {:g} s (dist_timeout): {}",
                    environment.rank, timeout_s, e.what());
    }
  }

  void greet(c10d::Store& launch) {
    try {
      answer_arrivals(launch, environment.world, generation, [&](double seconds) { return sleep(seconds); });
    } catch (const std::exception&) {
      // Handled as in publishing.
    }
  }

  void enforce() {
    while (sleep(std::min(0.1, timeout_s / 4))) {
      std::unique_lock lock(mutex);
      const double now = Clocks::now().wall_s;
      if (failed_elsewhere_at != 0 &&
          now - failed_elsewhere_at > (environment.regroups ? kDecision_s : kEndsByItself_s)) {
        lock.unlock();
        end({environment.rank, static_cast<int>(Code::runtime), "another rank failed"}, std::nullopt);
      }
      // A rank that waits for no other would not notice the loss, nor be noticed if its host is stopped.
      if (now - answered_at > timeout_s + kSilentTicks * tick_s(environment.world)) {
        lock.unlock();
        end({environment.rank, static_cast<int>(Code::runtime),
             fmt::format("rank {}: no answer for {:g} s (dist_timeout)", environment.rank, timeout_s)},
            std::nullopt);
      }
      if (!awaited || now - awaited_since < timeout_s) continue;
      const AwaitedCall call = *awaited;
      lock.unlock();
      end({environment.rank, static_cast<int>(Code::runtime),
           fmt::format("{} was not over after {:g} s (dist_timeout)", describe(call), timeout_s)},
          call);
    }
  }

  /// Each rank's last publication; ranks without one have no entry.
  std::map<std::int64_t, json> read_progress(c10d::Store& from) const {
    std::map<std::int64_t, json> out;
    for (std::int64_t rank = 0; rank < environment.world; ++rank)
      if (const std::string last = last_progress(from, rank); !last.empty()) out[rank] = json::parse(last);
    return out;
  }

  struct Missing {
    std::string text;
    std::vector<std::int64_t> ranks;
  };

  /// Why the call cannot end: silent ranks, and ranks that have not issued it, with their positions.
  Missing missing(c10d::Store& from, const AwaitedCall& call) const {
    const auto before = read_progress(from);
    auto after = before;
    const auto silent_since_before = [&](std::int64_t rank) {
      const auto earlier = before.find(rank);
      return earlier != before.end() && earlier->second.at("beat") == after.at(rank).at("beat");
    };
    for (int tick = 0; tick < kSilentTicks; ++tick) {
      pause_for(tick_s(environment.world));
      after = read_progress(from);
      if (std::ranges::none_of(after, [&](const auto& entry) {
            return entry.first != environment.rank && silent_since_before(entry.first);
          }))
        break;
    }
    std::optional<Group> group;
    if (call.group >= 0) {
      const std::lock_guard lock(mutex);
      group = groups[static_cast<std::size_t>(call.group)];
    }
    std::vector<std::string> causes, elsewhere;
    std::vector<std::int64_t> silent, busy, late;  // busy: waits for no other rank, so that the others wait for it
    for (std::int64_t rank = 0; rank < environment.world; ++rank) {
      if (rank == environment.rank) continue;
      const bool member = !group || std::ranges::count(group->members, rank) > 0;
      const auto it = after.find(rank);
      if (it == after.end()) {
        causes.push_back(fmt::format("rank {} has not started", rank));
        silent.push_back(rank);
        continue;
      }
      const json& last = it->second;
      const std::string at = last.at("at"), awaits = last.at("awaits");
      if (silent_since_before(rank)) {
        causes.push_back(fmt::format("rank {} is silent (stopped, dead or cut off), last seen at {}", rank, at));
        silent.push_back(rank);
        continue;
      }
      const bool waits_for_nobody = awaits.empty();
      if (waits_for_nobody) busy.push_back(rank);
      if (member && (!group || last.at("issued").value(group->name, std::int64_t{0}) < call.number)) {
        elsewhere.push_back(fmt::format("rank {} {} {}{}", rank, group ? "has not issued it: it is at" : "is at", at,
                                        awaits.empty() || awaits == at ? "" : fmt::format(", waiting for {}", awaits)));
        late.push_back(rank);
      } else if (waits_for_nobody) {
        elsewhere.push_back(fmt::format("rank {} waits for nobody: it is at {}", rank, at));
      }
    }
    if (group || causes.empty()) causes.insert(causes.end(), elsewhere.begin(), elsewhere.end());
    if (causes.empty()) return {"every rank has issued it: the network between them does not deliver", {}};
    Missing out{"", !silent.empty() ? silent : !busy.empty() ? busy : late};
    for (std::size_t i = 0; i < std::min(causes.size(), kNamed); ++i) out.text += (i ? "; " : "") + causes[i];
    if (causes.size() > kNamed) out.text += fmt::format("; and {} more", causes.size() - kNamed);
    return out;
  }

  /// "rank 0: mb0.L1.dispatch.fwd of step 3: all_to_all over axis expert, ranks 0 1"
  std::string describe(const AwaitedCall& call) const {
    const std::lock_guard lock(mutex);
    const std::string over = call.group < 0 ? "" : ", " + list(groups[static_cast<std::size_t>(call.group)].members);
    return fmt::format("rank {}: {}: {}{}", environment.rank, call.position, call.what, over);
  }

  /// An ending rank's use of the store. `lost`: the call whose failure ends it.
  int settle(Failure own, const std::optional<AwaitedCall>& lost) const {
    const StorePtr from = store->clone();
    if (lost && !first_failure(*from)) {
      const Missing why = missing(*from, *lost);
      own.text += ": " + why.text;
      own.missed = why.ranks;
    }
    const int status = settle_failure(*from, own).status;
    if (environment.rank == 0 && !environment.agent_store) wait_until_settled(*from, environment.world - 1, 4);
    return status;
  }

  [[noreturn]] void end(const Failure& own, const std::optional<AwaitedCall>& lost) {
    if (ending.exchange(true))
      for (;;) pause();  // the other thread ends the process
    std::packaged_task<int()> settling([this, own, lost] { return settle(own, lost); });
    auto status = settling.get_future();
    std::thread(std::move(settling)).detach();
    const auto settled_within = [&](double seconds) {
      return status.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
    };
    const double latest_s = Clocks::now().wall_s + kEnding_s + kSilentTicks * tick_s(environment.world);
    while (!settled_within(0.1) && !store_gone && Clocks::now().wall_s < latest_s) {
    }
    if (settled_within(kLeaving_s)) try {
        _exit(status.get());
      } catch (const std::exception&) {  // without a store the ranks cannot agree
      }
    print({own.rank, own.status,
           fmt::format("{}: the store at {}:{}, in {}, does not answer: that process is stopped, dead or cut off",
                       own.text, environment.master_address, environment.master_port,
                       environment.agent_store ? "the launcher" : "rank 0")});
    _exit(own.status);
  }
};

RankWatch::RankWatch(const RankEnvironment& environment, double timeout_s) : impl_(std::make_unique<Impl>()) {
  impl_->environment = environment;
  impl_->timeout_s = timeout_s;
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(environment.master_port);
  options.isServer = environment.rank == 0 && !environment.agent_store;
  options.numWorkers = static_cast<std::size_t>(environment.world);
  options.waitWorkers = false;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * timeout_s));
  StorePtr tcp;
  try {
    tcp = c10::make_intrusive<c10d::TCPStore>(environment.master_address, options);
    impl_->generation = impl_->find_generation(*tcp);
    impl_->store = c10::make_intrusive<c10d::PrefixStore>(store_prefix(impl_->generation), tcp);
    impl_->own_store = impl_->store->clone();
    if (environment.regroups) impl_->launch = tcp->clone();
    // The watch, which knows the reason, ends waits first; the store's own limit is only a fallback.
    impl_->store->setTimeout(std::chrono::milliseconds(static_cast<std::int64_t>(2000 * timeout_s + 60'000)));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    throw_runtime("rank {}: no rendezvous store at {}:{}: {}", environment.rank, environment.master_address,
                  environment.master_port, e.what());
  }
  impl_->answered_at = Clocks::now().wall_s;
  impl_->publisher = std::thread([this] { impl_->publish(); });
  impl_->enforcer = std::thread([this] { impl_->enforce(); });
  if (environment.rank == 0 && impl_->store_is_shared())
    impl_->greeter = std::thread([this, own = tcp->clone()] { impl_->greet(*own); });
}

RankWatch::~RankWatch() { finish(); }

void RankWatch::finish() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stop = true;
  }
  impl_->stopped.notify_all();
  if (impl_->publisher.joinable()) impl_->publisher.join();
  if (impl_->enforcer.joinable()) impl_->enforcer.join();
  if (impl_->greeter.joinable()) impl_->greeter.join();
}

double RankWatch::timeout_s() const { return impl_->timeout_s; }
int RankWatch::generation() const { return impl_->generation; }
c10d::Store& RankWatch::store() const { return *impl_->store; }

std::optional<Membership> RankWatch::next() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->next;
}

bool RankWatch::broken_up() const { return impl_->broken_up(); }

std::optional<Membership> RankWatch::wait_for_next(bool planned) {
  if (!impl_->environment.regroups) return std::nullopt;
  std::unique_lock lock(impl_->mutex);
  const bool known = impl_->decided.wait_for(lock, std::chrono::duration<double>(kDecision_s),
                                             [&] { return impl_->next && impl_->next->planned == planned; });
  return known ? impl_->next : std::nullopt;
}

int RankWatch::add_group(const std::string& name, std::vector<std::int64_t> members) {
  const std::lock_guard lock(impl_->mutex);
  impl_->groups.push_back({name, std::move(members), 0});
  return static_cast<int>(impl_->groups.size()) - 1;
}

void RankWatch::at(std::int64_t step, std::string_view op) {
  const std::lock_guard lock(impl_->mutex);
  impl_->step = step;
  impl_->op = op;
}

AwaitedCall RankWatch::issue(int group, std::string what) {
  const std::lock_guard lock(impl_->mutex);
  const std::int64_t number = group < 0 ? 0 : ++impl_->groups[static_cast<std::size_t>(group)].issued;
  return {std::move(what), impl_->position(), group, number};
}

void RankWatch::lose(const AwaitedCall& call, const std::string& why) const {
  throw PeerLost(call, fmt::format("{} failed: {}", impl_->describe(call), why));
}

RankWatch::Wait::Wait(RankWatch& watch, const AwaitedCall& call) : watch_(watch) {
  const std::lock_guard lock(watch_.impl_->mutex);
  watch_.impl_->awaited = call;
  watch_.impl_->awaited_since = Clocks::now().wall_s;
}

RankWatch::Wait::~Wait() {
  const std::lock_guard lock(watch_.impl_->mutex);
  watch_.impl_->awaited.reset();
}

void RankWatch::end(const std::exception& failure) {
  Failure own{impl_->environment.rank, static_cast<int>(Code::runtime), failure.what()};
  std::optional<AwaitedCall> lost;
  if (const auto* error = dynamic_cast<const Error*>(&failure)) own.status = error->exit_status();
  if (const auto* peer = dynamic_cast<const PeerLost*>(&failure)) lost = peer->call;
  if (const auto* torch = dynamic_cast<const c10::Error*>(&failure)) own.text = torch->what_without_backtrace();
  impl_->end(own, lost);
}

void run_watched(const RankEnvironment& environment, double timeout_s, const std::function<void(RankWatch&)>& body) {
  RankWatch watch(environment, timeout_s);
  try {
    body(watch);
  } catch (const std::exception& e) {
    watch.end(e);
  }
  watch.finish();
}

}  // namespace wt
