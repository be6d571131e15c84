// index.json of an MDS data set, version 2: names of the shards, numbers of samples and bytes, the columns of a sample,
// compression and hashes. Shards may be in subfolders, as in the merged index of a conversion by several processes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/mds_encoding.hpp"

namespace wt {

inline constexpr const char* kMdsIndexName = "index.json";
inline constexpr const char* kTokensColumn = "tokens";
/// For finetuning examples (finetuning.hpp).
inline constexpr const char* kTurnsColumn = "turns";

struct MdsColumn {
  std::string name;
  MdsEncoding encoding;
};
/// "text: str, tokens: ndarray:uint16".
std::string column_list(const std::vector<MdsColumn>& columns);
/// Sorted by name. Consecutive shards share them, because they would dominate the memory of an index with 500,000
/// shards.
using MdsColumns = std::shared_ptr<const std::vector<MdsColumn>>;

struct MdsFile {
  std::string basename;  ///< relative to index.json: "shard.00000.mds", "3/shard.00000.mds.zstd"
  std::uint64_t bytes = 0;
  std::map<std::string, std::string> hashes;  ///< algorithm to hexadecimal
};

struct MdsShard {
  MdsColumns columns;
  MdsFile raw;                              ///< the uncompressed file, which is not stored if there is a `zip`
  std::optional<MdsFile> zip;               ///< the compressed file
  std::string compression;                  ///< "zstd:7"; empty without `zip`
  std::optional<std::uint64_t> size_limit;  ///< bytes
  std::int64_t samples = 0;
};

/// The header inside a shard: its index entry without sizes and hashes.
nlohmann::json mds_shard_config(const MdsShard& shard);
/// The whole of index.json.
nlohmann::json mds_index(const std::vector<MdsShard>& shards);
/// Formats like Python's json.dumps(sort_keys=True), byte for byte, because shard offsets count these bytes.
std::string python_json(const nlohmann::json& document);

/// Reads and checks an index. Throws Error{usage} with `origin`, key, found and allowed: no JSON, another version or
/// format, unknown or unsafe encodings, sizes that do not match the encoding, an unknown compression, shard names that
/// leave the folder or occur twice. 500,000 shards take about 5 s and 200 MB.
std::vector<MdsShard> parse_mds_index(std::string_view text, const std::string& origin);
/// The same for directory/index.json; a missing file is an Error{usage}, too.
std::vector<MdsShard> read_mds_index(const std::filesystem::path& directory);

}  // namespace wt
