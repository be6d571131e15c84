#include "configs/machine/device_monitor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "configs/base/lists.hpp"
#include "configs/base/statistics.hpp"

namespace wt {
namespace {

/// The readings inside the windows, and the nearest one before and after each window; in order of time, each once.
std::vector<const DeviceReading*> chosen(const std::vector<TimedReading>& readings,
                                         const std::vector<TimeWindow>& windows) {
  std::set<std::size_t> places;
  const auto first_at = [&](double at_s) {
    return static_cast<std::size_t>(std::ranges::lower_bound(readings, at_s, {}, &TimedReading::at_s) -
                                    readings.begin());
  };
  for (const TimeWindow& window : windows) {
    std::size_t begin = first_at(window.begin_s);
    begin -= begin > 0 ? 1 : 0;
    for (std::size_t i = begin; i < readings.size(); ++i) {
      places.insert(i);
      if (readings[i].at_s > window.end_s) break;  // the nearest one after the window
    }
  }
  return mapped(places, [&](std::size_t place) { return &readings[place].is; });
}

struct Conditions {
  std::map<std::string, double> counters;
  std::optional<std::uint64_t> clock_events;  ///< union over all readings
};

Conditions conditions(const std::vector<const DeviceReading*>& readings) {
  Conditions out;
  const auto values = [&](std::optional<double> DeviceReading::*member) {
    std::vector<double> found;
    for (const DeviceReading* reading : readings)
      if (reading->*member) found.push_back(*(reading->*member));
    return found;
  };
  if (const auto clock = values(&DeviceReading::sm_clock_MHz); !clock.empty()) {
    out.counters["mean_sm_clock_MHz"] = mean(clock);
    out.counters["min_sm_clock_MHz"] = *std::ranges::min_element(clock);
  }
  if (const auto power = values(&DeviceReading::power_W); !power.empty()) {
    out.counters["mean_power_W"] = mean(power);
    out.counters["max_power_W"] = *std::ranges::max_element(power);
  }
  if (const auto heat = values(&DeviceReading::temperature_C); !heat.empty())
    out.counters["max_temperature_C"] = *std::ranges::max_element(heat);
  double capped = 0, told = 0;
  for (const DeviceReading* reading : readings)
    if (reading->clock_events) {
      out.clock_events = out.clock_events.value_or(0) | *reading->clock_events;
      capped += *reading->clock_events & kSwPowerCap ? 1 : 0, ++told;
    }
  if (told > 0) out.counters["power_cap_share"] = capped / told;
  return out;
}

}  // namespace

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

DeviceMonitor::DeviceMonitor(NvmlDevice device, double interval_s) : device_(std::move(device)) {
  thread_ = std::thread([this, interval = std::chrono::duration<double>(interval_s)] {
    std::unique_lock lock(mutex_);
    do read();
    while (!ends_.wait_for(lock, interval, [this] { return ending_; }));
    read();
  });
}

DeviceMonitor::~DeviceMonitor() { stop(); }

const std::vector<TimedReading>& DeviceMonitor::stop() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    ends_.notify_one();
    thread_.join();
  }
  return readings_;
}

void DeviceMonitor::read() {
  const double at_s = monotonic_s();
  readings_.push_back({at_s, device_.read()});
}

void add_conditions(Measurement& measurement, const std::vector<TimedReading>& readings,
                    const std::vector<TimeWindow>& windows) {
  Conditions found = conditions(chosen(readings, windows));
  for (const auto& [key, value] : found.counters) measurement.counters[key] = value;
  measurement.throttled = slowdowns(found.clock_events.value_or(0));
}

Fingerprint conditions_of_run(const std::vector<TimedReading>& readings) {
  const Conditions found = conditions(mapped(readings, [](const TimedReading& reading) { return &reading.is; }));
  Fingerprint facts;
  for (const auto& [key, value] : found.counters)
    if (key != "power_cap_share") facts["run." + key] = fmt::format("{:.0f}", value);
  std::string names = found.clock_events && (*found.clock_events & kSwPowerCap) ? "sw_power_cap" : "";
  for (const std::string& name : slowdowns(found.clock_events.value_or(0))) names += (names.empty() ? "" : ", ") + name;
  facts["run.clock_events"] = !found.clock_events ? "not readable" : names.empty() ? "none" : names;
  return facts;
}

}  // namespace wt
