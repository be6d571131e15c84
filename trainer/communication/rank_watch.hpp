// Watches one rank from separate threads, so that no run hangs and every end has a cause:
//   - publishes the rank's position in the rendezvous store: step, op, number of collectives issued in each group;
//   - ends the process when its main thread has waited longer than the timeout, and says for which op, in which group,
//     and which ranks are missing: those that have not issued the call, with their positions, and silent ones;
//   - ends the process soon after any other rank has failed, whatever the main thread is doing;
//   - ends the process when the store has not answered for longer than the timeout.
// Costs one string per op, two sleeping threads, and two small requests to the store every half second.
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

/// A call that cannot end before other ranks have made it, too.
struct AwaitedCall {
  std::string what;         ///< "all_to_all over axis expert"
  std::string position;     ///< where it was issued: "mb0.L1.dispatch.fwd of step 3"
  int group = -1;           ///< from add_group(); -1: any rank may be missing
  std::int64_t number = 0;  ///< of the call in its group, from 1
};

/// A call that failed because of another rank, usually because that rank failed first.
struct PeerLost : Error {
  PeerLost(AwaitedCall lost, const std::string& message) : Error(Code::runtime, message), call(std::move(lost)) {}
  AwaitedCall call;
};

class RankWatch {
 public:
  /// Connects to the rendezvous store; rank 0 hosts it unless a launcher does. Throws Error{runtime} with its address,
  /// or naming rank 0 if that does not arrive.
  RankWatch(const RankEnvironment& environment, double timeout_s);
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  double timeout_s() const;
  /// Number of earlier generations in this launch; the same on all ranks.
  int generation() const;
  /// The store of this generation. Only for the main thread.
  c10d::Store& store() const;

  /// The next membership, if the ranks regroup (trainer/communication/membership.hpp). If it is not planned, the watch
  /// shuts down this process's connections to other ranks as soon as it is known: running calls fail, and this
  /// generation can make no more.
  std::optional<Membership> next() const;
  bool broken_up() const;

  // Only for the main thread:
  /// Waits for the next membership, planned or not: another rank knows of it, or ranks were lost. None if the ranks do
  /// not regroup, or nothing is decided in ten seconds.
  std::optional<Membership> wait_for_next(bool planned);
  /// Adds a group of ranks that make calls together; `name` must be the same on all of them.
  int add_group(const std::string& name, std::vector<std::int64_t> members);
  /// Sets the rank's position. Step 0: outside steps.
  void at(std::int64_t step, std::string_view op);
  /// Counts a call in its group and describes it.
  AwaitedCall issue(int group, std::string what);
  /// Throws PeerLost for a failed call.
  [[noreturn]] void lose(const AwaitedCall& call, const std::string& why) const;
  /// During its lifetime the main thread waits for the call.
  class Wait {
   public:
    Wait(RankWatch& watch, const AwaitedCall& call);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    RankWatch& watch_;
  };
  /// From now on failures of other ranks are ignored.
  void finish();

  /// Prints the run's first failure, once over all ranks, and ends the process with its status.
  [[noreturn]] void end(const std::exception& failure);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Runs `body` under a watch. If it throws, the process ends with the status of the run's first failure, which is
/// printed once.
void run_watched(const RankEnvironment& environment, double timeout_s, const std::function<void(RankWatch&)>& body);

}  // namespace wt
