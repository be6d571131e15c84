// Files that may be packed by gzip, as profilers leave them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace wt {

/// All bytes of a file, unpacked if they are gzip. Throws Error{usage}, "FILE: ... needs `needs`": a file that cannot
/// be read, more than `most` bytes after unpacking, gzip that is damaged or cut.
std::string read_unpacked(const std::filesystem::path& file, const std::string& needs, std::uintmax_t most);

}  // namespace wt
