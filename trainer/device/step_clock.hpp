// Times of ops: by the host's clock on the CPU, by events on a CUDA device, which executes an op long after the host
// has issued it.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>

namespace wt {

class StepClock {
 public:
  using Mark = std::size_t;
  virtual ~StepClock() = default;
  virtual at::Device device() const = 0;
  /// Forgets all marks; the next one is time zero.
  virtual void begin() = 0;
  /// Records this point on the current stream.
  virtual Mark mark() = 0;
  /// Seconds since the first mark. The device must have passed the mark.
  virtual double seconds(Mark mark) const = 0;
};

std::unique_ptr<StepClock> make_step_clock(at::Device device);

}  // namespace wt
