// Translates runs to and from the formats of other trainers. A planned layout goes to the framework that trains it, and
// an existing job becomes a run file for simulation. The same code reads and writes each key. To find out what a format
// cannot express, the written text is read back, and every difference is listed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/run.hpp"

namespace wt {

/// torchtitan 0.2.2 (TOML), Megatron-LM core_v0.16.1 (flags), Megatron-Bridge 0.3.1 (recipe and overrides), NeMo
/// Automodel 0.7.0 (YAML), LLM Foundry 0.22.0 (YAML), and our run file.
enum class RecipeFormat { torchtitan, megatron_core, megatron_bridge, automodel, llm_foundry, windtunnel };
std::string to_string(RecipeFormat format);
/// "torchtitan", "megatron-core", "megatron-bridge", "automodel", "llm-foundry", "windtunnel".
const std::vector<std::string>& recipe_format_names();
/// `where` is for the error. Throws Error{usage} with the nearest format.
RecipeFormat recipe_format_from_string(const std::string& word, const std::string& where);

struct Recipe {
  std::string text;       ///< the file; comments at its top list what it leaves out
  std::string file_name;  ///< the name used in `next_step`
  std::string version;    ///< of the format: "torchtitan 0.2.2"
  std::string next_step;  ///< a command that uses the file
  /// "KEY: ...", with keys of the format: what the run file leaves open.
  std::vector<std::string> todo;
  /// "KEY: found VALUE, ...", with keys of the run file.
  std::vector<std::string> not_expressed;
};
constexpr std::int64_t kUsualGpusPerNode = 8;
/// For nodes with that many GPUs. Throws Error{usage} if the target cannot run it at all, or if the run itself is
/// impossible.
Recipe export_run(const RunSpec& run, RecipeFormat target, std::int64_t gpus_per_node = kUsualGpusPerNode);

struct RecipeSource {
  std::optional<RecipeFormat> format;  ///< empty: recognise it from the text
  std::string model;                   ///< as for read_model, used if the text names no known model
  std::int64_t gpus = 0;               ///< used if the text does not say; 0 = not given
  std::int64_t vocab = 0;              ///< size of the vocabulary, as gpus
  std::int64_t seq_len = 0;            ///< tokens of a sequence, as gpus
  /// Of a script's environment, by name.
  std::map<std::string, std::string> variables = {};
  bool evaluate = false;  ///< run a script instead of reading it (planner/shell/evaluate.hpp); the user asked for it
  /// The text of another file that a script names, if it may be read; empty: no file is.
  std::function<std::optional<std::string>(const std::filesystem::path&)> file = {};
};
/// For RecipeSource::file: the text of a small regular file, relative to the working folder.
std::optional<std::string> file_beside(const std::filesystem::path& file);
struct ImportedRun {
  RunSpec run;
  RecipeFormat format = RecipeFormat::windtunnel;
  /// Settings that change time, memory or the model, and that the run lacks or has differently.
  std::vector<std::string> assumed;
  std::vector<std::string> learning;  ///< settings of the text that change only what is learned, and are left out
  std::vector<std::string> ignored;   ///< settings of the text that change neither, such as logging
};
/// `origin`, a file name, is for errors and the run's name. Throws Error{usage} for invalid text, unknown values, a
/// missing model or number of GPUs, and an impossible layout.
ImportedRun import_run(const std::string& text, const std::string& origin, const RecipeSource& source);

}  // namespace wt
