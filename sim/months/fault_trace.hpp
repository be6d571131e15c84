// What strikes a cluster, by wall clock and entity: a trace that no recovery policy can change, so that policies can be
// compared on the same events. Entities form a tree: ranks in nodes, nodes in racks and under leaf switches, rails
// (the NICs of one number on all nodes) beside them, all of it the cluster. Spare nodes are entities like others.
//
// Each draw is SplitMix64 (Steele, Lea, Flood 2014) of (seed, law, entity, count): a counter-based generator, so that
// more entities or another horizon leave all other events where they are. Events are made as they are asked for.
#pragma once
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "configs/files/cluster.hpp"
#include "configs/files/scenario.hpp"

namespace wt {

/// Nodes that train, and further ones; parts of size 0 are not described.
struct EntityTree {
  std::int64_t nodes = 1, spares = 0;
  std::int64_t ranks_per_node = 1, nodes_per_rack = 0, nodes_per_leaf = 0, rails = 0;
  std::int64_t replicas = 0;  ///< equal parts of the nodes that train; spare nodes are in none

  std::int64_t all_nodes() const { return nodes + spares; }
  /// How many of them there are. Throws Error{usage} for a part that is not described, and for a domain without nodes.
  std::int64_t count(FaultDomain domain) const;
  /// The nodes that one of them holds are first to first + count - 1; a rail and the cluster hold all.
  struct Nodes {
    std::int64_t first, count;
  };
  Nodes nodes_of(FaultDomain domain, std::int64_t entity) const;
  /// Nodes of an entity that is whole; the last rack and leaf switch may have fewer.
  std::int64_t nodes_of_whole(FaultDomain domain) const;
};
/// The cluster's own nodes train, `spares` stand by.
EntityTree entity_tree(const ClusterSpec& cluster, std::int64_t spares);

/// By what law the entities of a domain are struck, each by a clock of its own that starts anew when it is struck. The
/// clocks have run for long when the trace begins: of a Weibull law the first gap is what is left of one. An entity
/// with fewer nodes than a whole one is struck less often in proportion.
struct StrikeLaw {
  enum class Strikes {
    failure,  ///< the job stops; what a node is struck by takes it away for repair
    planned,  ///< the job saves and stops
    slow,     ///< its nodes compute more slowly until they recover
    found,    ///< the same until they are found and exchanged in a stop
    silent,   ///< what the job computes is wrong until that is found, where its state is verified
    damage    ///< nothing stops; see spoils_save
  };
  Strikes what = Strikes::failure;
  FaultDomain domain = FaultDomain::node;
  double mean_s = 0;  ///< between the strikes of one whole entity, of good and bad ones together; 0 = never
  double shape = 1;   ///< of the Weibull law
  double bad_share = 0, bad_factor = 1;     ///< so many entities are struck so much more often than the others
  static constexpr double kOnlyBad = 1e12;  ///< as a factor: the others never are
  bool periodic = false;                    ///< every mean_s exactly
  double lasts_s = 0;       ///< of a planned stop or a slow phase; of a failure the repair, 0 = as long as the run says
  double sigma = 0;         ///< of its logarithm; lasts_s is the mean
  double factor = 1;        ///< slow: of a step's time
  double detect_s = -1;     ///< of a failure; below 0 = as long as the run says
  bool loses_nodes = true;  ///< failure: they are away for repair; a rank's node never is
  bool takes_copies = false;  ///< failure: local copies are gone, whatever share of failures they survive else
  bool spoils_save = false;   ///< failure, damage: the newest save to storage cannot be loaded, but the one before
};

struct TraceEvent {
  std::int64_t at = 0;  ///< ns of wall time since the run began
  std::int32_t law = 0, entity = 0;
  std::uint64_t key = 0;  ///< further draws of the event (repair, survival) follow from it alone
};

/// One that strikes at a time that is known.
struct GivenStrike {
  double at_s = 0;
  std::int32_t law = 0, entity = 0;
};

class FaultTrace {
 public:
  /// Throws Error{usage} for laws of parts that the tree does not describe, and for entities that it has not.
  FaultTrace(const EntityTree& tree, const std::vector<StrikeLaw>& laws, const std::vector<GivenStrike>& given,
             std::uint64_t seed);
  /// The i-th event in the order of time; none = there are no more within 70 years.
  const TraceEvent* event(std::size_t i);
  const EntityTree& tree() const { return tree_; }
  const std::vector<StrikeLaw>& laws() const { return laws_; }
  std::uint64_t seed() const { return seed_; }
  const StrikeLaw& law(const TraceEvent& e) const { return laws_[static_cast<std::size_t>(e.law)]; }
  EntityTree::Nodes nodes_of(const TraceEvent& e) const { return tree_.nodes_of(law(e).domain, e.entity); }

 private:
  struct Next {
    TraceEvent event;
    std::int64_t count;  ///< -1 = nothing follows
    bool operator>(const Next& other) const {
      return std::tie(event.at, event.law, event.entity) >
             std::tie(other.event.at, other.event.law, other.event.entity);
    }
  };
  void push(std::int32_t law, std::int32_t entity, std::int64_t from, std::int64_t count);

  const EntityTree tree_;
  const std::vector<StrikeLaw> laws_;
  const std::uint64_t seed_;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next_;
  std::vector<TraceEvent> made_;
};

/// What is drawn of an event: each draw is of its key and this.
enum class TraceDraw : std::uint64_t { gap, lasts, detect, reschedule, restart, reload, repair, survival };
/// From [0, 1).
double uniform_of(std::uint64_t key, TraceDraw draw);
/// A time of this mean: lognormal with this sigma of its logarithm, 0 = constant.
std::int64_t lognormal_ns(double mean_s, double sigma, std::uint64_t key, TraceDraw draw);

}  // namespace wt
