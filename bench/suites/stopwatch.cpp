#include "bench/suites/stopwatch.hpp"

#include "trainer/pch.hpp"

#ifdef WT_CUDA
#include <c10/cuda/CUDAEvent.h>

#include <algorithm>
#endif

namespace wt {

#ifdef WT_CUDA
namespace {

constexpr std::int64_t kFlushed_floats = std::int64_t{64} << 20;  // 256 MiB, larger than any L2 cache so far

class CudaEvents : public Stopwatch {
 public:
  explicit CudaEvents(at::Device device)
      : buffer_(at::zeros({kFlushed_floats}, at::TensorOptions().dtype(at::kFloat).device(device))) {
    for (int i = 0; i < 3; ++i) {  // the last one counts; the first one loads libraries
      start();
      flush_caches();
      flush_s_ = stop();
    }
  }
  void start() override { begin_.record(); }
  double stop() override {
    end_.record();
    end_.synchronize();
    return 1e-3 * static_cast<double>(begin_.elapsed_time(end_));
  }
  /// Reads instead of writing, because write-backs of dirty lines would be timed with the next call.
  void flush_caches() override { buffer_.sum(); }
  void cover(double issue_s) override {
    for (double covered_s = 0; covered_s < 1.5 * issue_s; covered_s += std::max(flush_s_, 1e-5)) flush_caches();
  }

 private:
  at::Tensor buffer_;
  c10::cuda::CUDAEvent begin_{cudaEventDefault}, end_{cudaEventDefault};
  double flush_s_ = 0;
};

}  // namespace

std::unique_ptr<Stopwatch> make_stopwatch(at::Device device) {
  if (device.is_cpu()) return thread_cpu_stopwatch();
  return std::make_unique<CudaEvents>(device);
}

#else

std::unique_ptr<Stopwatch> make_stopwatch(at::Device) { return thread_cpu_stopwatch(); }

#endif

}  // namespace wt
