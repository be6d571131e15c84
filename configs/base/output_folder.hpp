// Output folders that a command empties and fills again. It empties only folders that it filled itself.
#pragma once
#include <filesystem>
#include <string>

namespace wt {

/// Creates `folder` and marks it, by a file `.windtunnel`, as one whose content `command` may replace. Throws
/// Error{usage} where the folder holds something but no mark of this command, Error{runtime} where it cannot be created
/// or listed. On an error its content is unchanged.
void take_output_folder(const std::filesystem::path& folder, const std::string& command);

}  // namespace wt
