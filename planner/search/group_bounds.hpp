// Lower bounds of time and memory that hold for all members of a group of layouts. They are sums over the stages, of
// values from programs with one microbatch and no pipeline. A space has few such programs.
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
  /// `problem` must outlive the object.
  explicit GroupBounds(const SearchProblem& problem) : problem_(problem) {}
  /// Bound for every member's step: the computation of its ranks.
  double step_s(const LayoutGroup& group);
  /// Sharper: with exchanges of rows, and pass by pass if there is a pipeline.
  double scheduled_s(const LayoutGroup& group);
  double scheduled_s(const Layout& member);
  /// Includes what the member itself keeps and sends: its fullest lane. 0 for a pipeline.
  double lane_s(const Layout& member);
  /// Sharper: the member's critical path. 0 if unknown.
  double path_s(const Layout& member);
  /// Bound for the kernel seconds of any rank in a step, for all layouts with the same computation: the layers' kernels
  /// on the rank with the fewest. 0 with nodes of several kinds or shared cores.
  double computing_s(const LayoutGroup& group);
  /// Bound for every member's process memory, as in StepMemory::needed().
  double memory_bytes(const LayoutGroup& group);

 private:
  struct OneMicrobatch {
    LayerSeconds seconds;
    /// By layer: bytes held from its forward to its backward pass, at p99 routing. Only set with Exchanges::left_out.
    std::vector<double> saved_bytes;
    double head_bytes = 0;               ///< made by the head while all saved bytes are held
    std::vector<LayerSeconds> of_ranks;  ///< of each rank of an expert group; only set if computing_s is needed
  };
  enum class Exchanges { left_out, counted };
  using Key = std::array<std::int64_t, 17>;  ///< what a rank's computation and exchanges depend on
  Key key_of_one(const Layout& layout, std::int64_t microbatch, Exchanges exchanges);
  const OneMicrobatch& of(const Layout& layout, std::int64_t microbatch, Exchanges exchanges);
  /// The load of the busiest rank of an expert group.
  struct BusiestRank {
    std::int64_t rank = 0;
    LayerLoads loads;
    std::vector<LayerLoads> of_ranks;  ///< of each rank in its group
  };
  /// `simple`: one microbatch of `layout`.
  const BusiestRank& busiest_of(const Layout& layout, const Layout& simple, Exchanges exchanges);
  const BusiestRank& busiest_of(const Layout& member);
  const RoutingSource& routing(const Layout& layout);
  /// Whether one rank represents all ranks, and one microbatch all microbatches.
  bool uniform(const Layout& layout) const;
  double summed_s(const Layout& layout, Exchanges exchanges);
  /// For a policy that recomputes some layers: each layer gets the values of a model that recomputes all layers like
  /// it.
  OneMicrobatch layer_by_layer(const Layout& layout, std::int64_t microbatch, Exchanges exchanges);
  /// Bytes that a rank of a stage holds throughout the step: persistent and temporary buffers.
  const LiveMemory& resident(const Layout& member, std::int64_t stage);
  /// The memory of the stage with the layout's first or last chunk, including activations of its layers.
  LiveMemory live_on(const Layout& member, std::int64_t microbatches, std::int64_t stage);
  bool counts_computing() const;
  const std::vector<std::int64_t>& chunks_of(const Layout& layout) { return chunks_.of(layout); }

  const SearchProblem& problem_;
  std::map<Key, OneMicrobatch> known_;
  std::map<std::array<std::int64_t, 8>, BusiestRank> busiest_;  ///< by the properties that loads depend on; recompute
                                                                ///< is none of them
  std::map<std::array<std::int64_t, 5>, std::unique_ptr<RoutingSource>> routings_;
  std::vector<Recompute> policies_;  ///< their index is part of the keys
  std::map<std::array<std::int64_t, 16>, LiveMemory> resident_;
  LayoutSpace space_{problem_};
  StackChunks chunks_{problem_};
};

}  // namespace wt
