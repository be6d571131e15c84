#include "trainer/device/device.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <limits>

#include "configs/base/error.hpp"
#include "configs/machine/cuda_libraries.hpp"
#include "configs/machine/nvml.hpp"
#include "trainer/pch.hpp"

#ifdef WT_CUDA
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime.h>
#endif

namespace wt {

#ifdef WT_CUDA
namespace {

void need(cudaError_t error, const char* call) {
  if (error != cudaSuccess)
    throw_runtime("{}: found CUDA error '{}', allowed none; look at nvidia-smi and the system's log", call,
                  cudaGetErrorString(error));
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, device) == cudaSuccess) return value;
  cudaGetLastError();  // clears the error, which the next launch would report
  return 0;
}

std::string cuda_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

at::Device open_device(const std::string& name, std::int64_t index) {
  if (name == "cpu") return at::kCPU;
  if (name != "cuda") throw_usage("device: found {}, allowed are cpu and cuda", name);
  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess || devices == 0)
    throw_runtime("device cuda: found no CUDA device ({}), needs a GPU with its driver; use device cpu",
                  error == cudaSuccess ? "none visible" : cudaGetErrorString(error));
  if (index >= devices)
    throw_runtime(
        "device cuda: found {} CUDA devices, this is rank {} of the machine, and every rank needs one of its own; "
        "start fewer ranks",
        devices, index);
  // cuBLAS reads it at start-up. Without it LibTorch refuses products in deterministic mode.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr)
    throw_runtime(
        "device cuda: LibTorch's CUDA library does not load: {}; unpack the wheels of NVIDIA libraries that torch "
        "2.11.0 names (beside torch/, into nvidia/), or set LD_LIBRARY_PATH to where they are",
        dlerror());
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(index));
  at::globalContext().lazyInitDevice(at::kCUDA);
  cudaMemPool_t pool{};  // for the kernels' scratch memory; by default each synchronisation would release it
  std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
  need(cudaDeviceGetDefaultMemPool(&pool, static_cast<int>(index)), "cudaDeviceGetDefaultMemPool");
  need(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
  return {at::kCUDA, static_cast<c10::DeviceIndex>(index)};
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
      {"cuda_driver", cuda_version(driver)},
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
  facts.merge(cuda_library_facts());
  try {
    if (const auto managed = open_nvml_device(uuid))
      for (const auto& [key, value] : managed->facts()) facts[key] = value;
  } catch (const Error& e) {  // NVML is not needed to compute
    facts["run.nvml"] = e.what();
  }
  return facts;
}

namespace {
bool lock_pages(float* values, std::size_t count) {
  if (cudaHostRegister(values, count * sizeof(float), cudaHostRegisterDefault) == cudaSuccess) return true;
  cudaGetLastError();  // clears the error, which the next launch would report
  return false;
}

void unlock_pages(float* values) { cudaHostUnregister(values); }
}  // namespace

void wait_for_device(at::Device device) {
  if (!device.is_cpu()) need(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

std::int64_t visible_devices() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

#else

at::Device open_device(const std::string& name, std::int64_t) {
  if (name == "cpu") return at::kCPU;
  if (name != "cuda") throw_usage("device: found {}, allowed are cpu and cuda", name);
  throw_runtime("device cuda: found a build without CUDA, allowed here is cpu; build with cmake --preset cuda");
}

Fingerprint device_facts(at::Device) { return {{"device", "cpu"}}; }

void wait_for_device(at::Device) {}

std::int64_t visible_devices() { return 0; }

namespace {
bool lock_pages(float*, std::size_t) { return false; }
void unlock_pages(float*) {}
}  // namespace

#endif

void fill_from_host(const at::Tensor& to, const std::function<void(float*)>& fill) {
  if (to.is_cpu()) return fill(to.data_ptr<float>());
  std::vector<float> values(static_cast<std::size_t>(to.numel()));
  fill(values.data());
  at::Tensor target = to;
  target.copy_(at::from_blob(values.data(), to.sizes(), at::kFloat));
}

HostBuffer::~HostBuffer() { release(); }

void HostBuffer::release() {
  if (locked_) unlock_pages(values_.get());
  locked_ = false, capacity_ = 0;
  values_.reset();
}

void HostBuffer::reserve(std::size_t count, at::Device device) {
  if (count <= capacity_) return;
  release();
  values_ = std::make_unique_for_overwrite<float[]>(count);
  capacity_ = count;
  locked_ = !device.is_cpu() && lock_pages(values_.get(), count);  // without it copies are only slower
}

}  // namespace wt
