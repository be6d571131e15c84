// The nodes of a run and what runs on them: nodes in use, idle ones that stand by, lost ones and when they are back. On
// one machine the nodes are virtual. Starts and stops nothing: the agent does what the fleet says.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "configs/files/run.hpp"
#include "configs/files/scenario.hpp"

namespace wt {

class Fleet {
 public:
  /// Nodes 0.. hold the ranks of `run` in order; spares have the numbers after them. Smaller worlds have `min_replicas`
  /// at least. Throws Error{usage} where the world is no whole number of nodes.
  Fleet(const RunSpec& run, const NodeShape& shape, std::int64_t min_replicas = 1);

  /// The run in the layout that it has on the nodes in use.
  const RunSpec& run() const { return run_; }
  std::int64_t world() const { return run_.layout.world(); }
  std::int64_t ranks_per_node() const { return shape_.ranks; }
  /// Nodes in use: node nodes()[g] holds ranks g * ranks_per_node() and up.
  const std::vector<std::int64_t>& nodes() const { return nodes_; }
  std::int64_t node_of(std::int64_t rank) const { return nodes_[static_cast<std::size_t>(rank / shape_.ranks)]; }
  /// Lost nodes, ascending.
  std::vector<std::int64_t> excluded() const;
  bool full() const { return world() == whole_.layout.world(); }

  /// Nodes and the time at which each is back; none = never.
  using Losses = std::map<std::int64_t, std::optional<double>>;
  /// Idle nodes take the places of the lost ones. False: there are too few, and nothing is changed.
  bool replace(const Losses& lost);
  /// The best layout on the nodes that are left. False: there is none, and nothing is changed.
  bool shrink(const Losses& lost);
  /// Replicas that have one of these ranks leave, the others keep their order, and are renumbered. Nodes of those that
  /// leave stand by, but for the lost ones. Returns the ranks that are left; none, and nothing is changed, where fewer
  /// than `min_replicas` replicas would be, where a replica is no whole number of nodes, and where replicas share one
  /// optimizer state.
  std::vector<std::int64_t> drop_replicas(const std::vector<std::int64_t>& ranks, const Losses& lost);
  /// Replicas that were dropped and are not back.
  std::int64_t missing_replicas() const { return missing_; }
  /// Missing replicas are back, behind the others, as far as nodes stand by for them. Returns how many.
  std::int64_t add_replicas();
  /// So many that were added last did not come: they are missing as before.
  void undo_added(std::int64_t replicas, const Losses& lost);
  /// For a start of all ranks: without missing replicas, in the run's own layout or the best one on the nodes that are
  /// left. False: there is none.
  bool complete();
  bool can_replace(const Losses& lost) const { return idle().size() >= lost.size(); }
  /// Nodes that are back at `now` stand by again. False: there are none.
  bool take_back(double now);
  /// Whether the nodes that stand by allow a larger world.
  bool can_grow() const { return larger().has_value(); }
  /// That world: the run's own layout once there are nodes enough for it. Needs can_grow().
  void grow();

 private:
  std::optional<RunSpec> larger() const;
  /// The first nodes that are not lost hold the ranks of `run`.
  void settle(const RunSpec& run);
  std::vector<std::int64_t> healthy() const;
  std::vector<std::int64_t> idle() const;

  RunSpec whole_, run_;
  NodeShape shape_;
  std::int64_t min_replicas_;
  std::int64_t count_;        ///< of all nodes
  std::int64_t missing_ = 0;  ///< replicas
  std::vector<std::int64_t> nodes_;
  Losses lost_;
};

}  // namespace wt
