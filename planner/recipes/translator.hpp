// What every format has: a way to say a run in its keys, and a way to read them. recipe.cpp does the rest.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "configs/files/run.hpp"
#include "planner/recipes/recipe.hpp"
#include "planner/recipes/settings.hpp"

namespace wt {

/// A run on its way into a format.
struct RecipeDraft {
  const RunSpec& run;
  Settings out = {};
  std::string command = {};                     ///< of formats that are command lines
  std::string next_step = {};                   ///< Recipe::next_step
  bool names_no_model = false;                  ///< whoever reads it must be told the model
  std::map<std::string, std::string> why = {};  ///< run file's key: why the format cannot say it
  std::vector<std::string> not_expressed = {};  ///< what reading back cannot find
};

/// A run on its way out of one. `run` starts with what a run on GPUs has if nothing is said.
struct RecipeReading {
  Settings& in;
  RunSpec run;
  std::optional<ModelSpec> model;  ///< given by the caller; goes before what the text says
  std::int64_t gpus = 0;           ///< given by the caller; 0 = not
  std::vector<std::string> dropped = {}, assumed = {};

  /// The given model, or that of a name known by the format; sets run.model. Throws Error{usage} naming `key`.
  void set_model(const std::string& preset, const std::string& key, const std::string& found);
  /// World size: what the text says (0 = nothing), checked against what is given. Throws Error{usage}.
  std::int64_t world(std::int64_t said, const std::string& key) const;
  /// Data ranks: world / `others`. Throws Error{usage} where it is no whole number.
  std::int64_t data_ranks(std::int64_t world, std::int64_t others, const std::string& key) const;
  void assume(std::string what) { assumed.push_back(std::move(what)); }
};

struct RecipeTranslator {
  const char* version;  ///< of the package whose keys these are
  const char* file_name;
  bool shell;  ///< a command line, which starts with RecipeDraft::command
  /// Throws Error{usage} for what the framework cannot run at all. What it runs otherwise is left to reading back.
  void (*write)(RecipeDraft&);
  void (*read)(RecipeReading&);
  std::string (*print)(const Settings&);  ///< nullptr: a command line
  Settings (*parse)(const std::string& text, const std::string& origin);
};
const RecipeTranslator& torchtitan_translator();
const RecipeTranslator& megatron_core_translator();
const RecipeTranslator& megatron_bridge_translator();
const RecipeTranslator& automodel_translator();
const RecipeTranslator& llm_foundry_translator();

/// A key that is one number or flag of a run: the same row writes and reads it.
struct RecipeRow {
  /// Batches, which only LLM Foundry counts in parts: whole numbers here.
  struct Steps {
    double* (*field)(RunSpec&);
  };
  using Field = std::variant<std::int64_t* (*)(RunSpec&), std::uint64_t* (*)(RunSpec&), double* (*)(RunSpec&),
                             bool* (*)(RunSpec&), Steps>;
  std::string key;
  Field field;
  std::int64_t least = 0;  ///< of whole numbers
};
void write_rows(const std::vector<RecipeRow>& rows, RecipeDraft& draft);
/// A key without a value leaves the run as it is.
void read_rows(const std::vector<RecipeRow>& rows, RecipeReading& reading);

/// Words of a format and what they mean; the first word of a meaning is the one that is written.
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

/// `precision` of a run file: amp_bf16 and the like. Fields that a recipe leaves alone keep its values.
void set_precision(RunSpec& run, const std::string& recipe);
/// The word that a run's formats are nearest to.
std::string precision_word(const RunSpec& run);
/// The microbatch, or the largest below it that divides a rank's sequences: no other framework has a smaller last one.
std::int64_t even_microbatch(const RunSpec& run);
/// Every block, of some modules.
Recompute recompute_of(const std::vector<Module>& modules);
/// The modules that rules name, whichever their blocks.
std::vector<Module> modules_of(const Recompute& recompute);
/// Without the last digits, which a product or a quotient has lost: 0.0002 of 0.002 * 0.1.
double twelve_digits(double value);
/// smaller / larger to twelve digits; 0 of nothing.
double recipe_ratio(double smaller, double larger);
/// Nodes of 8 GPUs, or of all: what torchrun is started with.
std::pair<std::int64_t, std::int64_t> nodes_and_gpus(std::int64_t world);

/// Chunk layers that say nothing new become empty: those that the layout has without them.
void set_chunks(Layout& layout, std::vector<std::int64_t> chunks, std::int64_t layers);

/// What differs between two runs, "KEY: found A, the file says B; reason" by the keys of their run files. `why` has the
/// reason for the key or for a map around it. Names do not count.
std::vector<std::string> run_differences(const RunSpec& wanted, const RunSpec& found,
                                         const std::map<std::string, std::string>& why);

}  // namespace wt
