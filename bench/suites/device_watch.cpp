#include "bench/suites/device_watch.hpp"

namespace wt {

std::unique_ptr<DeviceMonitor> watch_device(at::Device device) {
  if (device.is_cpu()) return nullptr;
  const Fingerprint facts = device_facts(device);
  if (facts.count("run.nvml")) return nullptr;  // the fact says why NVML failed
  auto managed = open_nvml_device(facts.at("gpu_uuid"));
  return managed ? std::make_unique<DeviceMonitor>(std::move(*managed)) : nullptr;
}

std::vector<CaseWindows::Conditions> CaseWindows::conditions() {
  std::vector<Conditions> out(windows_.size());
  if (!monitor_) return out;
  const std::vector<TimedReading>& readings = monitor_->stop();
  for (std::size_t i = 0; i < out.size(); ++i) {
    Measurement seen;
    if (!windows_[i].empty()) add_conditions(seen, readings, windows_[i]);
    out[i].throttled = std::move(seen.throttled);
    if (const auto clock = seen.counters.find("min_sm_clock_MHz"); clock != seen.counters.end())
      out[i].min_clock_MHz = clock->second;
  }
  return out;
}

}  // namespace wt
