#include "bench/suites/device_stress.hpp"

#include <algorithm>
#include <cmath>

#include "bench/suites/device_watch.hpp"
#include "configs/base/statistics.hpp"
#include "trainer/device/device.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;

/// Repetitions before timing, until clocks and libraries have settled.
constexpr int kWarmUp = 3;

template <typename Work>
double seconds_of(StepClock& clock, Work&& work) {
  clock.begin();
  clock.mark();
  work();
  const StepClock::Mark end = clock.mark();
  wait_for_device(clock.device());
  return clock.seconds(end);
}

/// Computes x = a x repeatedly, so that a wrong bit anywhere shows in the result. Values are random, because constant
/// ones draw less power, and scaled so that products keep their magnitude.
void multiply(StepClock& clock, int repetitions, const StressSize& size, DeviceObservation& out) {
  const auto options = at::TensorOptions(clock.device()).dtype(clock.device().is_cpu() ? at::kFloat : at::kBFloat16);
  at::manual_seed(1);
  const Tensor a = at::randn({size.width, size.width}, options) / std::sqrt(static_cast<double>(size.width));
  const Tensor start = at::randn({size.width, size.width}, options);
  Tensor x = at::empty_like(a), y = at::empty_like(a), first;
  for (int i = -kWarmUp; i < repetitions; ++i) {
    x.copy_(start);
    const double seconds = seconds_of(clock, [&] {
      for (int k = 0; k < size.products; ++k) at::mm_out(y, a, x), std::swap(x, y);
    });
    if (i < 0) {
      first = x.clone();
      continue;
    }
    out.stress_s.push_back(seconds);
    out.wrong_results += at::equal(x, first) ? 0 : 1;
  }
}

void copy(StepClock& clock, int repetitions, const StressSize& size, DeviceObservation& out) {
  const auto options = at::TensorOptions(clock.device()).dtype(at::kInt);
  const Tensor from = at::randint(1 << 30, {size.copy_bytes / 4}, options);
  Tensor to = at::zeros_like(from);
  for (int i = -1; i < repetitions; ++i) {
    const double seconds = seconds_of(clock, [&] {
      for (int k = 0; k < size.copies; ++k) to.copy_(from);
    });
    if (i < 0) continue;
    out.memory_Bps.push_back(2.0 * static_cast<double>(size.copies) * static_cast<double>(from.nbytes()) / seconds);
    out.wrong_results += at::equal(to, from) ? 0 : 1;
    to.zero_();
  }
}

void add_conditions(const std::vector<TimedReading>& readings, DeviceObservation& out) {
  std::vector<double> clocks;
  std::uint64_t events = 0;
  for (const TimedReading& reading : readings) {
    if (reading.is.sm_clock_MHz) clocks.push_back(*reading.is.sm_clock_MHz);
    if (reading.is.temperature_C)
      out.temperature_C = std::max(out.temperature_C.value_or(*reading.is.temperature_C), *reading.is.temperature_C);
    events |= reading.is.clock_events.value_or(0);
  }
  if (!clocks.empty()) out.sm_clock_MHz = median(clocks);
  out.throttle = slowdowns(events);
  if (events & kSwPowerCap) out.throttle.emplace_back("sw_power_cap");
}

}  // namespace

DeviceObservation stress_device(StepClock& clock, int repetitions, const StressSize& size) {
  DeviceObservation out;
  if (!clock.device().is_cpu()) {
    Fingerprint facts = device_facts(clock.device());
    out.id = gpu_uuid(facts["gpu_uuid"]), out.model = facts["device"], out.pci_bus = facts["pci_bus_id"];
  }
  const std::unique_ptr<DeviceMonitor> monitor = watch_device(clock.device());
  multiply(clock, repetitions, size, out);
  copy(clock, repetitions, size, out);
  if (monitor) add_conditions(monitor->stop(), out);
  return out;
}

}  // namespace wt
