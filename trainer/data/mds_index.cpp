#include "trainer/data/mds_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "configs/spec/support/error.hpp"

namespace wt {
namespace {

using Json = nlohmann::json;

/// One object of the index, with the words that an error needs.
struct Place {
  const Json& object;
  std::string file;
  std::string key;  ///< "shards[3]"

  [[noreturn]] void fail(const char* child, const std::string& found, const char* allowed) const {
    throw_error(Code::usage, "{}: {}.{}: found {}, allowed is {}; fetch or pack the dataset again", file, key, child,
                found, allowed);
  }
  const Json& child(const char* name, const char* allowed) const {
    const auto found = object.find(name);
    if (found == object.end()) fail(name, "nothing", allowed);
    return *found;
  }
  std::uint64_t count(const char* name) const {
    const char* const allowed = "a whole number from 0 to 2^32 - 1";
    const Json& value = child(name, allowed);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max()) {
      fail(name, value.dump(), allowed);
    }
    return value.get<std::uint64_t>();
  }
  std::string word(const char* name) const {
    const Json& value = child(name, "a text");
    if (!value.is_string()) fail(name, value.dump(), "a text");
    return value.get<std::string>();
  }
  Place inside(const char* name) const {
    const Json& value = child(name, "an object");
    if (!value.is_object()) fail(name, value.dump(), "an object");
    return {value, file, key + "." + name};
  }
};

/// A file name that stays in the dataset's directory.
std::string basename_of(const Place& data) {
  std::string name = data.word("basename");
  if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos) {
    data.fail("basename", Json(name).dump(), "the bare name of a file beside index.json");
  }
  return name;
}

std::vector<MdsColumn> columns_of(const Place& shard) {
  const char* const allowed = "lists of equal length: names, encodings, and bytes or null";
  const Json& names = shard.child("column_names", allowed);
  const Json& encodings = shard.child("column_encodings", allowed);
  const Json& sizes = shard.child("column_sizes", allowed);
  const bool lists = names.is_array() && encodings.is_array() && sizes.is_array() && !names.empty() &&
                     names.size() == encodings.size() && names.size() == sizes.size();
  if (!lists) shard.fail("column_names", names.dump(), allowed);
  std::vector<MdsColumn> columns;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].is_string() || !encodings[i].is_string()) shard.fail("column_encodings", encodings.dump(), allowed);
    const MdsEncoding encoding =
        mds_encoding_from_string(encodings[i].get<std::string>(), shard.file + ": " + shard.key);
    const Json size = encoding.size ? Json(*encoding.size) : Json(nullptr);
    if (sizes[i] != size)
      shard.fail("column_sizes", sizes[i].dump(), "the width of the column's encoding, or null where it varies");
    columns.push_back({names[i].get<std::string>(), encoding});
    if (i > 0 && columns[i - 1].name >= columns[i].name)
      shard.fail("column_names", names.dump(), "different names in sorted order");
  }
  return columns;
}

MdsShard shard_of(const Place& place) {
  if (place.count("version") != 2) place.fail("version", place.child("version", "").dump(), "2");
  if (place.word("format") != "mds") place.fail("format", place.word("format"), "mds");
  MdsShard shard;
  shard.columns = columns_of(place);
  shard.samples = static_cast<std::int64_t>(place.count("samples"));
  const Place raw = place.inside("raw_data");
  shard.basename = basename_of(raw);
  shard.bytes = raw.count("bytes");
  const Place hashes = raw.inside("hashes");
  for (const auto& [name, value] : hashes.object.items()) {
    if (!value.is_string()) hashes.fail(name.c_str(), value.dump(), "a hexadecimal text");
    shard.hashes[name] = value.get<std::string>();
  }
  const auto limit = place.object.find("size_limit");
  if (limit != place.object.end() && !limit->is_null()) shard.size_limit = place.count("size_limit");
  const auto zip = place.object.find("zip_data");
  if (zip != place.object.end() && !zip->is_null()) shard.zip_basename = basename_of(place.inside("zip_data"));
  return shard;
}

}  // namespace

Json mds_shard_config(const MdsShard& shard) {
  Json config = {{"column_names", Json::array()},
                 {"column_encodings", Json::array()},
                 {"column_sizes", Json::array()},
                 {"compression", nullptr},
                 {"format", "mds"},
                 {"hashes", Json::array()},
                 {"size_limit", nullptr},
                 {"version", 2}};
  for (const MdsColumn& column : shard.columns) {
    config["column_names"].push_back(column.name);
    config["column_encodings"].push_back(column.encoding.name);
    config["column_sizes"].push_back(column.encoding.size ? Json(*column.encoding.size) : Json(nullptr));
  }
  for (const auto& entry : shard.hashes) config["hashes"].push_back(entry.first);
  if (shard.size_limit) config["size_limit"] = *shard.size_limit;
  return config;
}

Json mds_index(const std::vector<MdsShard>& shards) {
  Json entries = Json::array();
  for (const MdsShard& shard : shards) {
    Json entry = mds_shard_config(shard);
    entry["samples"] = shard.samples;
    entry["raw_data"] = {{"basename", shard.basename}, {"bytes", shard.bytes}, {"hashes", shard.hashes}};
    entry["zip_data"] = nullptr;
    entries.push_back(std::move(entry));
  }
  return {{"shards", std::move(entries)}, {"version", 2}};
}

std::string python_json(const Json& document) {
  const bool object = document.is_object();
  if (!object && !document.is_array()) return document.dump(-1, ' ', true);
  std::vector<std::string> parts;
  for (const auto& [key, value] : document.items()) {
    parts.push_back(object ? Json(key).dump(-1, ' ', true) + ": " + python_json(value) : python_json(value));
  }
  return fmt::format("{}{}{}", object ? '{' : '[', fmt::join(parts, ", "), object ? '}' : ']');
}

std::vector<MdsShard> read_mds_index(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / kMdsIndexName;
  std::ifstream in(file);
  if (!in) {
    throw_error(Code::usage,
                "{}: cannot be read, allowed is the directory of an MDS dataset; check the path, or make one with "
                "`windtunnel data pack`",
                file.string());
  }
  const Json document = Json::parse(in, nullptr, false);
  if (!document.is_object()) {
    throw_error(Code::usage,
                "{}: found {}, allowed is an object with version and shards; fetch or pack the dataset again",
                file.string(), document.is_discarded() ? "text that is no JSON" : document.type_name());
  }
  const Place index = {document, file.string(), "index"};
  if (index.count("version") != 2) index.fail("version", document["version"].dump(), "2");
  const Json& entries = index.child("shards", "a list of shards");
  if (!entries.is_array()) index.fail("shards", entries.type_name(), "a list of shards");
  std::vector<MdsShard> shards;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string key = fmt::format("shards[{}]", i);
    if (!entries[i].is_object()) index.fail(key.c_str(), entries[i].type_name(), "an object");
    shards.push_back(shard_of({entries[i], file.string(), key}));
  }
  return shards;
}

}  // namespace wt
