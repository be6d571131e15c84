// What the files of windtunnel gate share.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "planner/cli/parts/words.hpp"

namespace wt {

/// A file, or every .json of a folder: one a process, to be merged. Throws Error{usage} for a folder without any.
std::vector<std::filesystem::path> gate_profiles(const std::string& place);

/// record, history, accept.
void add_gate_history(const Command& gate);

}  // namespace wt
