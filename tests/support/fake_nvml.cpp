// Functions of NVML with their prototypes. With WT_OLD_DRIVER those that drivers before 535 do not have are left out.
#include "tests/support/fake_nvml.hpp"

#include <algorithm>
#include <cstring>

namespace {

wt::test::FakeNvml fake;
int device;

int text(char* out, unsigned size, const char* value) {
  if (fake.device_code != 0) return fake.device_code;
  std::strncpy(out, value, size - 1);
  out[size - 1] = '\0';
  return 0;
}

int number(unsigned* out, unsigned value) {
  if (fake.device_code == 0) *out = value;
  return fake.device_code;
}

int events(unsigned long long* out) {
  if (fake.device_code == 0) *out = fake.events[std::min(fake.reading++, 3)];
  return fake.device_code;
}

struct Pci {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};
struct Process {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
};

}  // namespace

extern "C" {
wt::test::FakeNvml* fake_nvml() { return &fake; }

int nvmlInit_v2() { return fake.started += fake.init_code == 0, fake.init_code; }
int nvmlShutdown() { return --fake.started, 0; }
const char* nvmlErrorString(int code) { return code == 6 ? "Not Found" : code == 15 ? "GPU is lost" : "Unknown Error"; }
int nvmlSystemGetDriverVersion(char* out, unsigned size) { return text(out, size, "580.82.07"); }
int nvmlSystemGetCudaDriverVersion_v2(int* out) { return *out = 13000, 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** out) { return *out = &device, index == 0 ? 0 : 2; }
int nvmlDeviceGetHandleByUUID(const char* uuid, void** out) {
  return *out = &device, std::strcmp(uuid, fake.uuid) == 0 ? 0 : 6;
}
int nvmlDeviceGetName(void*, char* out, unsigned size) { return text(out, size, "NVIDIA H200"); }
int nvmlDeviceGetUUID(void*, char* out, unsigned size) { return text(out, size, fake.uuid); }
int nvmlDeviceGetVbiosVersion(void*, char* out, unsigned size) { return text(out, size, "96.00.B9.00.01"); }
int nvmlDeviceGetPciInfo_v3(void*, Pci* out) {
  return out->domain = 0, out->bus = 0x19, out->device = 0, fake.device_code;
}
int nvmlDeviceGetEccMode(void*, unsigned* current, unsigned* pending) {
  return *pending = 0, number(current, fake.ecc);
}
int nvmlDeviceGetTotalEccErrors(void*, unsigned error, unsigned counter, unsigned long long* out) {
  *out = (error == 1 ? fake.uncorrected : 0) + (counter == 1 ? 7 : 0);
  return fake.device_code;
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* out) { return number(out, 700000); }
int nvmlDeviceGetPowerManagementDefaultLimit(void*, unsigned* out) { return number(out, 700000); }
int nvmlDeviceGetMaxClockInfo(void*, unsigned which, unsigned* out) { return number(out, which == 2 ? 3201 : 1980); }
int nvmlDeviceGetClockInfo(void*, unsigned which, unsigned* out) {
  return number(out, which == 2 ? 3201 : fake.sm_clock_MHz);
}
int nvmlDeviceGetTemperature(void*, unsigned, unsigned* out) { return number(out, fake.temperature_C); }
int nvmlDeviceGetPowerUsage(void*, unsigned* out) { return number(out, fake.power_mW); }
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* out) {
  return out[0] = 100, out[1] = 60, out[2] = 40, fake.device_code;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, Process* out) {
  const unsigned room = *count;
  *count = fake.processes;
  if (fake.device_code != 0) return fake.device_code;
  if (room < fake.processes) return 7;
  for (unsigned i = 0; i < fake.processes; ++i) out[i] = {i + 1, 1, 0xFFFFFFFFu, 0xFFFFFFFFu};
  return 0;
}
#ifdef WT_OLD_DRIVER
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* out) { return events(out); }
#else
int nvmlDeviceGetMigMode(void*, unsigned* current, unsigned* pending) { return *pending = 0, number(current, 0); }
int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* out) { return events(out); }
#endif
}
