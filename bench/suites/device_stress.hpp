// The load of a health check on one device: chained matrix products, then copies within its memory. Devices of a model
// do equal work, so that times are comparable. Results are compared bit for bit, to detect silent corruption.
#pragma once
#include "bench/health/observation.hpp"
#include "trainer/device/step_clock.hpp"

namespace wt {

struct StressSize {
  std::int64_t width = 8192;                        ///< of square matrices, enough for all of a GPU's tensor cores
  int products = 64;                                ///< per repetition: 70 TFLOP, about 0.1 s on an H100
  std::int64_t copy_bytes = std::int64_t{1} << 30;  ///< larger than any cache
  int copies = 16;                                  ///< per repetition
};

/// Repeats both on the clock's device, in bf16 (on the CPU fp32). Fills stress_s, memory_Bps (read plus written) and
/// wrong_results; on CUDA also id, model and PCI bus, and if NVML reports them clock (median), temperature (maximum)
/// and throttling reasons during the stress.
DeviceObservation stress_device(StepClock& clock, int repetitions, const StressSize& size = {});

}  // namespace wt
