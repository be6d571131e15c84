// lm-eval on a folder of weights, as a process: prompts, scoring and generation are all its own.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.hpp"
#include "planner/evaluate/evaluation_file.hpp"

namespace wt {

/// How lm-eval is called here: {lm_eval} from PATH, or {$WINDTUNNEL_PYTHON, -m, lm_eval}. Throws Error{usage} with the
/// line that installs it.
std::vector<std::string> lm_eval_program();

/// What it is called with. Throws Error{usage}: a folder whose name its argument parser cannot take.
std::vector<std::string> lm_eval_arguments(const HarnessSpec& spec, const std::filesystem::path& weights,
                                           const std::filesystem::path& output);

/// This process's environment without what looks like a secret: variables with KEY, TOKEN, SECRET, PASSWORD or
/// CREDENTIALS as a word of their name, and addresses with a password in them, but for proxies.
std::vector<std::string> environment_without_secrets();

/// The folder with weights that `folder` is, or the only one that it holds. Throws Error{usage} where there is none or
/// there are several.
std::filesystem::path find_weights(const std::filesystem::path& folder);

/// Runs it to its end; its words go to `folder`/lm_eval.log, its results to `folder`/lm_eval. Throws Error{usage}: not
/// installed; Error{runtime} with the end of its words: it failed, took longer than the limit, or left no results.
Evaluation run_lm_eval(const HarnessSpec& spec, const std::filesystem::path& weights,
                       const std::filesystem::path& folder);

}  // namespace wt
