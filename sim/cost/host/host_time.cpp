#include "sim/cost/host/host_time.hpp"

#include "sim/cost/overlap.hpp"

namespace wt {

double host_launches(const WorkItem& item) { return item.pass == Pass::forward ? 1 : 2; }

double launch_time_s(double launches, double calls, const HostConstants& host) {
  return launches * host.item_s + calls * host.call_s;
}

double issued_time_s(double gpu_s, double launch_s, const HostConstants& host) {
  return overlapped_s(gpu_s, launch_s, host.power);
}

}  // namespace wt
