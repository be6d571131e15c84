// c10d/Gloo on the mesh, for tensors in host memory.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <utility>

#include "trainer/communication/communicator.hpp"

namespace wt {

/// What the groups of a transport are made for: one for each (axis, lane) that the step program and the checkpoints
/// use.
using GroupKey = std::pair<Axis, Lane>;
/// In the order in which every rank makes them; without axes of one rank.
std::vector<GroupKey> used_groups(const Mesh& mesh);

class GlooCommunicators : public Communicators {
 public:
  /// Collective. `watch` outlives this.
  GlooCommunicators(const RankEnvironment& environment, const Mesh& mesh, RankWatch& watch, OrderCheck check,
                    const std::vector<std::int64_t>& members);
  ~GlooCommunicators() override;

  std::int64_t rank() const override { return rank_; }
  SharedStore& store() override { return *shared_; }
  const IssuedCollective& last_issued() const override { return last_; }
  void at(std::int64_t step, std::string_view op) override { watch_.at(step, op); }

  Pending all_gather(Axis axis, at::Tensor full, at::Tensor part) override;
  Pending reduce_scatter(Axis axis, at::Tensor part, at::Tensor full) override;
  Pending all_reduce(Axis axis, at::Tensor tensor) override;
  Pending all_to_all(Axis axis, at::Tensor received, at::Tensor sent, std::vector<std::int64_t> received_rows,
                     std::vector<std::int64_t> sent_rows) override;
  Pending broadcast(Axis axis, at::Tensor tensor) override;
  void barrier() override;

 protected:
  struct Group {
    c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
    int watched = -1;  ///< index in the watch
  };
  std::string group_name(Axis axis, const std::string& use) const;
  /// This rank's group on the axis, and this rank, as ranks of the world.
  std::vector<std::int64_t> world_ranks(Axis axis) const;
  std::int64_t world_rank() const { return members_.empty() ? rank_ : members_[static_cast<std::size_t>(rank_)]; }
  /// Gathers what each rank of the group is about to issue, where the order is checked, and throws where that differs.
  /// All of it as text: the message needs both sides.
  void compare_calls(Axis axis, const AwaitedCall& call);

  std::vector<std::int64_t> members_;  ///< empty: all ranks of the world
  std::int64_t rank_;                  ///< place among them
  Mesh mesh_;
  RankWatch& watch_;
  IssuedCollective last_;

 private:
  Group make_group(Axis axis, const std::string& use);
  template <typename Call>
  Pending issue(Axis axis, Lane lane, const char* what, Call&& run, std::function<void()> after = {});

  std::unique_ptr<SharedStore> shared_;
  int unwinding_;  ///< exceptions in flight when this was made
  std::map<GroupKey, Group> groups_;
  std::map<Axis, Group> checks_;  ///< one more group an axis, where the order is checked
};

}  // namespace wt
