// NVML readings of a rank's device while a suite's cases are timed.
#pragma once
#include <memory>
#include <vector>

#include "configs/files/profile.hpp"
#include "configs/machine/device_monitor.hpp"
#include "trainer/device/device.hpp"

namespace wt {

/// Starts reading; null for the CPU, and where NVML is missing or fails.
std::unique_ptr<DeviceMonitor> watch_device(at::Device device);

/// The windows in which each of a suite's cases was timed.
class CaseWindows {
 public:
  CaseWindows(at::Device device, std::size_t cases) : monitor_(watch_device(device)), windows_(cases) {}
  void begin(std::size_t i) { windows_[i].push_back({monotonic_s(), monotonic_s()}); }
  void end(std::size_t i) { windows_[i].back().end_s = monotonic_s(); }
  /// Ends the reading. For each case: throttling reasons, and its lowest clock or 0 where nothing was read.
  struct Conditions {
    std::vector<std::string> throttled;
    double min_clock_MHz = 0;
  };
  std::vector<Conditions> conditions();

 private:
  std::unique_ptr<DeviceMonitor> monitor_;
  std::vector<std::vector<TimeWindow>> windows_;
};

}  // namespace wt
