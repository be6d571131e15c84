// A fault trace: which entities of a cluster fail, and when, by wall clock. No recovery policy changes it, so policies
// are compared on the same events. Entities form a tree: ranks in nodes, nodes in racks and under leaf switches, all in
// the cluster. A rail (the NICs with the same number on all nodes) spans all nodes. Spare nodes are entities too.
//
// Each draw is SplitMix64 (Steele, Lea, Flood 2014) of (seed, law, entity, count). This is a counter-based generator:
// more entities or a longer horizon leave all other events unchanged. Events are generated on demand.
#pragma once
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "configs/files/cluster.hpp"
#include "configs/files/scenario.hpp"

namespace wt {

/// Sizes of the parts. 0 = the cluster file does not describe that part.
struct EntityTree {
  std::int64_t nodes = 1, spares = 0;
  std::int64_t ranks_per_node = 1, nodes_per_rack = 0, nodes_per_leaf = 0, rails = 0;
  std::int64_t replicas = 0;  ///< equal parts of the training nodes; spare nodes belong to none

  std::int64_t all_nodes() const { return nodes + spares; }
  /// Number of entities in a domain. Throws Error{usage} for a part that is not described, and for a domain without
  /// nodes.
  std::int64_t count(FaultDomain domain) const;
  /// An entity holds the nodes first to first + count - 1. A rail and the cluster hold all.
  struct Nodes {
    std::int64_t first, count;
  };
  Nodes nodes_of(FaultDomain domain, std::int64_t entity) const;
  /// Nodes of a full entity. The last rack and leaf switch may have fewer.
  std::int64_t nodes_of_whole(FaultDomain domain) const;
};
/// `spares` is in addition to the cluster's nodes, which all train.
EntityTree entity_tree(const ClusterSpec& cluster, std::int64_t spares);

/// A renewal process of faults for each entity of a domain: an entity's clock starts anew after each of its faults. All
/// clocks have run for long when the trace begins, so the first gap is a residual one. An entity with fewer nodes than
/// a full one has faults less often, in proportion.
struct FaultLaw {
  enum class Effect {
    failure,        ///< the job stops, and the nodes go to repair
    planned,        ///< the job saves and stops
    slow,           ///< its nodes compute more slowly until they recover
    slow_replaced,  ///< its nodes compute more slowly until they are detected and replaced in a stop
    silent,         ///< the job computes wrong numbers until a verification of its state finds that
    damage          ///< nothing stops; see loses_newest_save
  };
  Effect effect = Effect::failure;
  FaultDomain domain = FaultDomain::node;
  double mean_s = 0;  ///< between faults of one full entity, averaged over good and bad ones; 0 = never
  double shape = 1;   ///< of the Weibull law
  double bad_share = 0, bad_factor = 1;  ///< the share of bad entities, and their fault rate over that of the others
  static constexpr double kOnlyBadFail = 1e12;  ///< as bad_factor: only bad entities have faults
  bool periodic = false;                        ///< every mean_s exactly
  /// Of a planned stop, a slow phase or a failure's repair; 0 for a failure = the run's repair time.
  double lasts_s = 0;
  double sigma = 0;                 ///< of the logarithm of the duration; lasts_s is the mean
  double factor = 1;                ///< slow: step time over normal step time
  double detect_s = -1;             ///< of a failure; below 0 = the run's detection time
  bool nodes_to_repair = true;      ///< failure: nodes go to repair; never for the domain `rank`
  bool loses_local_copies = false;  ///< failure: local copies are lost, whatever LocalCheckpoints::survival says
  bool loses_newest_save = false;  ///< failure, damage: the newest save in storage cannot be loaded, the one before can
};

struct TraceEvent {
  std::int64_t at = 0;  ///< ns of wall time since the run began
  std::int32_t law = 0, entity = 0;
  std::uint64_t key = 0;  ///< seeds all further draws of the event (repair, survival)
};

/// A fault at a known time.
struct ScheduledFault {
  double at_s = 0;
  std::int32_t law = 0, entity = 0;
};

class FaultTrace {
 public:
  /// Throws Error{usage} for laws of parts that the tree does not describe, and for an entity number out of range.
  FaultTrace(const EntityTree& tree, const std::vector<FaultLaw>& laws, const std::vector<ScheduledFault>& scheduled,
             std::uint64_t seed);
  /// The i-th event in time order. nullptr: no more events within 70 years.
  const TraceEvent* event(std::size_t i);
  const EntityTree& tree() const { return tree_; }
  const std::vector<FaultLaw>& laws() const { return laws_; }
  std::uint64_t seed() const { return seed_; }
  const FaultLaw& law(const TraceEvent& e) const { return laws_[static_cast<std::size_t>(e.law)]; }
  EntityTree::Nodes nodes_of(const TraceEvent& e) const { return tree_.nodes_of(law(e).domain, e.entity); }

 private:
  struct Next {
    TraceEvent event;
    std::int64_t count;  ///< number of the entity's draw; kLast = a scheduled fault, which does not recur
    bool operator>(const Next& other) const {
      return std::tie(event.at, event.law, event.entity) >
             std::tie(other.event.at, other.event.law, other.event.entity);
    }
  };
  void push(std::int32_t law, std::int32_t entity, std::int64_t from, std::int64_t count);

  const EntityTree tree_;
  const std::vector<FaultLaw> laws_;
  const std::uint64_t seed_;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next_;
  std::vector<TraceEvent> made_;
};

/// What is drawn. A draw depends on the event's key and this alone.
enum class TraceDraw : std::uint64_t { gap, lasts, detect, reschedule, restart, reload, repair, survival };
/// Uniform on [0, 1).
double uniform_of(std::uint64_t key, TraceDraw draw);
/// Lognormal with this mean. `sigma` is that of the logarithm, 0 = constant.
std::int64_t lognormal_ns(double mean_s, double sigma, std::uint64_t key, TraceDraw draw);

}  // namespace wt
