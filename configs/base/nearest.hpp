// The known word nearest to a misspelt one, for "did you mean" in errors about keys and subcommands.
#pragma once
#include <string>
#include <vector>

namespace wt {

/// The known word with the smallest edit distance (insert, delete, replace, swap of neighbours; letter case ignored);
/// the first of equals. Empty when none is within a third of the longer word's length (at least one edit).
std::string nearest(const std::string& word, const std::vector<std::string>& known);

/// "; did you mean 'samples'?", or nothing when no known word is near. Append it to the first part of an error.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);

}  // namespace wt
