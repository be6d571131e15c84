// Runs lm-eval on a folder of weights, as a process. Prompts, scoring and generation are lm-eval's.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.hpp"
#include "planner/evaluate/evaluation_file.hpp"

namespace wt {

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
