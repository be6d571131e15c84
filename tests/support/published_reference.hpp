// The published measurements in the tree, read and fitted once a test program.
#pragma once
#include "sim/cost/prices.hpp"

namespace wt::test {

inline const PublishedTimes& published() { return PublishedTimes::get(); }

/// Prices of a stack on a cluster, as everyone gets them.
inline StackCost stack_cost(const ClusterSpec& cluster, const std::string& stack) {
  return {cluster, read_stack(stack), published().stack_fit().model(), published().benchmarks(), {0.9, 1.1}};
}

}  // namespace wt::test
