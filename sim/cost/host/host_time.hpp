// The host's launch time: how long its Python and CUDA calls take to issue kernels and blocking collectives, and what
// becomes of the GPU's time beside it. A host far ahead costs nothing; a GPU that waits for each launch takes the
// host's time; between the two, a queue that runs empty now and then makes both longer than either. What a kernel takes
// on the GPU from its launch on is in the kernel's own time (launch_s in sim/cost/kernels).
#pragma once
#include <vector>

#include "configs/files/layout.hpp"
#include "sim/program/work_item.hpp"

namespace wt {

/// Of a stack's host. Fitted on published steps (sim/cost/stacks/step_constants.hpp).
struct HostConstants {
  double item_s = 0;        ///< to issue one kernel of a work item
  double call_s = 0;        ///< to issue one blocking collective
  double routing_s = 0;     ///< to route a layer's rows: many small kernels, and the wait for how many rows come
  double without_wait = 1;  ///< of routing_s where the host does not wait (waits_for_rows)
  double power = 1;         ///< of overlapped_s, >= 1
};

/// What a host issues.
struct Launches {
  double kernels = 0;   ///< a backward pass of an item is two, the gradients of rows and of weight
  double routings = 0;  ///< of a layer's rows, in one direction
  double calls = 0;     ///< blocking collectives
  void add(const std::vector<WorkItem>& work, double times = 1);
};

/// Seconds in which the host issues these: nothing but a launch where everything is in CUDA graphs, all but the routing
/// where its part is. `waits`: for how many rows come, in each routing.
double launch_time_s(const Launches& launches, bool waits, CudaGraphs graphs, const HostConstants& host);

/// Seconds until the GPU has done `gpu_s` of work that the host needs `launch_s` to issue.
double issued_time_s(double gpu_s, double launch_s, const HostConstants& host);

}  // namespace wt
