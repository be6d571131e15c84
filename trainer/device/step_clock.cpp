#include "trainer/device/step_clock.hpp"

#include <vector>

#include "configs/base/clock.hpp"
#include "trainer/pch.hpp"

#ifdef WT_CUDA
#include <c10/cuda/CUDAEvent.h>

#include <deque>
#endif

namespace wt {
namespace {

class HostClock : public StepClock {
 public:
  at::Device device() const override { return at::kCPU; }
  void begin() override { marks_.clear(); }
  Mark mark() override {
    marks_.push_back(clock_s(CLOCK_MONOTONIC));
    return marks_.size() - 1;
  }
  double seconds(Mark mark) const override { return marks_.at(mark) - marks_.front(); }

 private:
  std::vector<double> marks_;
};

#ifdef WT_CUDA
/// Events are created once and recorded again in every step.
class EventClock : public StepClock {
 public:
  explicit EventClock(at::Device device) : device_(device) {}
  at::Device device() const override { return device_; }
  void begin() override { used_ = 0; }
  Mark mark() override {
    if (used_ == events_.size()) events_.emplace_back(cudaEventDefault);
    events_[used_].record();
    return used_++;
  }
  double seconds(Mark mark) const override {
    return 1e-3 * static_cast<double>(events_.front().elapsed_time(events_.at(mark)));
  }

 private:
  at::Device device_;
  std::deque<c10::cuda::CUDAEvent> events_;
  std::size_t used_ = 0;
};
#endif

}  // namespace

std::unique_ptr<StepClock> make_step_clock(at::Device device) {
#ifdef WT_CUDA
  if (!device.is_cpu()) return std::make_unique<EventClock>(device);
#endif
  TORCH_CHECK(device.is_cpu(), "no clock for ", device);
  return std::make_unique<HostClock>();
}

}  // namespace wt
