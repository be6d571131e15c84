// Communication of one rank: a small interface over Gloo and NCCL, one group per (mesh axis, lane), so that lanes
// overlap and every group sees its calls in issue order. Failures say rank, op, axis and call.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/program/program.hpp"
#include "trainer/communication/rank_watch.hpp"
#include "trainer/device/step_clock.hpp"

namespace wt {

/// A collective under way: holds what it reads and writes until it was waited for.
class PendingWork {
 public:
  virtual ~PendingWork() = default;
  /// What is issued after this finds the result: on the CPU the host waits, on CUDA the current stream does. Throws
  /// PeerLost when another rank's end broke it.
  virtual void wait() = 0;
  virtual bool done() = 0;
  /// Where its lane began and ended it; none where only done() can tell.
  struct Marks {
    StepClock::Mark begin, end;
  };
  virtual std::optional<Marks> marks() const { return std::nullopt; }
};
using Pending = std::unique_ptr<PendingWork>;

/// Small values shared by all ranks through the rendezvous store (no tensor traffic).
class SharedStore {
 public:
  virtual ~SharedStore() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until the key is there.
  virtual std::string get(const std::string& key) = 0;
  virtual bool has(const std::string& key) = 0;
  /// The same values over a connection of its own: a thread that waits on one does not hold up the other.
  virtual std::unique_ptr<SharedStore> reconnect() = 0;
};

/// A collective as it was really issued; bytes by the convention of sim/program's Collective.
struct IssuedCollective {
  OpKind kind = OpKind::host;
  Axis axis = Axis::world;
  std::int64_t bytes = 0;
};

class Communicators {
 public:
  virtual ~Communicators() = default;
  /// The newest call of this rank.
  virtual const IssuedCollective& last_issued() const = 0;
  virtual std::int64_t rank() const = 0;
  virtual SharedStore& store() = 0;
  /// What follows belongs to this op (an id of the step program, or a word outside of the steps, with step 0): errors
  /// and other ranks' reports name it.
  virtual void at(std::int64_t, std::string_view) {}

  /// `full` (n * part) receives every rank's part in order; `part` may be this rank's slice of it.
  virtual Pending all_gather(Axis axis, at::Tensor full, at::Tensor part) = 0;
  /// Sum over ranks; rank i gets slice i of `full` in `part`.
  virtual Pending reduce_scatter(Axis axis, at::Tensor part, at::Tensor full) = 0;
  /// Sum in place.
  virtual Pending all_reduce(Axis axis, at::Tensor tensor) = 0;
  /// Rows sent to and received from each rank of the group, along dim 0.
  virtual Pending all_to_all(Axis axis, at::Tensor received, at::Tensor sent, std::vector<std::int64_t> received_rows,
                             std::vector<std::int64_t> sent_rows) = 0;
  /// `tensor` of coordinate 0 on the axis goes to the others there.
  virtual Pending broadcast(Axis axis, at::Tensor tensor) = 0;
  virtual void barrier() = 0;
  /// Before the host reads a tensor of the device: returns when no collective holds up its current stream any more. One
  /// that does is timed and named as one that is waited for. Nothing where tensors are in host memory.
  virtual void before_host_read() {}
};

/// Whether the ranks of a group compare what they are about to issue, and throw Error{runtime} naming op, group, ranks
/// and both calls where that differs. Costs a small gather before every collective: for debug builds.
enum class OrderCheck { off, on };
#ifdef NDEBUG
inline constexpr OrderCheck kOrderCheck = OrderCheck::off;
#else
inline constexpr OrderCheck kOrderCheck = OrderCheck::on;
#endif

/// c10d/Gloo on the mesh: tensors in host memory. A call that does not end in time, or whose peer is gone, is told by
/// `watch`, which outlives this. `members`: the mesh is over these ranks of the world alone, in this order, and rank()
/// is a place among them; empty: over all. The same members can be made communicators of once.
std::unique_ptr<Communicators> make_gloo_communicators(const RankEnvironment& environment, const Mesh& mesh,
                                                       RankWatch& watch, OrderCheck check = kOrderCheck,
                                                       const std::vector<std::int64_t>& members = {});
/// NCCL for tensors on the clock's CUDA device, Gloo for those in host memory; for a CPU clock Gloo alone. `clock` and
/// `watch` outlive this.
std::unique_ptr<Communicators> make_communicators(const RankEnvironment& environment, const Mesh& mesh,
                                                  RankWatch& watch, StepClock& clock, OrderCheck check = kOrderCheck,
                                                  const std::vector<std::int64_t>& members = {});

}  // namespace wt
