// The question to a simulation: one training step, as a stack runs it on a cluster, with the rows that a routing sends.
#pragma once
#include "configs/files/cluster.hpp"
#include "sim/program/routing/routing.hpp"
#include "sim/question/step_program.hpp"

namespace wt {

/// Cluster and routing must outlive the question.
struct StepQuestion {
  StepProgram program;
  const ClusterSpec& cluster;
  const RoutingSource& routing;
};

/// The question of a run file. Throws as step_program does.
inline StepQuestion step_question(const RunSpec& run, const ClusterSpec& cluster, const StackSpec& stack,
                                  const RoutingSource& routing) {
  return {step_program(run, stack, cluster.shared_cores()), cluster, routing};
}

}  // namespace wt
