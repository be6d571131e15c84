#include "sim/cost/host/host_time.hpp"

#include "sim/cost/ops/overlap.hpp"

namespace wt {

void Launches::add(const std::vector<WorkItem>& work, double times) {
  for (const WorkItem& item : work) {
    kernels += item.pass == Pass::forward ? times : 2 * times;
    if (item.kernel == Kernel::router) (item.pass == Pass::forward ? routings : routings_back) += times;
  }
}

namespace {
/// Launches of fused routing over those of PyTorch's ops: three kernels in place of 22 (mlc-ai/pith-train,
/// pithtrain/operators/ep_dispatch.py).
constexpr double kFusedRouting = 3.0 / 22;
}  // namespace

double launch_time_s(const Launches& launches, HostRouting routing, CudaGraphs graphs, const HostConstants& host) {
  if (graphs == CudaGraphs::full) return 0;
  const double routing_s = graphs == CudaGraphs::partial ? 0 : host.routing_s;
  const double launching = host.without_wait * (routing.fused ? kFusedRouting : 1),
               waiting = routing.waits ? 1 - host.without_wait : 0;
  return launches.kernels * host.item_s + launches.calls * host.call_s +
         routing_s * (launches.routings * (launching + waiting) + launches.routings_back * launching);
}

double issued_time_s(double gpu_s, double launch_s, const HostConstants& host) {
  return overlapped_s(gpu_s, launch_s, host.power);
}

}  // namespace wt
