// Writing a file whole or not at all: a reader sees the old bytes or the new ones, also after a crash or on a full
// disk. Costs two fsyncs. A path that exists and is no regular file (a device, a pipe) is written through, not
// replaced.
#pragma once
#include <filesystem>
#include <string_view>

namespace wt {

/// Writes beside `file` under a temporary name, fsyncs, renames over `file`, fsyncs the folder. A symbolic link is
/// followed, an existing file's mode is kept. On failure the temporary is removed, `file` is as it was, and
/// Error{runtime} names the file, the call and the system's reason; this holds for a full disk, a quota and a file size
/// limit (SIGXFSZ is held back while writing). Folders are not created.
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes);

}  // namespace wt
