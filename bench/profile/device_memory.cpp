#include "bench/profile/device_memory.hpp"

#include <dlfcn.h>

#include "configs/spec/error.hpp"

namespace wt {
namespace {

/// nvmlMemory_t of nvml.h.
struct Memory {
  unsigned long long total, free, used;
};

}  // namespace

double free_device_memory() {
  void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (!nvml) throw_error(Code::runtime, "device cuda: NVML does not load: {}; needs NVIDIA's driver", dlerror());
  const auto call = [nvml]<typename... Arguments>(const char* name, Arguments... arguments) {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(nvml, name));
    if (!function) throw_error(Code::runtime, "device cuda: NVML has no {}; needs a newer driver", name);
    if (const int error = function(arguments...); error != 0) throw_error(Code::runtime, "device cuda: {} failed with {}; look at nvidia-smi", name, error);
  };
  void* device = nullptr;
  Memory memory{};
  call("nvmlInit_v2");
  call("nvmlDeviceGetHandleByIndex_v2", 0u, &device);
  call("nvmlDeviceGetMemoryInfo", device, &memory);
  return static_cast<double>(memory.free);
}

}  // namespace wt
