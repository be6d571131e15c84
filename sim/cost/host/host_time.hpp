// The host's launch time: how long its Python and CUDA calls take to issue kernels and blocking collectives, and what
// becomes of the GPU's time beside it. A host far ahead costs nothing; a GPU that waits for each launch takes the
// host's time; between the two, a queue that runs empty now and then makes both longer than either. What a kernel takes
// on the GPU from its launch on is in the kernel's own time (launch_s in sim/cost/kernels).
#pragma once
#include "sim/program/work_item.hpp"

namespace wt {

/// Of a stack's host. Fitted on published steps (sim/cost/stacks/step_model.hpp).
struct HostConstants {
  double item_s = 0;  ///< to issue one kernel of a work item
  double call_s = 0;  ///< to issue one blocking collective
  double power = 1;   ///< of overlapped_s, >= 1
};

/// Kernels that an item is issued as: a backward pass is two, the gradients of rows and of weight.
double host_launches(const WorkItem& item);

/// Seconds in which the host issues this many kernels and blocking collectives.
double launch_time_s(double launches, double calls, const HostConstants& host);

/// Seconds until the GPU has done `gpu_s` of work that the host needs `launch_s` to issue.
double issued_time_s(double gpu_s, double launch_s, const HostConstants& host);

}  // namespace wt
