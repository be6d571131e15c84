// Small helpers for text, and reading a text file whole.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace wt {

/// Lower-cases ASCII letters.
std::string lower(std::string text);

/// "1 node", "2 nodes".
std::string counted(std::int64_t n, const std::string& noun);

/// Unchanged up to 200 bytes, else its begin and "... (N bytes)". For foreign text that an error quotes.
std::string shortened(const std::string& text);

/// All bytes of a file or pipe. Throws Error{usage}, "FILE: cannot be read; needs `needs`", also for a folder.
std::string read_file(const std::filesystem::path& file, const std::string& needs);

}  // namespace wt
