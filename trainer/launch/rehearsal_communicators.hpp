// The communicators of a rehearsal: one real rank of a planned mesh; all other ranks are faked. A faked rank holds the
// same as this rank. So sums are this rank's values times the ranks of the group. Weights gathered from others are
// drawn like initial weights. Rows from other ranks are copies of this rank's, as many as the routing says.
//
// Every call is checked against the step program: kind, axis, bytes and order of issue. Memory use is that of the
// replaced transport. With `transport_scratch` (Gloo), a gather and a reduce-scatter hold a full-size copy until they
// are waited for; NCCL works in place. Nothing is transferred, so waits take no time.
#pragma once
#include <vector>

#include "configs/files/run.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/routing/routing.hpp"
#include "trainer/communication/communicator.hpp"
#include "trainer/parameters/plausible_weights.hpp"

namespace wt {

class RehearsalCommunicators : public Communicators {
 public:
  /// `run` and `routing` must outlive this. The rank is run.rehearsal.rank.
  RehearsalCommunicators(const RunSpec& run, const RoutingSource& routing);

  /// Sets the routing's step for the next calls.
  void begin_step(std::int64_t step);
  /// Throws Error{runtime} if the step issued fewer collectives than its program has.
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
  /// The program's next collective. Throws Error{runtime} if this call is not that one.
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
  std::size_t issued_ = 0;               ///< issued so far in this step
  std::int64_t step_ = 0;
  PlausibleWeights weights_;
  IssuedCollective last_;
  std::unique_ptr<SharedStore> store_;
};

}  // namespace wt
