// Communication of one rank: a small interface over Gloo and NCCL with one group per (mesh axis, lane), so that lanes
// overlap and every group sees its calls in issue order. Errors name rank, op, axis and call.
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

/// A running collective. It keeps its inputs and outputs alive until it was waited for.
class PendingWork {
 public:
  virtual ~PendingWork() = default;
  /// Orders everything issued later after the result: on the CPU the host waits, on CUDA the current stream. Throws
  /// PeerLost when the end of another rank broke the call.
  virtual void wait() = 0;
  virtual bool done() = 0;
  /// When its lane began and finished it; none if only done() can tell.
  struct Marks {
    StepClock::Mark begin, end;
  };
  virtual std::optional<Marks> marks() const { return std::nullopt; }
};
using Pending = std::unique_ptr<PendingWork>;

/// Small values shared by all ranks through the rendezvous store, without tensor traffic.
class SharedStore {
 public:
  virtual ~SharedStore() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until the key exists.
  virtual std::string get(const std::string& key) = 0;
  virtual bool has(const std::string& key) = 0;
  /// The same values through a separate connection, so that a waiting thread does not block another one.
  virtual std::unique_ptr<SharedStore> reconnect() = 0;
};

/// A collective as it was issued; bytes as in sim/program's Collective.
struct IssuedCollective {
  OpKind kind = OpKind::host;
  Axis axis = Axis::world;
  std::int64_t bytes = 0;
};

class Communicators {
 public:
  virtual ~Communicators() = default;
  /// This rank's most recent call.
  virtual const IssuedCollective& last_issued() const = 0;
  virtual std::int64_t rank() const = 0;
  virtual SharedStore& store() = 0;
  /// Attributes the following calls to an op (an id of the step program; outside steps any word, with step 0). Errors
  /// and other ranks' reports name it.
  virtual void at(std::int64_t, std::string_view) {}

  /// `full` (n * part) receives every rank's part in order; `part` may be this rank's slice of `full`.
  virtual Pending all_gather(Axis axis, at::Tensor full, at::Tensor part) = 0;
  /// Sum over ranks; rank i gets slice i of `full` in `part`.
  virtual Pending reduce_scatter(Axis axis, at::Tensor part, at::Tensor full) = 0;
  /// Sum in place.
  virtual Pending all_reduce(Axis axis, at::Tensor tensor) = 0;
  /// Rows sent to and received from each rank of the group, along dim 0.
  virtual Pending all_to_all(Axis axis, at::Tensor received, at::Tensor sent, std::vector<std::int64_t> received_rows,
                             std::vector<std::int64_t> sent_rows) = 0;
  /// Sends coordinate 0's `tensor` to the other ranks of the axis.
  virtual Pending broadcast(Axis axis, at::Tensor tensor) = 0;
  virtual void barrier() = 0;
  /// Call before the host reads a tensor from the device. Returns when no collective blocks the device's current
  /// stream. A blocking collective is timed and named as if it were waited for. Nothing where tensors are in host
  /// memory.
  virtual void before_host_read() {}
};

/// Whether the ranks of a group compare the calls that they are about to issue, and throw Error{runtime} with op,
/// group, ranks and both calls where they differ. Costs a small gather before every collective: for debug builds.
enum class OrderCheck { off, on };
#ifdef NDEBUG
inline constexpr OrderCheck kOrderCheck = OrderCheck::off;
#else
inline constexpr OrderCheck kOrderCheck = OrderCheck::on;
#endif

/// c10d/Gloo on the mesh, for tensors in host memory. `watch`, which must outlive this, reports a call that does not
/// end in time, or whose peer is gone. `members`: the mesh covers only these ranks of the world, in this order, and
/// rank() is an index among them; empty: all. Communicators of the same members can be created only once.
std::unique_ptr<Communicators> make_gloo_communicators(const RankEnvironment& environment, const Mesh& mesh,
                                                       RankWatch& watch, OrderCheck check = kOrderCheck,
                                                       const std::vector<std::int64_t>& members = {});
/// NCCL for tensors on the clock's CUDA device, Gloo for those in host memory; for a CPU clock only Gloo. `clock` and
/// `watch` must outlive this.
std::unique_ptr<Communicators> make_communicators(const RankEnvironment& environment, const Mesh& mesh,
                                                  RankWatch& watch, StepClock& clock, OrderCheck check = kOrderCheck,
                                                  const std::vector<std::int64_t>& members = {});

}  // namespace wt
