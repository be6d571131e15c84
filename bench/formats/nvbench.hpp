// Reading what NVIDIA's nvbench writes with --json or --jsonbin (files of version 1).
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
      skipped;  ///< state and reason: by the author's choice, or by an error
};

/// One measurement a state: kernel = the benchmark's name with its axes of text, types and fractions behind it
/// ("copy/T=F32"), whole-number axes are the shape, clock `device`, samples of cold runs in seconds. With --jsonbin
/// every sample is read from the files beside the JSON; with --json alone nvbench keeps the mean only, which then is
/// the one sample, and the evidence says so. Counters: cold_samples, relative_stdev, mean_sm_clock_MHz and bytes_per_s
/// where they stand there. The fingerprint takes the device. `file` is where the document came from. Throws
/// Error{usage} naming file and JSON pointer: another version, several devices, values that are no numbers, states
/// without a cold time, sample files that are missing or of another size, two states of one name, no state that ran.
NvbenchResult from_nvbench(const nlohmann::json& document, const std::filesystem::path& file);

/// Whether the document looks like nvbench's: benchmarks and devices, both lists.
bool is_nvbench(const nlohmann::json& document);

}  // namespace wt
