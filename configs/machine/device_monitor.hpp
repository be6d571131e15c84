// Clocks, power, temperature and clock events of a device while something is timed on it. A look before and one after
// say nothing: an idle device clocks down within a second. So a thread reads all along, and a measurement is told what
// was read while its samples were taken.
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "configs/files/profile.hpp"
#include "configs/machine/nvml.hpp"

namespace wt {

/// Seconds of CLOCK_MONOTONIC.
struct TimeWindow {
  double begin_s = 0, end_s = 0;
};
double monotonic_s();

struct TimedReading {
  double at_s = 0;
  DeviceReading is;
};

class DeviceMonitor {
 public:
  /// Reads at once and then every `interval_s`; a reading takes about a millisecond of a host core, and none of the
  /// device.
  explicit DeviceMonitor(NvmlDevice device, double interval_s = 0.05);
  ~DeviceMonitor();
  /// Reads a last time and ends the thread; every reading, in order of time.
  const std::vector<TimedReading>& stop();

 private:
  void read();
  NvmlDevice device_;
  std::vector<TimedReading> readings_;  ///< the thread's alone until it has ended
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ending_ = false;
  std::thread thread_;
};

/// Adds to the measurement what was read within `windows`, and the nearest reading before and after each, as a sample
/// may fall between two: counters mean_sm_clock_MHz, min_sm_clock_MHz, mean_power_W, max_power_W, max_temperature_C and
/// power_cap_share (of the readings), and `throttled` of the faults seen. Nothing for what the device does not tell.
void add_conditions(Measurement& measurement, const std::vector<TimedReading>& readings,
                    const std::vector<TimeWindow>& windows);

/// The same of the whole run, as facts: "run.mean_sm_clock_MHz" and so on in whole numbers, and run.clock_events:
/// "none", the names (sw_power_cap among them), or "not readable".
Fingerprint conditions_of_run(const std::vector<TimedReading>& readings);

}  // namespace wt
