// Reads the output of NVIDIA's nvbench, --json or --jsonbin (file version 1).
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/profile.hpp"

namespace wt {

struct NvbenchResult {
  Profile profile;
  std::vector<std::pair<std::string, std::string>>
      skipped;  ///< state and reason: skipped by the benchmark's author, or after an error
};

/// One measurement per state: kernel = the benchmark's name followed by its text, type and fraction axes
/// ("copy/T=F32"); whole-number axes form the shape; clock `device`; samples are cold runs in seconds. With --jsonbin
/// every sample is read from the files next to the JSON. With --json nvbench keeps only the mean, which becomes the one
/// sample, and the evidence says so. Counters, where available: cold_samples, relative_stdev, mean_sm_clock_MHz,
/// bytes_per_s. The fingerprint gets the device. `file` is the document's path. Throws Error{usage} with file and JSON
/// pointer: another version, several devices, invalid numbers, states without a cold time, sample files that are
/// missing or have another size, two states with one name, no state that ran.
NvbenchResult from_nvbench(const nlohmann::json& document, const std::filesystem::path& file);

/// Whether the document is nvbench's: it has lists `benchmarks` and `devices`.
bool is_nvbench(const nlohmann::json& document);

}  // namespace wt
