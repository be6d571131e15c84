// What all members of a group of layouts need at least, in time and in memory: from programs of one microbatch without
// a pipeline, of which a space has few, and sums over the stages.
#pragma once
#include <array>
#include <map>
#include <vector>

#include "planner/search/layout_space.hpp"
#include "sim/estimate/layer_seconds.hpp"

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
  /// Of a pipeline, sharper again: op by op, with what the member itself keeps and sends. 0 where it is not known.
  double path_s(const Layout& member);
  /// No member's process needs less, in the words of StepMemory::needed().
  double memory_bytes(const LayoutGroup& group);

 private:
  struct OneMicrobatch {
    LayerSeconds seconds;
    /// By layer: from its forward pass to its backward pass, at p99 routing. With exchanges left out alone.
    std::vector<double> saved_bytes;
  };
  enum class Exchanges { left_out, counted };
  using Key = std::array<std::int64_t, 11>;  ///< what a rank computes, and sends its rows with
  Key key_of_one(const Layout& layout, std::int64_t microbatch, Exchanges exchanges);
  const OneMicrobatch& of(const Layout& layout, std::int64_t microbatch, Exchanges exchanges);
  double summed_s(const Layout& layout, Exchanges exchanges);
  /// As the stack deals layers to stages.
  const std::vector<std::int64_t>& chunks_of(const Layout& layout);

  const SearchProblem& problem_;
  std::map<Key, OneMicrobatch> known_;
  std::vector<Recompute> policies_;                                          ///< by their number in keys
  std::map<std::array<std::int64_t, 3>, std::vector<std::int64_t>> chunks_;  ///< by pipeline, virtual stages, schedule
};

}  // namespace wt
