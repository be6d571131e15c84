// The words that another trainer's format has, each with what a run of ours makes of it. configs/words/FORMAT.json
// holds them: the script of the format in planner/recipes/words reads the names out of the framework's own parser.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "planner/recipes/settings.hpp"
#include "planner/recipes/translator.hpp"

namespace wt {

enum class WordVerdict {
  modelled,  ///< a reader takes it; where none does, it has no effect on this run
  assumed,   ///< changes time, memory or the model, and the run goes on without it: `why` says at what cost
  refused,   ///< the same, and a run without it would be another job: `why` says what is needed
  learning,  ///< changes what is learned, not how long a step takes
  ignored    ///< logging, paths, and what else changes neither
};

/// A file of words is a map with `version`, `words` and `others`. `words` has an entry by key:
///   "fp8-margin": {"is": "learning", "usual": 0, "takes": "words", "choices": [...], "why": "...", "release": "..."}
/// `is` is a verdict. All others are optional: `usual` is the value that changes nothing, `takes` says how many values
/// a flag has ("nothing", "one", "words"), `choices` are the values that the parser takes, `release` is another one
/// than `version` that has the word. A key "optimizer.*" stands for all below it, except in sections below it that list
/// their words. `others` names the owner of words that forks of the framework have: {"moe-num-experts": "MegaBlocks"}.
class KnownWords {
 public:
  struct Word {
    WordVerdict verdict = WordVerdict::modelled;
    Settings::Value usual, choices;
    std::string why, release, takes;
  };

  KnownWords(const std::string& text, const std::string& origin);
  /// Those of configs/words/FORMAT.json, read once a process. Throws Error{usage} where the file is missing or broken.
  static const KnownWords& of(const std::string& format);

  /// nullptr: the format has no such word.
  const Word* find(const std::string& key) const;
  /// Throws Error{usage} for a word that the format does not have, with the nearest one or the fork that has it; for a
  /// value that its parser refuses; and for a refused word, unless its value is the usual one.
  void check(const Settings& settings) const;
  /// Lists each unread setting by its verdict: `assumed`, `learning` or `ignored`.
  void list_unread(RecipeReading& reading) const;

 private:
  bool has_under(const std::string& section) const;
  void check_optional(const Settings& settings) const;
  [[noreturn]] void refuse_unknown(const Settings& settings, const std::string& key) const;
  void refuse(const Settings& settings, const Settings::Entry& entry, const Word& word) const;
  void check_value(const Settings& settings, const Settings::Entry& entry, const Word& word) const;

  std::string version_;
  std::map<std::string, Word> words_;
  std::map<std::string, std::string> others_;
  std::vector<std::string> names_;
};

}  // namespace wt
