// Watches one rank from threads of its own, so that no run hangs and every end has a cause:
//   - publishes in the rendezvous store where the rank is: step, op, collectives issued in each group;
//   - ends the process when its main thread has waited longer than the timeout, and says for which op, over which
//   group,
//     and which ranks are missing: those that have not issued it, and where they are; those that no longer publish;
//   - ends the process soon after any other rank has failed, whatever the main thread is doing;
//   - ends the process when the store has not answered for longer than the timeout.
// Costs a string an op, two sleeping threads, and two small requests to the store every half second.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/base/error.hpp"
#include "trainer/communication/membership.hpp"
#include "trainer/communication/rank_environment.hpp"

namespace c10d {
class Store;
}

namespace wt {

/// A call that cannot end before other ranks have made theirs.
struct AwaitedCall {
  std::string what;         ///< "all_to_all over axis expert"
  std::string position;     ///< where it was issued: "mb0.L1.dispatch.fwd of step 3"
  int group = -1;           ///< of add_group(); -1: any rank may be missing
  std::int64_t number = 0;  ///< of the call in its group, from 1
};

/// A call that failed because of another rank: mostly the consequence of a failure there.
struct PeerLost : Error {
  PeerLost(AwaitedCall lost, const std::string& message) : Error(Code::runtime, message), call(std::move(lost)) {}
  AwaitedCall call;
};

class RankWatch {
 public:
  /// Connects to the rendezvous store; rank 0 hosts it where no launcher does. Throws Error{runtime} naming its
  /// address, or rank 0 where that does not come.
  RankWatch(const RankEnvironment& environment, double timeout_s);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  double timeout_s() const;
  /// How many generations of this launch came before; the same on all ranks.
  int generation() const;
  /// The store of this generation, for use by the main thread.
  c10d::Store& store() const;

  /// The membership that follows, where the ranks regroup (trainer/communication/membership.hpp). As soon as it is
  /// known and not planned, the watch has ended this process's connections to other ranks: calls under way fail, and
  /// none of this generation can be made any more.
  std::optional<Membership> next() const;
  bool broken_up() const;

  // By the main thread:
  /// The next membership, planned or not: another rank knows of it, or ranks were lost. None where the ranks do not
  /// regroup, and where nothing is decided in ten seconds.
  std::optional<Membership> wait_for_next(bool planned);
  /// A group of ranks that make calls together; `name` is the same on all of them.
  int add_group(const std::string& name, std::vector<std::int64_t> members);
  /// Where the rank is from now on. Step 0: outside of the steps.
  void at(std::int64_t step, std::string_view op);
  /// Counts a call in its group and describes it.
  AwaitedCall issue(int group, std::string what);
  /// Throws PeerLost: the call failed.
  [[noreturn]] void lose(const AwaitedCall& call, const std::string& why) const;
  /// While it lives, the main thread waits for the call.
  class Wait {
   public:
    Wait(RankWatch& watch, const AwaitedCall& call);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    RankWatch& watch_;
  };
  /// No failure of another rank matters any more.
  void finish();

  /// Prints the run's first failure, once over all ranks, and ends the process with its status.
  [[noreturn]] void end(const std::exception& failure);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Runs `body` under a watch. When it throws, the process ends: with the status of the run's first failure, which is
/// printed once.
void run_watched(const RankEnvironment& environment, double timeout_s, const std::function<void(RankWatch&)>& body);

}  // namespace wt
