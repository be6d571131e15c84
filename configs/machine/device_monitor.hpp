// Clocks, power, temperature and clock events of a device during a measurement. A reading before and one after would
// not do, because an idle device clocks down within a second. So a thread reads continuously, and a measurement gets
// the readings of the time of its samples.
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
  /// Reads now and then every `interval_s`. A reading takes about a millisecond of a host core and no device time.
  explicit DeviceMonitor(NvmlDevice device, double interval_s = 0.05);
  ~DeviceMonitor();
  /// Takes a last reading and ends the thread. Returns all readings in order of time.
  const std::vector<TimedReading>& stop();

 private:
  void read();
  NvmlDevice device_;
  std::vector<TimedReading> readings_;  ///< written by the thread; read after it has ended
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ending_ = false;
  std::thread thread_;
};

/// Adds the conditions of the readings inside `windows`, and of the nearest reading before and after each, because a
/// sample may fall between two: counters mean_sm_clock_MHz, min_sm_clock_MHz, mean_power_W, max_power_W,
/// max_temperature_C and power_cap_share (of the readings), and the faults seen as `throttled`. Values that the device
/// does not report are left out.
void add_conditions(Measurement& measurement, const std::vector<TimedReading>& readings,
                    const std::vector<TimeWindow>& windows);

/// The conditions of the whole run as facts: "run.mean_sm_clock_MHz" and so on in whole numbers, and run.clock_events:
/// "none", their names (including sw_power_cap), or "not readable".
Fingerprint conditions_of_run(const std::vector<TimedReading>& readings);

}  // namespace wt
