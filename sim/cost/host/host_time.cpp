#include "sim/cost/host/host_time.hpp"

#include "sim/cost/ops/overlap.hpp"

namespace wt {

void Launches::add(const std::vector<WorkItem>& work, double times) {
  for (const WorkItem& item : work) {
    kernels += item.pass == Pass::forward ? times : 2 * times;
    if (item.kernel == Kernel::router) routings += times;
  }
}

double launch_time_s(const Launches& launches, bool waits, CudaGraphs graphs, const HostConstants& host) {
  if (graphs == CudaGraphs::full) return 0;
  const double routing_s = graphs == CudaGraphs::partial ? 0 : host.routing_s;
  return launches.kernels * host.item_s + launches.calls * host.call_s +
         launches.routings * routing_s * (waits ? 1 : host.without_wait);
}

double issued_time_s(double gpu_s, double launch_s, const HostConstants& host) {
  return overlapped_s(gpu_s, launch_s, host.power);
}

}  // namespace wt
