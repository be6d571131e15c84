// index.json of an MDS dataset, version 2: what the shards are called, how many samples and bytes each has, and which
// columns a sample has.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/mds_encoding.hpp"

namespace wt {

inline constexpr const char* kMdsIndexName = "index.json";
inline constexpr const char* kTokensColumn = "tokens";

struct MdsColumn {
  std::string name;
  MdsEncoding encoding;
};

/// One shard. Columns are sorted by name.
struct MdsShard {
  std::vector<MdsColumn> columns;
  std::string basename;
  std::uint64_t bytes = 0;
  std::int64_t samples = 0;
  std::map<std::string, std::string> hashes;  ///< algorithm to hexadecimal, of the uncompressed file
  std::optional<std::uint64_t> size_limit;    ///< bytes
  std::optional<std::string> zip_basename;    ///< set when the dataset is stored compressed
};

/// What a shard says of itself before its samples: its index entry without sizes and hashes.
nlohmann::json mds_shard_config(const MdsShard& shard);
/// The whole of index.json.
nlohmann::json mds_index(const std::vector<MdsShard>& shards);
/// As Python's json.dumps(sort_keys=True) prints it, byte for byte: shard offsets count these bytes.
std::string python_json(const nlohmann::json& document);

/// Reads and checks directory/index.json. Throws Error{usage} naming file, key, found and allowed: no such file, no
/// JSON, another version or format, unknown or unsafe encodings, sizes that are not the encoding's, shard names that
/// leave the directory.
std::vector<MdsShard> read_mds_index(const std::filesystem::path& directory);

}  // namespace wt
