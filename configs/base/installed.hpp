// Where the running program lies, and the data that belongs to it. A build folder and an installed tree have the same
// order: bin/windtunnel, and beside bin the folder share/windtunnel. Of a build folder it leads into the source tree.
#pragma once
#include <filesystem>
#include <string>

namespace wt {

/// The folder of the executable of this process.
const std::filesystem::path& program_folder();
/// A file or folder of share/windtunnel, as "configs", without links in its path. Throws Error{usage} where it is
/// missing.
std::filesystem::path data_path(const std::string& name);
/// The commit that the program was built from, "" where it is not known. An installed tree keeps it in a file; a build
/// folder asks git, because its sources change.
std::string source_commit();

}  // namespace wt
