// The communicators of a rehearsal: one real rank of a planned mesh, every other rank faked. A faked rank holds what
// this rank holds, so sums are this rank's values times the ranks of the group; weights gathered from others are drawn
// as initial weights are; rows from other ranks are copies of this rank's, exactly as many as the routing says.
//
// Every call is checked against the step program: kind, axis, bytes, and its place in the order of issue. Memory is
// that of the transport it stands for: with `transport_scratch` (Gloo) a gather and a reduce-scatter hold a full-size
// copy until they are waited for; NCCL works in place. Nothing moves between machines, so waits take no time.
#pragma once
#include <map>
#include <vector>

#include "configs/files/run.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/routing/routing.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/parameters/plausible_weights.hpp"

namespace wt {

class RehearsalCommunicators : public Communicators {
 public:
  /// `run` and `routing` must outlive it; the rank is run.rehearsal.rank.
  RehearsalCommunicators(const RunSpec& run, const RoutingSource& routing);

  /// Which step of the routing the next calls belong to.
  void begin_step(std::int64_t step);
  /// Throws Error{runtime} when the step issued fewer collectives than its program has.
  void end_step() const;

  const IssuedCollective& last_issued() const override { return last_; }
  std::int64_t rank() const override { return rank_; }
  SharedStore& store() override { return *store_; }
  Pending all_gather(Axis axis, at::Tensor full, at::Tensor part) override;
  Pending reduce_scatter(Axis axis, at::Tensor part, at::Tensor full) override;
  Pending all_reduce(Axis axis, at::Tensor tensor) override;
  Pending all_to_all(Axis axis, at::Tensor received, at::Tensor sent, std::vector<std::int64_t> received_rows,
                     std::vector<std::int64_t> sent_rows) override;
  Pending broadcast(Axis axis, at::Tensor tensor) override;
  void barrier() override {}

 private:
  /// The program's next collective. Throws Error{runtime} when this call is another one.
  const OpInstance& next(OpKind kind, Axis axis, const at::Tensor& tensor);
  Pending done(const at::Tensor& full) const;
  /// Rows that each rank of the expert group sends to each of this rank's experts.
  void fill_counts(at::Tensor& received, const OpInstance& op) const;

  const RunSpec& run_;
  const RoutingSource& routing_;
  Mesh mesh_;
  std::int64_t rank_;
  bool transport_scratch_;
  Program program_;
  std::vector<OpInstance> collectives_;  ///< of one step, in order of issue
  std::size_t issued_ = 0;               ///< of them, in this step
  std::int64_t step_ = 0;
  PlausibleWeights weights_;
  IssuedCollective last_;
  std::unique_ptr<SharedStore> store_;
};

}  // namespace wt
