// When the ops of a step begin and end: the host's clock on the CPU; events on a CUDA device, which works on long after
// the host has issued an op.
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
  /// This point on the current stream.
  virtual Mark mark() = 0;
  /// Seconds from the first mark. The device must have passed it.
  virtual double seconds(Mark mark) const = 0;
};

std::unique_ptr<StepClock> make_step_clock(at::Device device);

}  // namespace wt
