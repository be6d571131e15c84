// Runs a script under bash, to see which programs it would start. Only for a user who asked for it: a script can do
// anything that bash can.
//
// It runs in namespaces of its own (unshare): no network, no other processes, every file system read-only, and an empty
// folder in memory as home and working folder. PATH has text tools, and stubs in place of launchers, Python and
// programs that change files: a stub says how it was called, and does nothing. After some seconds all of it is ended.
#pragma once
#include <map>
#include <string>

#include "planner/shell/shell.hpp"

namespace wt::shell {

/// The commands that a script starts, in their order. `variables` is its environment, apart from HOME and PATH. Throws
/// Error{usage} where this machine has no such namespaces, and for a script that takes longer than 20 seconds.
std::vector<StartedCommand> evaluate_script(const std::filesystem::path& script,
                                            const std::map<std::string, std::string>& variables);

}  // namespace wt::shell
