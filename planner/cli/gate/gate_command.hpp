// Shared by the subcommands of windtunnel gate.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "planner/cli/parts/words.hpp"

namespace wt {

/// A file, or every .json of a folder (one per process, to be merged). Throws Error{usage} for a folder without any.
std::vector<std::filesystem::path> gate_profiles(const std::string& place);
/// Adds run, which takes the measurements itself.
void add_gate_run(const Command& gate);
/// Adds record, history and accept.
void add_gate_history(const Command& gate);

}  // namespace wt
