// Atomic writing of a file: readers see the old bytes or the new ones, also after a crash or on a full disk. It costs
// two fsyncs. A path that is no regular file (a device, a pipe) is written through, not replaced.
#pragma once
#include <filesystem>
#include <string_view>

namespace wt {

/// Writes to a temporary file in the same folder, fsyncs it, renames it to `file` and fsyncs the folder. Follows a
/// symbolic link and keeps an existing file's mode. On failure (a full disk, a quota, a file size limit) the temporary
/// file is removed, `file` is unchanged, and Error{runtime} names the file, the call and the system's reason. SIGXFSZ
/// is blocked while writing. Folders are not created.
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes);

}  // namespace wt
