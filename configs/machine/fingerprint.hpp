// The machine and software that a profile was measured on, and whether two such fingerprints are comparable. Keys are
// flat; the usual ones: host_facts() below, "device", "driver", "cuda", "nccl", "torch", "clocks_locked".
#pragma once
#include <map>
#include <string>
#include <vector>

namespace wt {

using Fingerprint = std::map<std::string, std::string>;

/// Facts of this machine: host, cpu_model, cores (usable by this process), cpu_governor, memory_GiB, kernel, compiler,
/// date (UTC, ISO 8601), and commit (with "-dirty") where the source tree is a git checkout. Facts that the system does
/// not report are left out. The caller adds the device, driver and library versions.
Fingerprint host_facts();

/// Keys that differ between runs on the same kind of machine with the same software: commit, host, date, serial
/// numbers, seeds, and every key that starts with "run.". All other keys must agree before times are compared.
bool is_run_fact(const std::string& key);

struct FingerprintDifference {
  std::string key, left, right;  ///< "" where one side lacks the key
};

/// Keys that differ or are on one side only, without run facts and `ignored`. In key order.
std::vector<FingerprintDifference> differences(const Fingerprint& left, const Fingerprint& right,
                                               const std::vector<std::string>& ignored = {});

/// "device: 'H100' and 'H200'; driver: none and '570.1'"
std::string to_string(const std::vector<FingerprintDifference>& differences);

}  // namespace wt
