// Words of a command line that CLI11 would not know, answered before it reads them: a flag that its command does not
// have, and `help`.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace wt {

/// Arguments without the program's name. Throws Error{usage} at the first flag that its command does not have. The
/// message names the nearest flags of the command, the commands that have it, and where the setting is said instead.
/// Commands that hand their words to another program are left to that one, and so is what follows "--".
void refuse_unknown_flags(const CLI::App& app, const std::vector<std::string>& arguments);

/// "help plan" as "plan --help", "help" as "--help"; other arguments as they are. Throws Error{usage} at a topic that
/// is no command, naming the nearest one.
std::vector<std::string> with_help(const CLI::App& app, const std::vector<std::string>& arguments);

/// Keys of a run file or study that flags of other trainers stand for; each as in docs/files.md.
std::vector<std::string> keys_of_flags(bool study);

}  // namespace wt
