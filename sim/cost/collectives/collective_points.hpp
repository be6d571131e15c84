// Measured times of collectives, each with its machine. The estimator (collective_estimator.hpp) is fitted to them and
// validated against them. sim/fit reads the published ones.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/collectives/collective_question.hpp"
#include "sim/cost/collectives/link_constants.hpp"

namespace wt {

/// A measured time of one collective.
struct CollectivePoint {
  OpKind kind = OpKind::all_gather;
  double bytes = 0;
  RankGroup group;
  CollectiveMachine machine;
  bool python = false;  ///< timed from Python
  double seconds = 0;
  std::string cluster, origin;  ///< left out together: one cluster of a source, all of an origin
  Evidence evidence = Evidence::assumed;
  std::optional<Evidence> root = {};  ///< evidence of what it was derived from; none = evidence
  std::string source;
  double relative_spread = 0.1;  ///< half width of the 80 % interval over the time
  std::string unusable = {};     ///< why it is not used; empty = used

  CollectiveQuestion question() const { return {kind, bytes, group, machine}; }
};

/// The point as the fit of link constants needs it.
TimedLoad timed(const CollectivePoint& point);

/// CollectiveMachine::transport of medians over the jobs of a fleet, which share its network.
inline constexpr const char* kSharedTransport = "shared";

}  // namespace wt
