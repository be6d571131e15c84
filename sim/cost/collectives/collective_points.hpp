// Measured times of collectives, each with the machine that it was taken on: what times (collective_estimator.hpp) are
// fitted to, and judged on. Published ones are read by sim/fit.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/collectives/collective_question.hpp"
#include "sim/cost/collectives/link_constants.hpp"

namespace wt {

/// A measured time and what it is of.
struct CollectivePoint {
  OpKind kind = OpKind::all_gather;
  double bytes = 0;
  RankGroup group;
  CollectiveMachine machine;
  bool python = false;  ///< timed from Python
  double seconds = 0;
  std::string cluster, origin;  ///< what is left out together: one cluster of a source, all of an origin
  Evidence evidence = Evidence::assumed;
  std::optional<Evidence> root = {};  ///< of what it was derived from; none = evidence
  std::string source;
  double relative_spread = 0.1;  ///< half width of the 80 % interval over the time
  std::string unusable = {};     ///< why it says nothing to anyone

  CollectiveQuestion question() const { return {kind, bytes, group, machine}; }
};

/// As the fit of a link's constants takes it.
TimedLoad timed(const CollectivePoint& point);

/// Transport of medians over the jobs of a fleet (CollectiveMachine::transport).
inline constexpr const char* kSharedTransport = "shared";

}  // namespace wt
