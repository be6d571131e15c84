// The layouts that a search chooses from: everything that divides, that the study allows and that the stack's trainer
// runs. They come in groups whose ranks compute the same; the members of a group differ in how weights, gradients and
// optimizer state are kept and sent.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "planner/search/search_evaluate.hpp"

namespace wt {

/// Tokens of a sequence on each context rank at least, where the study names no degrees: no published run has fewer
/// (configs/measurements).
inline constexpr std::int64_t kFewestContextTokens = 4096;

/// How members exchange rows, and who launches what.
struct Exchange {
  Dispatcher dispatcher = Dispatcher::alltoall;
  bool overlap = false;  ///< beside another microbatch
  CudaGraphs graphs = CudaGraphs::none;
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

struct LayoutGroup {
  Layout layout;  ///< the member that needs the least memory
  std::int64_t microbatches = 0;
  std::int64_t members = 0;
  std::vector<Exchange> exchanges = {};  ///< of members, each once
};

class LayoutSpace {
 public:
  /// The problem must outlive it. Throws Error{usage} where the study asks for what the stack does not run.
  explicit LayoutSpace(const SearchProblem& problem);
  /// In a fixed order; each layout of the space is a member of one group. Throws Error{finding} where no layout takes a
  /// recompute that the study names.
  std::vector<LayoutGroup> groups() const;
  std::vector<Layout> members(const LayoutGroup& group) const;
  /// Those of them that may need the least memory: more ranks that share weights and states never need more, whatever
  /// the dispatcher and whoever launches.
  std::vector<Layout> narrowest(const LayoutGroup& group) const;

 private:
  /// How a member keeps and sends what all members compute with.
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
  /// Of this layout, whatever is recomputed; none where nothing keeps it.
  std::optional<LayoutGroup> group_of(Layout layout, const Microbatches& sequences) const;
  std::vector<std::int64_t> virtual_stages(std::int64_t pipeline, Schedule schedule) const;
  std::vector<std::int64_t> context_degrees(std::int64_t data) const;
  std::vector<bool> sequence_parallel(std::int64_t tensor) const;
  /// And whether tensor ranks have experts of their own.
  std::vector<std::pair<std::int64_t, bool>> expert_degrees(std::int64_t tensor) const;
  /// Of an expert degree: with the experts that every layout has, and with copies.
  std::vector<Placement> placements(std::int64_t expert, bool whole) const;
  /// Why the model, or the chunks that the stack deals it to, do not take the layout; empty = they do.
  std::string refusal(const Layout& layout) const;
  void check_recompute(const std::vector<LayoutGroup>& groups) const;
  /// Policies for all layers, and for some of them where the study names none.
  std::vector<Recompute> recompute_of(const Layout& layout) const;

  const SearchProblem& problem_;
  std::vector<Recompute> recompute_;
  mutable DealtChunks chunks_{problem_};
  mutable std::map<std::string, std::string> refused_;  ///< recompute, and the first refusal of a layout with it
};

/// Every member of every group: for small spaces, which tests search by brute force.
std::vector<Layout> all_layouts(const SearchProblem& problem);

}  // namespace wt
