// An evaluation file: which tasks a model is scored on, how lm-eval is called for them, and what is averaged over them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "planner/evaluate/gauntlet.hpp"

namespace wt {

struct HarnessSpec {
  std::vector<std::string> tasks;      ///< lm-eval's names; empty = results are given
  std::filesystem::path include_path;  ///< folder with more of lm-eval's task files; empty = none
  std::string model = "hf";            ///< lm-eval's backend: hf or vllm
  std::string dtype = "auto";          ///< of the weights while they are scored
  std::string device;                  ///< "" = lm-eval's choice
  std::string batch_size = "1";        ///< or "auto"
  std::optional<std::int64_t> shots;   ///< none = as each task says
  std::optional<std::int64_t> limit;   ///< samples a task; none = all
  double timeout_s = 24 * 3600;        ///< of all tasks together
  std::optional<GauntletSpec> gauntlet;
};

/// Throws Error{usage}: unknown keys, an empty list of tasks, a folder that is missing. Paths are relative to the file.
HarnessSpec read_evaluation_file(const std::filesystem::path& file);

}  // namespace wt
