// Facts of an NVIDIA device, read through NVML, the driver's library. It is loaded at run time, so that the build needs
// neither CUDA nor nvml.h, and a machine without a driver simply has no facts. Functions, codes and bits are those of
// the NVML API Reference, https://docs.nvidia.com/deploy/nvml-api.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/machine/fingerprint.hpp"

namespace wt {

/// Reasons for lower clocks than the load asks for: bits of nvmlDeviceGetCurrentClocksEventReasons. The power cap is
/// normal for large matrix products. The other four are faults of cooling or power supply, and times measured under
/// them do not describe the device.
enum ClockEvent : std::uint64_t {
  kSwPowerCap = 0x4,
  kHwSlowdown = 0x8,
  kSwThermal = 0x20,
  kHwThermal = 0x40,
  kHwPowerBrake = 0x80
};

/// Names of the faults among the bits: hw_slowdown, sw_thermal, hw_thermal, hw_power_brake.
std::vector<std::string> slowdowns(std::uint64_t clock_events);

/// One reading. Values that the device does not report are empty.
struct DeviceReading {
  std::optional<double> sm_clock_MHz, memory_clock_MHz, power_W, temperature_C;
  std::optional<std::uint64_t> clock_events;
};

class NvmlLibrary;

class NvmlDevice {
 public:
  NvmlDevice(std::shared_ptr<const NvmlLibrary> library, void* handle)
      : library_(std::move(library)), handle_(handle) {}

  /// device, gpu_uuid, pci_bus_id, driver, cuda_driver (the newest CUDA that it supports), vbios, ecc and mig (on |
  /// off), power_limit_W (enforced), default_power_limit_W, largest_clock_MHz, largest_memory_clock_MHz. Current
  /// values: run.ecc_{corrected,uncorrected}_{volatile,aggregate} and run.other_gpu_processes. The latter counts the
  /// other compute processes; this process must have opened the device, and one process is always subtracted for it,
  /// because its number may differ inside a container. Facts that the device does not report are left out.
  Fingerprint facts() const;
  DeviceReading read() const;
  /// Throws Error{runtime} where the device does not report it.
  double free_bytes() const;

 private:
  std::shared_ptr<const NvmlLibrary> library_;
  void* handle_;
};

/// "GPU-604ac76c-0f4c-...", as nvidia-smi and DCGM write it, from the 32 hexadecimal digits that CUDA returns ("MIG-"
/// for a MIG instance). Other text is returned unchanged.
std::string gpu_uuid(const std::string& digits, const std::string& prefix = "GPU-");

/// `uuid`: "GPU-..." or "MIG-...", or 32 hexadecimal digits as CUDA returns them; "": the first device that nvidia-smi
/// lists. Empty without the library or a loaded driver. Throws Error{runtime} for a library that lacks the functions,
/// an unknown device, and errors of NVML.
std::optional<NvmlDevice> open_nvml_device(const std::string& uuid = "",
                                           const std::string& library = "libnvidia-ml.so.1");

/// Free bytes of the first device. Throws Error{runtime}: no driver, no device.
double free_device_memory();

}  // namespace wt
