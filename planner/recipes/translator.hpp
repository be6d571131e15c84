// The parts of every format: writing a run with its keys, and reading them. recipe.cpp does the rest.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "configs/files/run.hpp"
#include "planner/recipes/recipe.hpp"
#include "planner/recipes/settings.hpp"

namespace wt {

/// A run that is being written.
struct RecipeDraft {
  const RunSpec& run;
  std::int64_t gpus_per_node = kUsualGpusPerNode;
  Settings out = {};
  std::string command = {};     ///< what every node runs; flags follow it in formats that are command lines
  std::int64_t gpu_queues = 0;  ///< CUDA_DEVICE_MAX_CONNECTIONS; 0 = CUDA's own number
  std::string next_step = {};   ///< Recipe::next_step
  bool names_no_model = false;  ///< the reader must be told the model
  bool names_data = false;      ///< the file has the run's data
  std::map<std::string, std::string> why = {};  ///< by the run file's key: why the format cannot express it
  std::vector<std::string> not_expressed = {};  ///< losses that reading back cannot detect
};

/// A run that is being read. `run` starts with the defaults of a run on GPUs.
struct RecipeReading {
  Settings& in;
  RunSpec run;
  std::optional<ModelSpec> model;                                      ///< from the caller; overrides that of the text
  std::int64_t gpus = 0;                                               ///< from the caller; 0 = not given
  std::int64_t vocab = 0, seq_len = 0;                                 ///< the same
  std::vector<std::string> assumed = {}, learning = {}, ignored = {};  ///< as in ImportedRun

  /// Sets run.model to the caller's model, or to the format's known model. Throws Error{usage} naming `key`.
  void set_model(const std::string& preset, const std::string& key, const std::string& found);
  /// World size: that of the text (0 = none), checked against the caller's. Throws Error{usage}.
  std::int64_t world(std::int64_t said, const std::string& key) const;
  /// Data ranks: world / `others`. Throws Error{usage} if that is not a whole number.
  std::int64_t data_ranks(std::int64_t world, std::int64_t others, const std::string& key) const;
  /// assume("{}: found {}, taken as {}", key, found, taken)
  template <typename... Args>
  void assume(fmt::format_string<Args...> format, Args&&... args) {
    assumed.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
};

struct RecipeTranslator {
  const char* version;  ///< of the package that defines the keys
  const char* file_name;
  bool shell;  ///< a command line that starts with RecipeDraft::command
  /// Throws Error{usage} for runs that the framework cannot run at all. Other differences are found by reading back.
  void (*write)(RecipeDraft&);
  void (*read)(RecipeReading&);
  std::string (*print)(const Settings&);  ///< nullptr for a command line
  Settings (*parse)(const std::string& text, const std::string& origin, const RecipeSource& source);
  // Its keys for what a run file may leave open.
  const char* lr;
  const char* warmup;
  const char* data;
  const char* words = nullptr;  ///< its file in configs/words; nullptr: `read` judges every key itself
};
extern const RecipeTranslator kTorchtitan, kMegatronCore, kMegatronBridge, kAutomodel, kLlmFoundry;

/// A key for one number or flag of a run, for writing and reading.
struct RecipeRow {
  /// Batches. Only LLM Foundry counts parts of them; here they are whole numbers.
  struct Steps {
    double* (*field)(RunSpec&);
  };
  using Field = std::variant<std::int64_t* (*)(RunSpec&), std::uint64_t* (*)(RunSpec&), double* (*)(RunSpec&),
                             bool* (*)(RunSpec&), Steps>;
  std::string key;
  Field field;
  std::int64_t least = 0;  ///< minimum of whole numbers
};
void write_rows(const std::vector<RecipeRow>& rows, RecipeDraft& draft);
/// A key without a value changes nothing.
void read_rows(const std::vector<RecipeRow>& rows, RecipeReading& reading);

/// A setting that run files have no key for, although the time or memory of a step depends on it. Simulations always
/// take it as `simulated`.
struct RecipeSwitch {
  std::string key;
  Settings::Value simulated;
  Settings::Value otherwise;                  ///< what a file without the key means
  const char* what;                           ///< what a simulation has it mean
  bool (*applies)(const RunSpec&) = nullptr;  ///< nullptr: to every run
};
void write_switches(const std::vector<RecipeSwitch>& switches, RecipeDraft& draft);
/// Lists every other value as an assumption. Needs the run.
void read_switches(const std::vector<RecipeSwitch>& switches, RecipeReading& reading);

/// Words of a format with their meanings. The first word of a meaning is written.
template <typename Meaning>
using RecipeWords = std::vector<std::pair<std::string, Meaning>>;
template <typename Meaning>
std::string word_of(const RecipeWords<Meaning>& words, const Meaning& meaning, const std::string& otherwise) {
  for (const auto& [word, means] : words)
    if (means == meaning) return word;
  return otherwise;
}
template <typename Meaning>
std::optional<Meaning> meaning_of(const RecipeWords<Meaning>& words, const std::string& word) {
  for (const auto& [known, means] : words)
    if (known == word) return means;
  return std::nullopt;
}

/// Sets the formats of a `precision` in a run file, such as amp_bf16. Fields that a recipe leaves out keep these.
void set_precision(RunSpec& run, const std::string& recipe);
/// The `precision` nearest to the run's formats.
std::string precision_word(const RunSpec& run);
/// The largest microbatch, at most the run's, that divides a rank's sequences: other frameworks have no smaller last
/// one.
std::int64_t even_microbatch(const RunSpec& run);
/// A policy that recomputes these modules in every block.
Recompute recompute_of(const std::vector<Module>& modules);
/// The modules in a policy's rules, for any blocks.
std::vector<Module> modules_of(const Recompute& recompute);
/// Rounded to twelve digits, because products and quotients lose the last ones: 0.0002 for 0.002 * 0.1.
double twelve_digits(double value);
/// smaller / larger to twelve digits; 0 if larger is 0.
double recipe_ratio(double smaller, double larger);

/// Sets the layers of chunks; leaves them empty if they equal the layout's default.
void set_chunks(Layout& layout, std::vector<std::int64_t> chunks, std::int64_t layers);

/// The differences between two runs, "KEY: found A, the file says B; reason", with keys of run files. `why` has reasons
/// by key, or by the map that contains it. Names are not compared.
std::vector<std::string> run_differences(const RunSpec& wanted, const RunSpec& found,
                                         const std::map<std::string, std::string>& why);

}  // namespace wt
