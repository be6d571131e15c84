// Runs lm-eval on a folder of weights, as a process. Prompts, scoring and generation are lm-eval's.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.hpp"
#include "planner/evaluate/gauntlet.hpp"

namespace wt {

/// An evaluation file: the tasks, how lm-eval runs them, and the averages.
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

/// The command of lm-eval: {lm_eval} from PATH, or {$WINDTUNNEL_PYTHON, -m, lm_eval}. Throws Error{usage} with the
/// command that installs it.
std::vector<std::string> lm_eval_program();

/// Its arguments. Throws Error{usage} for a folder name that its argument parser cannot handle.
std::vector<std::string> lm_eval_arguments(const HarnessSpec& spec, const std::filesystem::path& weights,
                                           const std::filesystem::path& output);

/// This process's environment without likely secrets: variables with the word KEY, TOKEN, SECRET, PASSWORD or
/// CREDENTIALS in their name, and addresses with a password, except those of proxies.
std::vector<std::string> environment_without_secrets();

/// `folder` if it has weights, else its only subfolder with weights. Throws Error{usage} if there is none, or more than
/// one.
std::filesystem::path find_weights(const std::filesystem::path& folder);

/// Runs lm-eval to its end. Writes its output to `folder`/lm_eval.log and its results to `folder`/lm_eval. Throws
/// Error{usage} if it is not installed; Error{runtime}, with the end of its output, if it fails, exceeds the time
/// limit, or leaves no results.
Evaluation run_lm_eval(const HarnessSpec& spec, const std::filesystem::path& weights,
                       const std::filesystem::path& folder);

}  // namespace wt
