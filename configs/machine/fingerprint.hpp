// What a profile says of the machine and software it came from, and when two of these may stand side by side.
// Keys are flat; the usual ones: host_facts() below, "device", "driver", "cuda", "nccl", "torch", "clocks_locked".
#pragma once
#include <map>
#include <string>
#include <vector>

namespace wt {

using Fingerprint = std::map<std::string, std::string>;

/// Of the machine this runs on: host, cpu_model, cores (those this process may use), cpu_governor, memory_GiB, kernel,
/// compiler, date (UTC, ISO 8601), and commit (with "-dirty") where the source tree is a git checkout. What the system
/// does not tell is left out. The caller adds the device, driver and library versions.
Fingerprint host_facts();

/// Keys that tell one run from another on the same kind of machine with the same software: commit, host, date, serial
/// numbers, seeds, and every key that starts with "run.". All others must agree before times are compared.
bool is_run_fact(const std::string& key);

struct FingerprintDifference {
  std::string key, left, right;  ///< "" where a side has no such key
};

/// Keys that differ or stand on one side only, run facts and `ignored` left out. In key order.
std::vector<FingerprintDifference> differences(const Fingerprint& left, const Fingerprint& right,
                                               const std::vector<std::string>& ignored = {});

/// "device: 'H100' and 'H200'; driver: none and '570.1'"
std::string to_string(const std::vector<FingerprintDifference>& differences);

}  // namespace wt
