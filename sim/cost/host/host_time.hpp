// Launch time of the host: the time in which its Python and CUDA calls issue kernels and blocking collectives, and its
// effect on the step. If the host is far ahead, only the GPU's time counts. If the GPU waits for each launch, only the
// host's time counts. In between, the queue runs empty now and then, and the total is longer than either. The GPU's own
// time to start a kernel is part of the kernel's time (launch_s in sim/cost/kernels).
#pragma once
#include <vector>

#include "configs/files/layout.hpp"
#include "sim/program/work_item.hpp"

namespace wt {

/// Constants of a stack's host, fitted on published steps (sim/cost/stacks/step_constants.hpp).
struct HostConstants {
  double item_s = 0;        ///< to issue one kernel of a work item
  double call_s = 0;        ///< to issue one blocking collective
  double routing_s = 0;     ///< to route a layer's rows: many small kernels, and waiting for the number of rows
  double without_wait = 1;  ///< share of routing_s if the host does not wait (waits_for_rows)
  double power = 1;         ///< argument of overlapped_s, >= 1
};

/// Number of things that a host issues.
struct Launches {
  double kernels = 0;        ///< two for a backward item: the gradients of rows and of weight
  double routings = 0;       ///< of a layer's rows, in forward or recompute
  double routings_back = 0;  ///< the same in backward, where the numbers of rows are known
  double calls = 0;          ///< blocking collectives
  void add(const std::vector<WorkItem>& work, double times = 1);
};

/// What the host does in each routing of a layer's rows.
struct HostRouting {
  bool waits = true;   ///< for the number of arriving rows
  bool fused = false;  ///< StackSpec::fused_routing
};

/// Seconds in which the host issues these launches: 0 with full CUDA graphs, without the routing with partial graphs.
double launch_time_s(const Launches& launches, HostRouting routing, CudaGraphs graphs, const HostConstants& host);

/// Seconds until the GPU has done `gpu_s` of work that the host needs `launch_s` to issue.
double issued_time_s(double gpu_s, double launch_s, const HostConstants& host);

}  // namespace wt
