// The nodes of a run: in use, on standby, or lost, with the time of their return. On one machine the nodes are virtual.
// The fleet only keeps account; the agent starts and stops ranks.
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
  /// Nodes 0.. hold the ranks of `run` in order. Spares have the next numbers. Smaller worlds have at least
  /// `min_replicas` replicas. Throws Error{usage} if the world does not fill whole nodes.
  Fleet(const RunSpec& run, const NodeShape& shape, std::int64_t min_replicas = 1);

  /// The run in its layout on the nodes in use.
  const RunSpec& run() const { return run_; }
  std::int64_t world() const { return run_.layout.world(); }
  std::int64_t ranks_per_node() const { return shape_.ranks; }
  /// Nodes in use: node nodes()[g] holds ranks g * ranks_per_node() and up.
  const std::vector<std::int64_t>& nodes() const { return nodes_; }
  std::int64_t node_of(std::int64_t rank) const { return nodes_[static_cast<std::size_t>(rank / shape_.ranks)]; }
  /// Lost nodes, ascending.
  std::vector<std::int64_t> excluded() const;
  bool full() const { return world() == whole_.layout.world(); }

  /// Lost nodes with the time of their return; empty = never.
  using Losses = std::map<std::int64_t, std::optional<double>>;
  /// Replaces lost nodes by standby nodes. False: there are too few; nothing changes.
  bool replace(const Losses& lost);
  /// Takes the best layout on the remaining nodes. False: there is none; nothing changes.
  bool shrink(const Losses& lost);
  /// Removes the replicas that contain these ranks. The others keep their order and are renumbered. Nodes of removed
  /// replicas go on standby, except lost ones. Returns the remaining ranks. Returns none, and changes nothing, if fewer
  /// than `min_replicas` replicas would remain, if a replica is not whole nodes, or if replicas share an optimizer
  /// state.
  std::vector<std::int64_t> drop_replicas(const std::vector<std::int64_t>& ranks, const Losses& lost);
  /// Replicas that were removed and are not back.
  std::int64_t missing_replicas() const { return missing_; }
  /// Appends missing replicas, as far as there are standby nodes for them. Returns their number.
  std::int64_t add_replicas();
  /// The last `replicas` replicas that were added did not join: they are missing again.
  void undo_added(std::int64_t replicas, const Losses& lost);
  /// Prepares a start of all ranks: no replica counts as missing, and the layout is the run's own or the best on the
  /// remaining nodes. False: there is none.
  bool complete();
  bool can_replace(const Losses& lost) const { return idle().size() >= lost.size(); }
  /// Puts nodes that are back at `now` on standby. False: there are none.
  bool take_back(double now);
  /// Whether the standby nodes allow a larger world.
  bool can_grow() const { return larger().has_value(); }
  /// Takes the larger world: the run's own layout if there are enough nodes. Needs can_grow().
  void grow();

 private:
  std::optional<RunSpec> larger() const;
  /// Assigns the ranks of `run` to the first nodes that are not lost.
  void settle(const RunSpec& run);
  std::vector<std::int64_t> healthy() const;
  std::vector<std::int64_t> idle() const;

  RunSpec whole_, run_;
  NodeShape shape_;
  std::int64_t min_replicas_;
  std::int64_t count_;        ///< of all nodes
  std::int64_t missing_ = 0;  ///< in replicas
  std::vector<std::int64_t> nodes_;
  Losses lost_;
};

}  // namespace wt
