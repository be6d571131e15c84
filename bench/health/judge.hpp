// The verdict of a health check: which node to cordon, why, how sure, and what to do with it. Measurements are compared
// with the group (a slow fleet is nobody's fault); events of the driver are looked up in NVIDIA's catalog; pairs of
// nodes are solved for the guilty end; a training run's signals tell routing from hardware.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bench/health/links.hpp"
#include "bench/health/observation.hpp"
#include "configs/files/evidence.hpp"

namespace wt {

/// What one kind of measurement must show to be held against a node, as a slowdown over the group's median, and how
/// much healthy members usually differ (assumed; the group's own spread soon outweighs it).
struct MeasureLimits {
  double usual_spread, watch_floor, cordon_floor;
};

struct JudgeOptions {
  /// Chance that a healthy fleet, whose values vary normally, loses any node to a cordon: Bonferroni over all
  /// comparisons of the check. Real tails are heavier, so this is kept small; the floors do the rest.
  double cordon_alpha = 2e-4;
  double watch_alpha = 1e-2;
  MeasureLimits compute = {0.007, 0.02, 0.03};  ///< notes: one GPU that costs a job 5 % must be found
  MeasureLimits memory = {0.01, 0.03, 0.05};
  MeasureLimits all_reduce = {0.03, 0.20, 0.20};  ///< pairs are solved for what is sure alone
  MeasureLimits storage = {0.10, 0.30, 1.0};      ///< file systems vary; half the rate is a fault
  /// More than this share of the nodes, and more than one, slow in the same measurement have a cause in common (power
  /// cap, cooling, a switch), which cordoning them one by one would not mend: they are watched.
  double common_cause_share = 0.25;
  DiagnosisOptions diagnosis;
};

/// One thing held against a node, or against what several share.
struct Finding {
  NodeState state = NodeState::watch;
  std::string node = {};  ///< "" = the fabric or the fleet
  /// "compute", "memory", "storage", "all-reduce", "results", "devices", "measurement", "XID 79", "ECC", "throttle",
  /// "NIC".
  std::string what = {};
  std::string reason = {};  ///< with device or rail and numbers
  std::string action = {};
  /// Statistics (derived): 1 - the chance that a healthy fleet shows as much anywhere in this check. Events (assumed):
  /// see events.hpp.
  double confidence = 0;
  Evidence evidence = Evidence::derived;
};

struct NodeVerdict {
  std::string node;
  NodeState state = NodeState::healthy;
  std::vector<Finding> findings;  ///< the worst first; empty for a healthy node without remarks
};

struct HealthVerdict {
  std::vector<NodeVerdict> nodes;  ///< cordon, watch, healthy; by name within
  std::vector<Finding> shared;     ///< rails, cables, common causes: no node's fault
  std::optional<Diagnosis> training;
  std::size_t comparisons = 0;       ///< that the chances are corrected for
  std::vector<std::string> missing;  ///< what could not be judged, and why
  std::size_t count(NodeState state) const;
  /// 1 where a node is to be cordoned or a shared finding is as grave, else 0. A diagnosis alone is no node's fault.
  int exit_status() const;
};

/// Throws Error{usage} for options out of range. Pure: the same verdict for the same observation.
HealthVerdict judge(const FleetObservation& fleet, const JudgeOptions& options = {});

}  // namespace wt
