#include "trainer/data/mds_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "configs/base/error.hpp"
#include "configs/base/lax_json.hpp"
#include "configs/base/lists.hpp"
#include "trainer/data/detail/file_io.hpp"
#include "trainer/data/mds_compression.hpp"

namespace wt {
namespace {

using Json = nlohmann::json;

/// One object of the index, with its location for errors.
struct Place {
  const Json& object;
  std::string file;
  std::string key;  ///< "shards[3]"

  [[noreturn]] void fail(const char* child, const std::string& found, const char* allowed) const {
    throw_usage("{}: {}.{}: found {}, allowed is {}; fetch or pack the dataset again", file, key, child, found,
                allowed);
  }
  const Json& child(const char* name, const char* allowed) const {
    const auto found = object.find(name);
    if (found == object.end()) fail(name, "nothing", allowed);
    return *found;
  }
  std::uint64_t count(const char* name) const {
    const char* const allowed = "a whole number from 0 to 2^32 - 1";
    const Json& value = child(name, allowed);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max())
      fail(name, value.dump(), allowed);
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

/// Whether a name stays inside the data set's folder, is not hidden, and is not an index.
bool stays_inside(std::string_view name) {
  if (name.find('\0') != std::string_view::npos) return false;
  while (true) {
    const auto slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part.front() == '.') return false;
    if (slash == std::string_view::npos) return part != kMdsIndexName;
    name.remove_prefix(slash + 1);
  }
}

MdsFile file_of(const Place& data) {
  MdsFile file{data.word("basename"), data.count("bytes"), {}};
  if (!stays_inside(file.basename))
    data.fail("basename", Json(file.basename).dump(), "the name of a file beside index.json or in a subfolder");
  const Place hashes = data.inside("hashes");
  for (const auto& [name, value] : hashes.object.items()) {
    if (!value.is_string()) hashes.fail(name.c_str(), value.dump(), "a hexadecimal text");
    file.hashes[name] = value.get<std::string>();
  }
  return file;
}

MdsColumns columns_of(const Place& shard) {
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
  return std::make_shared<const std::vector<MdsColumn>>(std::move(columns));
}

/// Collects the entries of an index one by one.
class ShardList {
 public:
  explicit ShardList(const std::string& origin) : origin_(origin) {}

  void add(const Json& entry) {
    const Place place{entry, origin_, fmt::format("shards[{}]", shards_.size())};
    if (place.count("version") != 2) place.fail("version", place.child("version", "").dump(), "2");
    if (place.word("format") != "mds") place.fail("format", place.word("format"), "mds");
    MdsShard shard;
    shard.columns = columns(place);
    shard.samples = static_cast<std::int64_t>(place.count("samples"));
    shard.raw = file_of(place.inside("raw_data"));
    if (given(entry, "size_limit")) shard.size_limit = place.count("size_limit");
    if (given(entry, "zip_data")) {
      shard.zip = file_of(place.inside("zip_data"));
      shard.compression = place.word("compression");
      mds_compression_from_string(shard.compression, fmt::format("{}: {}", origin_, place.key));
    }
    shards_.push_back(std::move(shard));
  }

  std::vector<MdsShard> take() {
    std::unordered_set<std::string_view> names;
    names.reserve(2 * shards_.size());
    for (const MdsShard& shard : shards_) {
      once(names, shard.raw.basename);
      if (shard.zip) once(names, shard.zip->basename);
    }
    return std::move(shards_);
  }

 private:
  static bool given(const Json& entry, const char* key) {
    const auto found = entry.find(key);
    return found != entry.end() && !found->is_null();
  }

  MdsColumns columns(const Place& place) {
    const char* const allowed = "a list";
    Json words = {place.child("column_names", allowed), place.child("column_encodings", allowed),
                  place.child("column_sizes", allowed)};
    if (!columns_ || words != words_) {
      columns_ = columns_of(place);
      words_ = std::move(words);
    }
    return columns_;
  }

  void once(std::unordered_set<std::string_view>& names, const std::string& name) const {
    if (names.insert(name).second) return;
    throw_usage("{}: found the file '{}' twice, allowed is each once; fetch or pack the dataset again", origin_, name);
  }

  std::string origin_;
  std::vector<MdsShard> shards_;
  Json words_;  ///< the previous shard's text, whose parsed form is reused
  MdsColumns columns_;
};

Json file_entry(const MdsFile& file) {
  return {{"basename", file.basename}, {"bytes", file.bytes}, {"hashes", file.hashes}};
}

/// Parses the document without its shards. Each shard goes to `take` and is then discarded, because a large index as a
/// whole would need twenty times its size.
Json parse_by_shard(std::string_view text, const std::function<void(const Json&)>& take) {
  std::string key;  // of the top-level object
  const auto step = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key) key = parsed.get<std::string>();
    if (depth != 2 || event != Json::parse_event_t::object_end || key != "shards") return true;
    take(parsed);
    return false;
  };
  return Json::parse(text.begin(), text.end(), step, false);
}

}  // namespace

std::string column_list(const std::vector<MdsColumn>& columns) {
  return joined(columns, ", ", [](const MdsColumn& column) { return column.name + ": " + column.encoding.name; });
}

Json mds_shard_config(const MdsShard& shard) {
  Json config = {{"column_names", Json::array()},
                 {"column_encodings", Json::array()},
                 {"column_sizes", Json::array()},
                 {"compression", nullptr},
                 {"format", "mds"},
                 {"hashes", Json::array()},
                 {"size_limit", nullptr},
                 {"version", 2}};
  for (const MdsColumn& column : *shard.columns) {
    config["column_names"].push_back(column.name);
    config["column_encodings"].push_back(column.encoding.name);
    config["column_sizes"].push_back(column.encoding.size ? Json(*column.encoding.size) : Json(nullptr));
  }
  if (!shard.compression.empty()) config["compression"] = shard.compression;
  for (const auto& entry : shard.raw.hashes) config["hashes"].push_back(entry.first);
  if (shard.size_limit) config["size_limit"] = *shard.size_limit;
  return config;
}

Json mds_index(const std::vector<MdsShard>& shards) {
  Json entries = Json::array();
  for (const MdsShard& shard : shards) {
    Json entry = mds_shard_config(shard);
    entry["samples"] = shard.samples;
    entry["raw_data"] = file_entry(shard.raw);
    entry["zip_data"] = shard.zip ? file_entry(*shard.zip) : Json(nullptr);
    entries.push_back(std::move(entry));
  }
  return {{"shards", std::move(entries)}, {"version", 2}};
}

std::string python_json(const Json& document) {
  const bool object = document.is_object();
  if (!object && !document.is_array()) return document.dump(-1, ' ', true);
  std::vector<std::string> parts;
  for (const auto& [key, value] : document.items())
    parts.push_back(object ? Json(key).dump(-1, ' ', true) + ": " + python_json(value) : python_json(value));
  return fmt::format("{}{}{}", object ? '{' : '[', fmt::join(parts, ", "), object ? '}' : ']');
}

std::vector<MdsShard> parse_mds_index(std::string_view text, const std::string& origin) {
  ShardList shards(origin);
  const Json document = too_deep(text) ? Json(Json::value_t::discarded)
                                       : parse_by_shard(text, [&](const Json& entry) { shards.add(entry); });
  if (!document.is_object())
    throw_usage("{}: found {}, allowed is an object with version and shards; fetch or pack the dataset again", origin,
                document.is_discarded() ? why_discarded(text) : document.type_name());
  const Place index = {document, origin, "index"};
  if (index.count("version") != 2) index.fail("version", document["version"].dump(), "2");
  const Json& others = index.child("shards", "a list of shards");
  if (!others.is_array()) index.fail("shards", others.type_name(), "a list of shards");
  if (!others.empty()) index.fail("shards", others.front().type_name(), "a list of objects");
  return shards.take();
}

std::vector<MdsShard> read_mds_index(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / kMdsIndexName;
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none))
    throw_usage(
        "{}: cannot be read, allowed is the directory of an MDS dataset; check the path, or make one with `windtunnel "
        "data pack`",
        file.string());
  const detail::MappedFile text(file);
  return parse_mds_index(text.text(), file.string());
}

}  // namespace wt
