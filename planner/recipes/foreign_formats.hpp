// Files of trainers and tools that import-run does not read, by the words that are theirs alone: an error names what a
// file is, instead of the first key that a wrong reader misses.
#pragma once
#include <string>

#include "planner/recipes/settings.hpp"

namespace wt {

/// "axolotl"; empty = not recognised. `settings` are those of YAML, JSON or TOML.
std::string foreign_file(const Settings& settings);
/// The same of a command line or a script, by its commands and flags.
std::string foreign_command(const Settings& flags, const std::string& text);
/// Of a Python file, by what it imports and calls.
std::string foreign_program(const std::string& text);
/// "none of the formats read here (torchtitan, ...); it looks like axolotl". Throws Error{usage}.
[[noreturn]] void refuse_foreign(const std::string& origin, const std::string& looks_like);

}  // namespace wt
