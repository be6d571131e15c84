// What all members of a group of layouts need at least, in time and in memory: from programs of one microbatch without
// a pipeline, of which a space has few, and sums over the stages.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "planner/search/layout_space.hpp"
#include "planner/search/search_evaluate.hpp"
#include "sim/bounds/layer_seconds.hpp"

namespace wt {

class GroupBounds {
 public:
  /// The problem must outlive it.
  explicit GroupBounds(const SearchProblem& problem) : problem_(problem) {}
  /// No member's step is shorter: what its ranks compute.
  double step_s(const LayoutGroup& group);
  /// Sharper: with exchanges of rows, and pass by pass where there is a pipeline.
  double scheduled_s(const LayoutGroup& group);
  double scheduled_s(const Layout& member);
  /// With what the member itself keeps and sends: its fullest lane. 0 of a pipeline.
  double lane_s(const Layout& member);
  /// The same, sharper: its critical path. 0 where it is not known.
  double path_s(const Layout& member);
  /// Seconds of a step in which the kernels of any rank run at least, of all layouts that compute as this one: those of
  /// the layers on the rank that has the least of them. 0 where nodes are of several kinds or ranks share cores.
  double computing_s(const Layout& layout);
  /// No member's process needs less, in the words of StepMemory::needed().
  double memory_bytes(const LayoutGroup& group);

 private:
  struct OneMicrobatch {
    LayerSeconds seconds;
    /// By layer: from its forward pass to its backward pass, at p99 routing. With exchanges left out alone.
    std::vector<double> saved_bytes;
    double head_bytes = 0;               ///< that the head makes while all of these are there
    std::vector<LayerSeconds> of_ranks;  ///< of each rank of a group of experts alone; where computing_s is asked for
  };
  enum class Exchanges { left_out, counted };
  using Key = std::array<std::int64_t, 15>;  ///< what a rank computes, and sends its rows with
  Key key_of_one(const Layout& layout, std::int64_t microbatch, Exchanges exchanges);
  const OneMicrobatch& of(const Layout& layout, std::int64_t microbatch, Exchanges exchanges);
  /// What the busiest rank of a group of experts receives.
  struct BusiestRank {
    std::int64_t rank = 0;
    LayerLoads loads;
    std::vector<LayerLoads> of_ranks;  ///< of each rank of its group
  };
  /// `simple`: one microbatch of `layout`.
  const BusiestRank& busiest_of(const Layout& layout, const Layout& simple, Exchanges exchanges);
  const BusiestRank& busiest_of(const Layout& member);
  const RoutingSource& routing(const Layout& layout);
  /// One rank stands for all, and each microbatch for the others.
  bool uniform(const Layout& layout) const;
  double summed_s(const Layout& layout, Exchanges exchanges);
  /// Of a policy for some layers: each layer is as in a model where all are recomputed as it is.
  OneMicrobatch layer_by_layer(const Layout& layout, std::int64_t microbatch, Exchanges exchanges);
  /// What a rank of a stage holds all the time: kept, and what comes and goes.
  const LiveMemory& resident(const Layout& member, std::int64_t stage);
  /// Of that stage, which has the layout's first chunk or its last one: with what its layers leave behind.
  LiveMemory live_on(const Layout& member, std::int64_t microbatches, std::int64_t stage);
  bool counts_computing() const;
  const std::vector<std::int64_t>& chunks_of(const Layout& layout) { return chunks_.of(layout); }

  const SearchProblem& problem_;
  std::map<Key, OneMicrobatch> known_;
  std::map<std::array<std::int64_t, 8>, BusiestRank> busiest_;  ///< by what loads depend on: recompute is no part of it
  std::map<std::array<std::int64_t, 5>, std::unique_ptr<RoutingSource>> routings_;
  std::vector<Recompute> policies_;  ///< by their number in keys
  std::map<std::array<std::int64_t, 16>, LiveMemory> resident_;
  LayoutSpace space_{problem_};
  DealtChunks chunks_{problem_};
};

}  // namespace wt
