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

/// Identifies a transport's group: one for each (axis, lane) that the step program and the checkpoints use.
using GroupKey = std::pair<Axis, Lane>;
/// In the order in which every rank creates them; without axes of one rank.
std::vector<GroupKey> used_groups(const Mesh& mesh);

class GlooCommunicators : public Communicators {
 public:
  /// Collective. `watch` must outlive this.
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
    int watched = -1;  ///< the watch's group number
  };
  std::string group_name(Axis axis, const std::string& use) const;
  /// The ranks of the world in this rank's group on the axis, and this rank's own number in the world.
  std::vector<std::int64_t> world_ranks(Axis axis) const;
  std::int64_t world_rank() const { return members_.empty() ? rank_ : members_[static_cast<std::size_t>(rank_)]; }
  /// If the order is checked: gathers the calls that the group's ranks are about to issue, and throws if they differ.
  /// Calls are compared as text, because the message shows both sides.
  void compare_calls(Axis axis, const AwaitedCall& call);

  std::vector<std::int64_t> members_;  ///< empty: all ranks of the world
  std::int64_t rank_;                  ///< index among the members
  Mesh mesh_;
  RankWatch& watch_;
  IssuedCollective last_;

 private:
  Group make_group(Axis axis, const std::string& use);
  template <typename Call>
  Pending issue(Axis axis, Lane lane, const char* what, Call&& run, std::function<void()> after = {});

  std::unique_ptr<SharedStore> shared_;
  int unwinding_;  ///< number of uncaught exceptions at construction
  std::map<GroupKey, Group> groups_;
  std::map<Axis, Group> checks_;  ///< an additional group per axis, if the order is checked
};

}  // namespace wt
