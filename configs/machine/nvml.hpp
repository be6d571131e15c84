// What an NVIDIA device says of itself through NVML, the driver's library, which is loaded when asked: neither CUDA nor
// nvml.h is needed to build this, and on a machine without a driver there are no facts and no error. Functions, codes
// and bits are those of the NVML API Reference, https://docs.nvidia.com/deploy/nvml-api.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/machine/fingerprint.hpp"

namespace wt {

/// Why clocks are lower than the load asks for: bits of nvmlDeviceGetCurrentClocksEventReasons. The power cap is normal
/// for matrix products at the limit; the other four are faults of cooling or supply, and times under them are not the
/// device's.
enum ClockEvent : std::uint64_t {
  kSwPowerCap = 0x4,
  kHwSlowdown = 0x8,
  kSwThermal = 0x20,
  kHwThermal = 0x40,
  kHwPowerBrake = 0x80
};

/// Names of the faults among the bits: hw_slowdown, sw_thermal, hw_thermal, hw_power_brake.
std::vector<std::string> slowdowns(std::uint64_t clock_events);

/// At one moment. What the device does not tell is empty.
struct DeviceReading {
  std::optional<double> sm_clock_MHz, memory_clock_MHz, power_W, temperature_C;
  std::optional<std::uint64_t> clock_events;
};

class NvmlLibrary;

class NvmlDevice {
 public:
  NvmlDevice(std::shared_ptr<const NvmlLibrary> library, void* handle)
      : library_(std::move(library)), handle_(handle) {}

  /// device, gpu_uuid, pci_bus_id, driver, cuda_driver (the newest CUDA it serves), vbios, ecc and mig (on | off),
  /// power_limit_W (enforced), default_power_limit_W, largest_clock_MHz, largest_memory_clock_MHz; and of this moment
  /// run.ecc_{corrected,uncorrected}_{volatile,aggregate} and run.other_gpu_processes: compute processes beside this
  /// one, which must have opened the device (in a container its number may be another, so one of them is taken for it).
  /// What the device does not tell is left out.
  Fingerprint facts() const;
  DeviceReading read() const;
  /// Throws Error{runtime} where the device does not tell.
  double free_bytes() const;

 private:
  std::shared_ptr<const NvmlLibrary> library_;
  void* handle_;
};

/// "GPU-604ac76c-0f4c-...", as nvidia-smi and DCGM write it, of the 32 hexadecimal digits that CUDA tells ("MIG-" for a
/// part of one); other text as it is.
std::string gpu_uuid(const std::string& digits, const std::string& prefix = "GPU-");

/// `uuid`: "GPU-..." or "MIG-...", or the 32 hexadecimal digits alone, as CUDA gives them; "": the first device that
/// nvidia-smi lists. Empty where there is no library or no loaded driver. Throws Error{runtime} for a library without
/// the functions to find a device, for a device that is not there, and where NVML itself fails.
std::optional<NvmlDevice> open_nvml_device(const std::string& uuid = "",
                                           const std::string& library = "libnvidia-ml.so.1");

/// Free bytes of the first device. Throws Error{runtime}: no driver, no device.
double free_device_memory();

}  // namespace wt
