// The verdict of a health check: which nodes to cordon, why, with what confidence, and what to do next. Measurements
// are compared with the group, so that a uniformly slow fleet blames no node. Driver events are looked up in NVIDIA's
// catalog. From slow pairs the slow node is inferred. A training run's signals tell routing from hardware.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bench/health/links.hpp"
#include "bench/health/observation.hpp"
#include "configs/files/evidence.hpp"

namespace wt {

/// Thresholds of one kind of measurement as slowdowns over the group's median, and the usual spread of healthy members
/// (assumed; the group's own spread soon outweighs it).
struct MeasureLimits {
  double usual_spread, watch_floor, cordon_floor;
};

struct JudgeOptions {
  /// Probability that any node of a healthy fleet with normal values is cordoned: Bonferroni over all comparisons of
  /// the check. Real tails are heavier, so it is small, and the floors below apply in addition.
  double cordon_alpha = 2e-4;
  double watch_alpha = 1e-2;
  MeasureLimits compute = {0.007, 0.02, 0.03};  ///< a GPU that slows a job by 5 % must be found
  MeasureLimits memory = {0.01, 0.03, 0.05};
  MeasureLimits all_reduce = {0.03, 0.20, 0.20};  ///< only certain slow pairs are used to infer nodes
  MeasureLimits storage = {0.10, 0.30, 1.0};      ///< file systems vary; half the rate is a fault
  /// If more than this share of the nodes, and more than one node, is slow in the same measurement, a common cause is
  /// likely (power cap, cooling, a switch) and cordoning would not help: the nodes are watched.
  double common_cause_share = 0.25;
  DiagnosisOptions diagnosis;
};

/// One observation that counts against a node, or against something that several nodes share.
struct Finding {
  NodeState state = NodeState::watch;
  std::string node = {};  ///< "" = the fabric or the fleet
  /// "compute", "memory", "storage", "all-reduce", "results", "devices", "measurement", "XID 79", "ECC", "throttle",
  /// "NIC".
  std::string what = {};
  std::string reason = {};  ///< with device or rail and numbers
  std::string action = {};
  /// For statistics (derived): 1 - probability that a healthy fleet shows as much anywhere in this check. For events
  /// (assumed): see node_events.hpp.
  double confidence = 0;
  Evidence evidence = Evidence::derived;
};

struct NodeVerdict {
  std::string node;
  NodeState state = NodeState::healthy;
  std::vector<Finding> findings;  ///< the worst first; empty for a healthy node without findings
};

struct HealthVerdict {
  std::vector<NodeVerdict> nodes;  ///< cordon, watch, healthy; each by name
  std::vector<Finding> shared;     ///< rails, cables, common causes: no node's fault
  std::optional<Diagnosis> training;
  std::size_t comparisons = 0;       ///< for which probabilities are corrected
  std::vector<std::string> missing;  ///< measurements that could not be judged, and why
  std::size_t count(NodeState state) const;
  /// 1 where a node is to be cordoned or a shared finding is as severe, otherwise 0. A diagnosis alone blames no node.
  int exit_status() const;
};

/// Deterministic. Throws Error{usage} for options out of range.
HealthVerdict judge(const FleetObservation& fleet, const JudgeOptions& options = {});

}  // namespace wt
