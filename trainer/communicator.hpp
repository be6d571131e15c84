// Communication of one rank: a small interface over c10d process groups, one group per (mesh axis, lane), so that lanes
// overlap and every group sees its calls in issue order. Failures say rank, axis and call.
#pragma once
#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace wt {

/// Where a rank finds the others: torchrun's environment, which our own agent sets too.
struct RankEnvironment {
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::int64_t local_rank = 0;
  std::string master_address = "127.0.0.1";
  int master_port = 29500;
  bool agent_store = false;  ///< the launcher hosts the store (TORCHELASTIC_USE_AGENT_STORE)
  int restart_count = 0;

  /// True when RANK and WORLD_SIZE are set, or Slurm's or MPI's variables.
  static bool present();
  /// Throws Error{usage} on values that are not numbers.
  static RankEnvironment read();
};

/// A collective under way. wait() throws Error{runtime} naming rank, axis and call.
class PendingWork {
 public:
  virtual ~PendingWork() = default;
  virtual void wait() = 0;
  virtual bool done() = 0;
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
  virtual std::unique_ptr<SharedStore> connect_again() = 0;
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
};

/// c10d/Gloo on the mesh; every group has the given timeout, so that a lost rank ends in an error, never in a hang.
std::unique_ptr<Communicators> make_gloo_communicators(const RankEnvironment& environment, const Mesh& mesh,
                                                       std::chrono::seconds timeout);

}  // namespace wt
