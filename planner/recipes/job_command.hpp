// A command line that names a job's file, or a job that its framework ships, and overrides of its keys.
#pragma once
#include <optional>
#include <string>

#include "planner/recipes/recipe.hpp"
#include "planner/recipes/settings.hpp"

namespace wt {

/// Whether a text is such a command of torchtitan: ./run_train.sh or torchtitan.train.
bool is_titan_command(const std::string& text);
/// The same of NeMo Automodel: automodel, or one of its recipes with --config.
bool is_automodel_command(const std::string& text);

struct JobCommand {
  Settings flags;      ///< without those that name the job
  std::string file;    ///< the job's file; "" = none
  std::string module;  ///< torchtitan 0.3: --module and --config
  std::string config;
  std::int64_t gpus = 0;  ///< 0 = not said
};
/// Throws Error{usage} for text that is no command line, and for variables that it does not set.
JobCommand job_command(const std::string& text, const std::string& origin, const RecipeSource& source);
/// The text of a job's file, named relative to the script or to the folder in which the command runs. Throws
/// Error{usage} if it is not there.
std::string text_of_job(const JobCommand& command, const std::string& origin, const RecipeSource& source);
/// Puts the flags "section.key" over the job's settings. As tyro has them, words may have dashes for underscores, and
/// "section.no-key" is false.
void put_overrides(const JobCommand& command, Settings& job);

}  // namespace wt
