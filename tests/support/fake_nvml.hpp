// A driver's library that says what a test wants: tests/support/fake_nvml.cpp, built as libraries of their own.
#pragma once
#include <cstdint>

namespace wt::test {

struct FakeNvml {
  int init_code = 0;
  int device_code = 0;  ///< of every function of a device but those that find it
  const char* uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef";
  unsigned sm_clock_MHz = 1980, power_mW = 650000, temperature_C = 61, processes = 1, ecc = 1;
  unsigned long long uncorrected = 0;
  /// Clock events of one reading after the other; the last stays.
  std::uint64_t events[4] = {};
  int reading = 0;
  int started = 0;  ///< inits less shutdowns
};

}  // namespace wt::test
