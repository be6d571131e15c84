#include "configs/machine/nvml.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <array>

#include "configs/base/error.hpp"

namespace wt {

/// The dynamically loaded library. Every function returns nvmlReturn_t, an int; handles are opaque pointers.
class NvmlLibrary {
 public:
  static constexpr int kSuccess = 0, kInsufficientSize = 7, kDriverNotLoaded = 9, kLibraryNotFound = 12,
                       kFunctionNotFound = 13;

  explicit NvmlLibrary(void* handle) : handle_(handle) {}
  ~NvmlLibrary() {
    if (started_) call("nvmlShutdown");
    dlclose(handle_);
  }
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  int start() {
    const int code = call("nvmlInit_v2");
    started_ = code == kSuccess;
    return code;
  }

  /// The arguments' types must match the prototype exactly, signedness included.
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(handle_, name));
    return function ? function(arguments...) : kFunctionNotFound;
  }

  template <class... Arguments>
  void need(const char* name, Arguments... arguments) const {
    if (const int code = call(name, arguments...); code != kSuccess) fail(name, code);
  }

  [[noreturn]] void fail(const char* name, int code) const {
    const auto text_of = reinterpret_cast<const char* (*)(int)>(dlsym(handle_, "nvmlErrorString"));
    throw_runtime("device cuda: {} of NVML failed: {} (code {}); look at nvidia-smi and the system's log", name,
                  code == kFunctionNotFound ? "no such function, the driver is too old"
                  : text_of                 ? text_of(code)
                                            : "no text",
                  code);
  }

 private:
  void* handle_;
  bool started_ = false;
};

namespace {

constexpr unsigned kTextBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE, the longest of NVML's texts
constexpr unsigned kSmClock = 1, kMemoryClock = 2, kTemperatureOfGpu = 0;

/// nvmlPciInfo_t.
struct PciInfo {
  char legacy_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};
static_assert(sizeof(PciInfo) == 68);

/// nvmlProcessInfo_v2_t, used by the functions _v2 and _v3.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

/// nvmlMemory_t.
struct Memory {
  unsigned long long total, free, used;
};

std::optional<std::size_t> process_count(const NvmlLibrary& nvml, void* device) {
  const char* name = "nvmlDeviceGetComputeRunningProcesses_v3";
  std::vector<ProcessInfo> processes(16);
  for (int attempt = 0; attempt < 3; ++attempt) {  // processes may start between the two calls
    unsigned count = static_cast<unsigned>(processes.size());
    const int code = nvml.call(name, device, &count, processes.data());
    if (code == NvmlLibrary::kSuccess) return count;
    if (code != NvmlLibrary::kInsufficientSize) return std::nullopt;
    processes.resize(count + 16);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> slowdowns(std::uint64_t clock_events) {
  std::vector<std::string> out;
  for (const auto& [bit, name] : {std::pair{kHwSlowdown, "hw_slowdown"}, std::pair{kSwThermal, "sw_thermal"},
                                  std::pair{kHwThermal, "hw_thermal"}, std::pair{kHwPowerBrake, "hw_power_brake"}})
    if (clock_events & bit) out.emplace_back(name);
  return out;
}

Fingerprint NvmlDevice::facts() const {
  Fingerprint facts;
  const auto text = [&](const char* key, const char* name, auto... of) {
    std::array<char, kTextBytes> value{};
    if (library_->call(name, of..., value.data(), kTextBytes) == NvmlLibrary::kSuccess && value[0] != '\0')
      facts[key] = value.data();
  };
  const auto number = [&](const char* key, auto divisor, const char* name, auto... of) {
    decltype(divisor) value = 0;
    if (library_->call(name, of..., &value) == NvmlLibrary::kSuccess) facts[key] = std::to_string(value / divisor);
  };
  const auto on_off = [&](const char* key, const char* name) {
    unsigned current = 0, pending = 0;
    if (library_->call(name, handle_, &current, &pending) == NvmlLibrary::kSuccess) facts[key] = current ? "on" : "off";
  };
  text("device", "nvmlDeviceGetName", handle_);
  text("gpu_uuid", "nvmlDeviceGetUUID", handle_);
  text("vbios", "nvmlDeviceGetVbiosVersion", handle_);
  text("driver", "nvmlSystemGetDriverVersion");
  int cuda = 0;
  if (library_->call("nvmlSystemGetCudaDriverVersion_v2", &cuda) == NvmlLibrary::kSuccess)
    facts["cuda_driver"] = fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10);
  PciInfo pci{};
  if (library_->call("nvmlDeviceGetPciInfo_v3", handle_, &pci) == NvmlLibrary::kSuccess)
    facts["pci_bus_id"] = fmt::format("{:04x}:{:02x}:{:02x}", pci.domain, pci.bus, pci.device);
  on_off("ecc", "nvmlDeviceGetEccMode");
  on_off("mig", "nvmlDeviceGetMigMode");
  number("power_limit_W", 1000u, "nvmlDeviceGetEnforcedPowerLimit", handle_);
  number("default_power_limit_W", 1000u, "nvmlDeviceGetPowerManagementDefaultLimit", handle_);
  number("largest_clock_MHz", 1u, "nvmlDeviceGetMaxClockInfo", handle_, kSmClock);
  number("largest_memory_clock_MHz", 1u, "nvmlDeviceGetMaxClockInfo", handle_, kMemoryClock);
  // nvmlMemoryErrorType_t: 0 corrected, 1 uncorrected. nvmlEccCounterType_t: 0 since the driver loaded, 1 ever.
  number("run.ecc_corrected_volatile", 1ull, "nvmlDeviceGetTotalEccErrors", handle_, 0u, 0u);
  number("run.ecc_uncorrected_volatile", 1ull, "nvmlDeviceGetTotalEccErrors", handle_, 1u, 0u);
  number("run.ecc_corrected_aggregate", 1ull, "nvmlDeviceGetTotalEccErrors", handle_, 0u, 1u);
  number("run.ecc_uncorrected_aggregate", 1ull, "nvmlDeviceGetTotalEccErrors", handle_, 1u, 1u);
  if (const auto count = process_count(*library_, handle_))
    facts["run.other_gpu_processes"] = std::to_string(*count > 0 ? *count - 1 : 0);
  return facts;
}

DeviceReading NvmlDevice::read() const {
  const auto number = [&](double scale, const char* name, auto... of) -> std::optional<double> {
    unsigned value = 0;
    if (library_->call(name, handle_, of..., &value) != NvmlLibrary::kSuccess) return std::nullopt;
    return scale * value;
  };
  DeviceReading now;
  now.sm_clock_MHz = number(1, "nvmlDeviceGetClockInfo", kSmClock);
  now.memory_clock_MHz = number(1, "nvmlDeviceGetClockInfo", kMemoryClock);
  now.power_W = number(1e-3, "nvmlDeviceGetPowerUsage");
  now.temperature_C = number(1, "nvmlDeviceGetTemperature", kTemperatureOfGpu);
  unsigned long long events = 0;
  // The first name exists since driver 535.
  for (const char* name : {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"})
    if (!now.clock_events && library_->call(name, handle_, &events) == NvmlLibrary::kSuccess) now.clock_events = events;
  return now;
}

double NvmlDevice::free_bytes() const {
  Memory memory{};
  library_->need("nvmlDeviceGetMemoryInfo", handle_, &memory);
  return static_cast<double>(memory.free);
}

std::string gpu_uuid(const std::string& digits, const std::string& prefix) {
  if (digits.size() != 32) return digits;
  std::string dashed = digits;
  for (const std::size_t at : {8, 13, 18, 23}) dashed.insert(at, "-");
  return prefix + dashed;
}

std::optional<NvmlDevice> open_nvml_device(const std::string& uuid, const std::string& library) {
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded) return std::nullopt;
  const auto nvml = std::make_shared<NvmlLibrary>(loaded);
  const int started = nvml->start();
  if (started == NvmlLibrary::kDriverNotLoaded || started == NvmlLibrary::kLibraryNotFound) return std::nullopt;
  if (started != NvmlLibrary::kSuccess) nvml->fail("nvmlInit_v2", started);
  void* device = nullptr;
  if (uuid.empty()) {
    nvml->need("nvmlDeviceGetHandleByIndex_v2", 0u, &device);
  } else if (uuid.find('-') != std::string::npos) {
    nvml->need("nvmlDeviceGetHandleByUUID", uuid.c_str(), &device);
  } else {
    const std::string whole = gpu_uuid(uuid), part = gpu_uuid(uuid, "MIG-");
    if (nvml->call("nvmlDeviceGetHandleByUUID", whole.c_str(), &device) != NvmlLibrary::kSuccess)
      nvml->need("nvmlDeviceGetHandleByUUID", part.c_str(), &device);
  }
  return NvmlDevice(nvml, device);
}

double free_device_memory() {
  const auto device = open_nvml_device();
  if (!device)
    throw_runtime(
        "device cuda: found no NVML (libnvidia-ml.so.1) or no loaded driver, needs NVIDIA's driver; use device cpu");
  return device->free_bytes();
}

}  // namespace wt
