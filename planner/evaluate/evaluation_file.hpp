// An evaluation file: the tasks, how lm-eval runs them, and the averages.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "planner/evaluate/gauntlet.hpp"

namespace wt {

struct HarnessSpec {
  std::vector<std::string> tasks;      ///< lm-eval's names; empty = results come from files
  std::filesystem::path include_path;  ///< folder with additional task files for lm-eval; empty = none
  std::string model = "hf";            ///< lm-eval's backend: hf or vllm
  std::string dtype = "auto";          ///< of the weights during the evaluation
  std::string device;                  ///< "" = lm-eval's choice
  std::string batch_size = "1";        ///< or "auto"
  std::optional<std::int64_t> shots;   ///< empty = each task's default
  std::optional<std::int64_t> limit;   ///< samples per task; empty = all
  double timeout_s = 24 * 3600;        ///< for all tasks together
  std::optional<GauntletSpec> gauntlet;
};

/// Throws Error{usage} for unknown keys, an empty list of tasks, and a missing folder. Paths are relative to the file.
HarnessSpec read_evaluation_file(const std::filesystem::path& file);

}  // namespace wt
