// The layouts from which a search chooses: all divisions that the study allows and the stack's trainer can run. A group
// has the layouts whose ranks compute the same; these differ in how weights, gradients and optimizer state are kept and
// sent.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "planner/search/search_evaluate.hpp"

namespace wt {

/// Least tokens of a sequence on each context rank, if the study names no degrees: the least of any published run
/// (configs/measurements).
inline constexpr std::int64_t kFewestContextTokens = 4096;

/// How members of a group exchange rows and launch kernels.
struct Exchange {
  Dispatcher dispatcher = Dispatcher::alltoall;
  bool overlap = false;  ///< exchanges overlap another microbatch's computation
  CudaGraphs graphs = CudaGraphs::none;
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

struct LayoutGroup {
  Layout layout;  ///< the member with the least memory
  std::int64_t microbatches = 0;
  std::int64_t members = 0;
  std::int64_t least_shard = 1;          ///< the smallest Layout::shard of the members
  std::vector<Exchange> exchanges = {};  ///< those of the members, each once
};

class LayoutSpace {
 public:
  /// `problem` must outlive the object. Throws Error{usage} if the study asks for something the stack cannot run.
  explicit LayoutSpace(const SearchProblem& problem);
  /// In a fixed order. Each layout of the space is a member of exactly one group. Throws Error{finding} if no layout
  /// allows a recompute that the study names.
  std::vector<LayoutGroup> groups() const;
  std::vector<Layout> members(const LayoutGroup& group) const;
  /// The members that may need the least memory. Sharing weights and states among more ranks never needs more memory.
  /// Dispatcher and launches do not change it.
  std::vector<Layout> narrowest(const LayoutGroup& group) const;

 private:
  /// How a member keeps and sends weights, gradients and optimizer state.
  struct Keeping {
    std::int64_t shard, optimizer_shard;
    bool reshard, reduce_every;
    Dispatcher dispatcher;
    bool overlap;
    CudaGraphs graphs;
  };
  void keep(Layout& layout, const Keeping& keeping) const;
  void each_keeping(const Layout& computes, std::int64_t microbatches,
                    const std::function<void(const Keeping&)>& take) const;
  void add_groups(Layout layout, std::vector<LayoutGroup>& out) const;
  /// The group of this layout, for any recompute; empty if it has no members.
  std::optional<LayoutGroup> group_of(Layout layout, const Microbatches& sequences) const;
  std::vector<std::int64_t> virtual_stages(std::int64_t pipeline, Schedule schedule) const;
  std::vector<std::int64_t> context_degrees(std::int64_t data) const;
  std::vector<bool> sequence_parallel(std::int64_t tensor) const;
  /// Second: whether tensor ranks have experts of their own.
  std::vector<std::pair<std::int64_t, bool>> expert_degrees(std::int64_t tensor) const;
  /// Placements of an expert degree: the usual one and those with copies.
  std::vector<Placement> placements(std::int64_t expert, bool whole) const;
  /// Why the model, or the stack's chunks, cannot use the layout; empty = they can.
  std::string refusal(const Layout& layout) const;
  void check_recompute(const std::vector<LayoutGroup>& groups) const;
  /// Policies for all layers; if the study names none, also for some of them.
  std::vector<Recompute> recompute_of(const Layout& layout) const;

  const SearchProblem& problem_;
  std::vector<Recompute> recompute_;
  mutable StackChunks chunks_{problem_};
  mutable std::map<std::string, std::string> refused_;  ///< by recompute: the first refusal of a layout with it
};

/// Every member of every group: for tests, which search small spaces by brute force.
std::vector<Layout> all_layouts(const SearchProblem& problem);

}  // namespace wt
