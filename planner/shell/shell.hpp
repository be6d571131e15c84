// What a bash script starts, found by reading it. Nothing is run: builtins, variables, conditions and loops are
// followed here, and what only a machine could tell stays unknown (unknown_text.hpp). Where a condition is not known,
// both ways are followed, and what they set differently is unknown afterwards.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace wt::shell {

struct ScriptSource {
  std::string text;
  std::string origin;                            ///< the script's path, for errors and for files beside it
  std::map<std::string, std::string> variables;  ///< of the environment; those that are missing are unknown
  /// The text of another file; empty: none may be read.
  std::function<std::optional<std::string>(const std::filesystem::path&)> file = {};
};

/// A program that a script starts.
struct StartedCommand {
  std::vector<std::string> words;  ///< after expansion, with marks; a launcher and what it starts are one command
  int line = 0;
  std::string condition;  ///< "[ -d x ], in line 7", if it depends on what is not known
  std::string input;      ///< a here-document
};
struct ReadScript {
  std::vector<StartedCommand> commands;
  std::map<std::string, std::vector<std::string>> variables;  ///< as they are in the end, split into words
  std::vector<std::string> not_read;              ///< files that it sources or runs, and that were not there
  std::map<std::string, std::string> directives;  ///< of #SBATCH lines, by name without dashes
};

/// Throws Error{usage} naming the line for text that is no script, and for one that takes too many steps.
ReadScript read_script(const ScriptSource& source);

}  // namespace wt::shell
