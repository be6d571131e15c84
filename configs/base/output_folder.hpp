// Output folders that a command empties and fills again: only those that it filled itself.
#pragma once
#include <filesystem>
#include <string>

namespace wt {

/// Makes `folder`, whose content `command` may replace from now on; a file `.windtunnel` in it says so. Throws
/// Error{usage} where it holds something and no such file of this command, Error{runtime} where it cannot be made or
/// listed. What it holds is not changed then.
void take_output_folder(const std::filesystem::path& folder, const std::string& command);

}  // namespace wt
