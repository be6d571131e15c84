// The load that a health check puts on one device: chained matrix products, then copies within its memory. Equal work
// on every device of a model, so that times can be compared; results are compared bit for bit, so that silent
// corruption is seen.
#pragma once
#include "bench/health/observation.hpp"
#include "trainer/device/step_clock.hpp"

namespace wt {

struct StressSize {
  std::int64_t width = 8192;                        ///< of square matrices: all of a GPU's tensor cores are busy
  int products = 64;                                ///< of a repetition: 70 TFLOP, some 0.1 s of an H100
  std::int64_t copy_bytes = std::int64_t{1} << 30;  ///< past any cache
  int copies = 16;                                  ///< of a repetition
};

/// Repetitions of both on the clock's device: bf16, and fp32 on the CPU. stress_s, memory_Bps (read plus written) and
/// wrong_results; on CUDA also id, model and PCI bus, and where NVML tells them clock (median), temperature (highest)
/// and the reasons that held clocks down meanwhile.
DeviceObservation stress_device(StepClock& clock, int repetitions, const StressSize& size = {});

}  // namespace wt
