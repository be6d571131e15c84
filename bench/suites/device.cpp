#include "bench/suites/device.hpp"

#include "configs/spec/error.hpp"
#include "trainer/pch.hpp"

#ifdef WT_CUDA
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#endif

namespace wt {

#ifdef WT_CUDA
namespace {

constexpr std::int64_t kFlushed_floats = std::int64_t{64} << 20;  // 256 MiB, beyond any L2 so far

void need(cudaError_t error, const char* call) {
  if (error != cudaSuccess)
    throw_error(Code::runtime, "{}: found CUDA error '{}', allowed none; look at nvidia-smi and the system's log", call,
                cudaGetErrorString(error));
}

class Event {
 public:
  Event() { need(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record() { need(cudaEventRecord(event_, c10::cuda::getCurrentCUDAStream().stream()), "cudaEventRecord"); }
  void wait() { need(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  double seconds_since(const Event& begin) const {
    float milliseconds = 0;
    need(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaEvents : public Stopwatch {
 public:
  explicit CudaEvents(at::Device device)
      : buffer_(at::zeros({kFlushed_floats}, at::TensorOptions().dtype(at::kFloat).device(device))) {
    for (int i = 0; i < 3; ++i) {  // the last one counts: libraries load at the first
      start();
      flush_caches();
      flush_s_ = stop();
    }
  }
  void start() override { begin_.record(); }
  double stop() override {
    end_.record();
    end_.wait();
    return end_.seconds_since(begin_);
  }
  /// Reads, not writes: writing back what a flush has left dirty would fall into the time of the call.
  void flush_caches() override { buffer_.sum(); }
  void cover(double issue_s) override {
    for (double covered_s = 0; covered_s < 1.5 * issue_s; covered_s += std::max(flush_s_, 1e-5)) flush_caches();
  }

 private:
  at::Tensor buffer_;
  Event begin_, end_;
  double flush_s_ = 0;
};

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, which, device) == cudaSuccess ? value : 0;
}

std::string cuda_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

at::Device open_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  if (name != "cuda") throw_error(Code::usage, "--device: found {}, allowed are cpu and cuda", name);
  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess || devices == 0)
    throw_error(Code::runtime,
                "--device cuda: found no CUDA device ({}), needs a GPU with its driver; use --device cpu",
                error == cudaSuccess ? "none visible" : cudaGetErrorString(error));
  // Read when cuBLAS starts; without it LibTorch refuses products while deterministic algorithms are on.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr)
    throw_error(Code::runtime,
                "--device cuda: LibTorch's CUDA library does not load: {}; unpack the wheels of NVIDIA libraries that "
                "torch 2.11.0 names (beside torch/, into nvidia/), or set LD_LIBRARY_PATH to where they are",
                dlerror());
  return {at::kCUDA, 0};
}

Fingerprint device_facts(at::Device device) {
  if (device.is_cpu()) return {{"device", "cpu"}};
  const int index = device.index();
  cudaDeviceProp properties{};
  need(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0;
  need(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  need(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  std::string uuid;
  for (char byte : properties.uuid.bytes) uuid += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  Fingerprint facts{
      {"device", properties.name},
      {"driver", "CUDA " + cuda_version(driver)},
      {"cuda", cuda_version(runtime)},
      {"compute_capability", fmt::format("{}.{}", properties.major, properties.minor)},
      {"multiprocessors", std::to_string(properties.multiProcessorCount)},
      {"device_memory_GiB", fmt::format("{:.0f}", static_cast<double>(properties.totalGlobalMem) / (1 << 30))},
      {"l2_MiB", fmt::format("{:.0f}", static_cast<double>(properties.l2CacheSize) / (1 << 20))},
      {"gpu_uuid", uuid},
      {"pci_bus_id",
       fmt::format("{:04x}:{:02x}:{:02x}", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID)}};
  if (const int clock_kHz = attribute(cudaDevAttrClockRate, index); clock_kHz > 0)
    facts["largest_clock_MHz"] = std::to_string(clock_kHz / 1000);
  if (const int clock_kHz = attribute(cudaDevAttrMemoryClockRate, index); clock_kHz > 0)
    facts["largest_memory_clock_MHz"] = std::to_string(clock_kHz / 1000);
  return facts;
}

std::unique_ptr<Stopwatch> make_stopwatch(at::Device device) {
  if (device.is_cpu()) return thread_cpu_stopwatch();
  return std::make_unique<CudaEvents>(device);
}

#else

at::Device open_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  if (name != "cuda") throw_error(Code::usage, "--device: found {}, allowed are cpu and cuda", name);
  throw_error(Code::runtime,
              "--device cuda: found a build without CUDA, allowed here is cpu; build with "
              "cmake --preset cuda");
}

Fingerprint device_facts(at::Device) { return {{"device", "cpu"}}; }

std::unique_ptr<Stopwatch> make_stopwatch(at::Device) { return thread_cpu_stopwatch(); }

#endif

}  // namespace wt
