// Small helpers with text, and the one way a text file is read whole.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace wt {

/// ASCII letters in lower case.
std::string lower(std::string text);

/// "1 node", "2 nodes".
std::string counted(std::int64_t n, const std::string& noun);

/// As it is up to 200 bytes, else its begin and "... (N bytes)": for words of others in an error.
std::string shortened(const std::string& text);

/// All bytes of a file or pipe. Throws Error{usage}, "FILE: cannot be read; needs `needs`", also of a folder.
std::string read_file(const std::filesystem::path& file, const std::string& needs);

}  // namespace wt
