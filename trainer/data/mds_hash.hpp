// The checksums in MDS index files, formatted like Python's hashlib and xxhash.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

namespace wt {

/// blake2b, blake2s, md5, sha1, sha224 to sha512, sha3_224 to sha3_512, xxh32, xxh64, xxh128, xxh3_64, xxh3_128.
bool is_mds_hash(const std::string& name);
/// Their names, for messages.
std::string mds_hash_names();
/// Lower-case hexadecimal hash of the concatenated parts. Throws Error{usage} for another name.
std::string mds_hash(const std::string& name, std::initializer_list<std::span<const std::byte>> parts);

}  // namespace wt
