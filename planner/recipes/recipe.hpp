// A run in the format of another trainer, and the other way round: the layout that a plan chose goes to the framework
// that trains it, and a job that runs already becomes a run file that can be simulated. The same code reads and writes
// a key of a format. What a format cannot say is found by reading the written text back: everything that then differs
// is named.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/run.hpp"

namespace wt {

/// torchtitan 0.2.2 (TOML), Megatron-LM core_v0.16.1 (flags), Megatron-Bridge 0.3.1 (a recipe and overrides), NeMo
/// Automodel 0.7.0 (YAML), LLM Foundry 0.22.0 (YAML), and our own run file.
enum class RecipeFormat { torchtitan, megatron_core, megatron_bridge, automodel, llm_foundry, windtunnel };
std::string to_string(RecipeFormat format);
/// "torchtitan", "megatron-core", "megatron-bridge", "automodel", "llm-foundry", "windtunnel".
const std::vector<std::string>& recipe_format_names();
/// Throws Error{usage} naming `where` and the nearest format.
RecipeFormat recipe_format_from_string(const std::string& word, const std::string& where);

struct Recipe {
  std::string text;       ///< the file; what it leaves out stands in comments at its head
  std::string file_name;  ///< that `next_step` calls it by
  std::string version;    ///< of the format: "torchtitan 0.2.2"
  std::string next_step;  ///< a command that takes it
  /// "KEY: found VALUE, ...", by the run file's keys.
  std::vector<std::string> not_expressed;
};
/// Throws Error{usage} where the target cannot run it at all, or the run is impossible itself.
Recipe export_run(const RunSpec& run, RecipeFormat target);

struct RecipeSource {
  std::optional<RecipeFormat> format;  ///< none: what the text looks like
  std::string model;                   ///< what read_model takes, where the text names no model that is known here
  std::int64_t gpus = 0;               ///< where the text does not say; 0 = not given
};
struct ImportedRun {
  RunSpec run;
  RecipeFormat format = RecipeFormat::windtunnel;
  std::vector<std::string> dropped;  ///< what the text says and no run of ours has
  std::vector<std::string> assumed;  ///< what the run says and the text does not, or says otherwise
};
/// `origin`, a file's name, is for errors and for the run's name. Throws Error{usage}: broken text, unknown values, no
/// model, no number of GPUs, an impossible layout.
ImportedRun import_run(const std::string& text, const std::string& origin, const RecipeSource& source);

}  // namespace wt
