// What the samples of a run are, by the indexes of its streams. A checkpoint carries it (SamplerState), so that a run
// goes on with the data that it has read: not with others that were packed at the same path. Where shards lie and what
// their files are called is no part of it. No shard is fetched or read whole for it.
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "trainer/data/mds_index.hpp"

namespace wt {

struct StreamIdentity {
  std::string name;
  std::int64_t samples = 0;
  std::uint64_t bytes = 0;  ///< of its uncompressed shards
  std::string sizes;        ///< XXH3 of every shard's samples and bytes, in the order of the index
  /// By algorithm, of those that the index states for every shard: XXH3 of all these hashes.
  std::map<std::string, std::string> hashes;
  /// Where it states none, of a folder without remote: XXH3 of the ends of some shards; "" = not known.
  std::string contents;
  friend bool operator==(const StreamIdentity&, const StreamIdentity&) = default;
};

/// In the order of the streams. Empty: not known.
using DataIdentity = std::vector<StreamIdentity>;

/// By the index alone: without `contents`.
StreamIdentity identity_of_index(const std::string& name, const std::vector<MdsShard>& shards);

/// In words, in which way `now` is other data than `was`; "" = in none that can be seen.
std::string difference(const StreamIdentity& was, const StreamIdentity& now);
std::string difference(const DataIdentity& was, const DataIdentity& now);

nlohmann::json to_json(const DataIdentity& identity);
/// Throws Error{usage} naming `origin` for what to_json() cannot have written.
DataIdentity data_identity_from_json(const nlohmann::json& document, const std::string& origin);

}  // namespace wt
