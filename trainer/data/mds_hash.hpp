// The checksums that MDS index files name, as python-xxhash prints them.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

namespace wt {

/// xxh32, xxh64, xxh3_64, xxh128, xxh3_128.
bool is_mds_hash(const std::string& name);
/// Lower-case hexadecimal of the hash of the parts, one after the other. Throws Error{usage} on another name.
std::string mds_hash(const std::string& name, std::initializer_list<std::span<const std::byte>> parts);

}  // namespace wt
