#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <span>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/text.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/dataset.hpp"

namespace wt {
namespace {

using Suffix = std::pair<const char*, double>;
/// Streaming's suffixes: powers of 1000 for samples, of 1024 for bytes; letter case is ignored.
constexpr std::array kSampleSuffixes{Suffix{"k", 1e3}, Suffix{"m", 1e6}, Suffix{"b", 1e9}, Suffix{"t", 1e12}};
constexpr std::array kByteSuffixes{Suffix{"kb", 1024.0}, Suffix{"mb", 1048576.0}, Suffix{"gb", 1073741824.0},
                                   Suffix{"tb", 1099511627776.0}};

const std::vector<std::string> kHashes = {"blake2b", "blake2s", "md5",      "sha1",     "sha224",   "sha256",
                                          "sha384",  "sha512",  "sha3_224", "sha3_256", "sha3_384", "sha3_512",
                                          "xxh128",  "xxh32",   "xxh3_128", "xxh3_64",  "xxh64"};

/// "1500", "10k", "1.5m"; bytes "100b", "64kb". Rounds down to whole samples or bytes, as Streaming does.
std::int64_t read_abbreviated(YamlMap& map, const std::string& key, std::span<const Suffix> suffixes,
                              const char* example) {
  const std::string text = lower(map.text(key));
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string rest = end;
  double factor = rest.empty() || (rest == "b" && suffixes.front().second == 1024.0) ? 1 : 0;
  for (const auto& [suffix, value] : suffixes)
    if (rest == suffix) factor = value;
  const double value = std::trunc(number) == number || factor > 1 ? std::trunc(number * factor) : 0;
  if (end == text.c_str() || !(value >= 1) || value > 9e18)
    map.fail(key, "found '{}', needs a number of at least 1 such as {}", map.text(key), example);
  return static_cast<std::int64_t>(value);
}

/// Keys that a stream may have, and the data set may give as defaults.
void read_stream_keys(YamlMap& map, StreamSpec& stream) {
  stream.split = map.text("split", stream.split);
  const std::filesystem::path split = stream.split;
  if (split.is_absolute() || std::ranges::find(split, "..") != split.end() ||
      stream.split.find('\0') != std::string::npos)
    map.fail("split", "found '{}', needs a folder inside of local and remote", stream.split);
  stream.download_retry = map.integer_or("download_retry", stream.download_retry, 0);
  if (map.has("download_timeout")) {
    stream.download_timeout_s = map.number("download_timeout", 0.0, 1e9);
    if (stream.download_timeout_s == 0) map.fail("download_timeout", "found 0, needs more than 0 seconds");
  }
  if (map.has("validate_hash")) stream.validate_hash = map.choice("validate_hash", kHashes);
  stream.keep_zip = map.boolean("keep_zip", stream.keep_zip);
}

void read_folders(YamlMap& map, StreamSpec& stream) {
  stream.remote = map.text("remote", "");
  stream.local = map.text("local", "");
  if (stream.remote.empty() && stream.local.empty())
    map.fail("local", "missing; a stream needs local (a folder), remote (what is cached in it) or both");
}

StreamSpec read_stream(YamlMap map, const std::string& name, const StreamSpec& defaults) {
  StreamSpec stream = defaults;
  stream.name = name;
  read_folders(map, stream);
  if (map.has("proportion")) stream.proportion = map.number("proportion", 0.0);
  if (map.has("repeat")) stream.repeat = map.number("repeat", 0.0);
  if (map.has("choose")) stream.choose = map.integer("choose", 1);
  if (stream.proportion.has_value() + stream.repeat.has_value() + stream.choose.has_value() > 1)
    map.fail(stream.choose ? "choose" : "repeat",
             "found more than one weight; needs one of proportion, repeat, choose");
  if (stream.repeat && *stream.repeat == 0)
    map.fail("repeat", "found 0, needs more than 0; leave out a stream of which nothing is read");
  read_stream_keys(map, stream);
  map.finish();
  return stream;
}

void read_streams(YamlMap& map, const StreamSpec& defaults, DatasetSpec& spec) {
  for (const char* key : {"local", "remote"})
    if (map.has(key)) map.fail(key, "found streams, too; needs folders either here or in each stream");
  YamlMap streams = map.map("streams");
  for (const std::string& name : streams.keys()) {
    if (name.empty()) streams.fail(name, "found a stream without a name; needs one");
    spec.streams.push_back(read_stream(streams.map(name), name, defaults));
  }
  if (spec.streams.empty()) map.fail("streams", "found none; needs at least one stream");
  const bool relative = spec.streams.front().proportion.has_value();
  for (const StreamSpec& s : spec.streams)
    if (s.proportion.has_value() != relative)
      streams.fail(s.name, "found streams with and without a proportion; needs one for all or for none");
}

void read_order(YamlMap& map, DatasetSpec& spec) {
  spec.sampling_method = map.enumerator("sampling_method", std::array{"balanced", "fixed"}, SamplingMethod::balanced);
  spec.sampling_granularity = map.integer_or("sampling_granularity", 1, 1);
  spec.batching_method = map.enumerator(
      "batching_method", std::array{"random", "stratified", "per_stream", "device_per_stream"}, BatchingMethod::random);
  spec.shuffle = map.boolean("shuffle", spec.shuffle);
  const std::string shuffle = map.text("shuffle_algo", "py1e");
  try {
    spec.shuffle_algorithm = shuffle_algorithm_from_string(shuffle);
  } catch (const Error& e) {
    map.fail("shuffle_algo", std::string(e.what()).substr(std::string("shuffle_algo: ").size()));
  }
  spec.shuffle_seed = static_cast<std::uint64_t>(map.integer_or("shuffle_seed", kDefaultShuffleSeed, 0));
  if (map.has("shuffle_block_size")) spec.shuffle_block_size = map.integer("shuffle_block_size", 1, 1LL << 60);
  spec.num_canonical_nodes = map.integer_or("num_canonical_nodes", 1, 1);
  spec.partition_algorithm =
      map.enumerator("partition_algo", std::array{"relaxed", "orig"}, PartitionAlgorithm::relaxed);
}

void check_weights(YamlMap& map, const DatasetSpec& spec) {
  const bool absolute = std::ranges::any_of(spec.streams, [](const StreamSpec& s) { return s.repeat || s.choose; });
  if (spec.epoch_size && absolute)
    map.fail("epoch_size",
             "found streams with repeat or choose, whose sum is the epoch; needs proportions, or neither");
  const bool unsafe = map.boolean("allow_unsafe_types", false);
  if (unsafe) map.fail("allow_unsafe_types", "found true, needs false: no code of a data set is run, as pickle does");
  for (const char* key : {"stream_name", "stream_config"})
    if (map.has(key))
      map.fail(key, "found it, needs to be left out: it names Python classes, which are not loaded here");
}

/// A packed sequence mixes examples of all streams.
void check_packing(YamlMap& map, const DatasetSpec& spec) {
  const BatchingMethod batching = spec.batching_method;
  if (spec.packs() && batching != BatchingMethod::random && batching != BatchingMethod::stratified)
    map.fail("packing_ratio",
             "found {} with batching_method {}, needs random or stratified: packing mixes the samples of a batch, and "
             "keeps some for the next",
             spec.finetuning->packing_ratio, to_string(batching));
}

MixChange read_change(YamlMap map, const DatasetSpec& spec, const RunClock& clock, std::int64_t after) {
  MixChange change;
  change.at = read_batches(map, "at", clock);
  if (change.at <= after) map.fail("at", "found {}ba, needs more than {}ba, the entry before", change.at, after);
  YamlMap proportions = map.map("proportions");
  for (const StreamSpec& stream : spec.streams) change.proportions.push_back(proportions.number(stream.name, 0.0));
  proportions.finish();
  if (!(sum_of(change.proportions) > 0)) map.fail("proportions", "found only zeros; needs one above 0");
  map.finish();
  return change;
}

/// Every stream needs a proportion, from here or from the curriculum.
void check_shares(YamlMap& loader, const DatasetSpec& spec) {
  if (spec.empty() || !spec.streams.front().proportion) return;
  std::vector<double> first;
  for (std::size_t i = 0; i < spec.streams.size(); ++i) {
    first.push_back(*spec.streams[i].proportion);
    const bool later = std::ranges::any_of(spec.curriculum, [&](const MixChange& c) { return c.proportions[i] > 0; });
    if (first.back() == 0 && !later)
      loader.fail(
          "dataset",
          "streams.{}.proportion: found 0, needs more than 0, here or in an entry of curriculum; leave the stream out",
          spec.streams[i].name);
  }
  if (!(sum_of(first) > 0)) loader.fail("dataset", "streams: found only proportions of 0; needs one above 0");
  if (spec.batching_method == BatchingMethod::random) return;
  const auto zero = [](double share) { return share == 0; };
  bool some = std::ranges::any_of(first, zero);
  for (const MixChange& c : spec.curriculum) some = some || std::ranges::any_of(c.proportions, zero);
  if (some)
    loader.fail(
        "dataset",
        "found a proportion of 0 with batching_method {}, needs more than 0: its batches have samples of every stream",
        to_string(spec.batching_method));
}

}  // namespace

bool is_finetuning_loader(YamlMap& loader) {
  return loader.choice("name", {"text", "finetuning"}, "text") == "finetuning";
}

DatasetSpec read_dataset(YamlMap& map, bool finetuning) {
  DatasetSpec spec;
  if (finetuning)
    spec.finetuning = read_finetuning(map);
  else
    refuse_finetuning_keys(map);
  StreamSpec defaults;
  read_stream_keys(map, defaults);
  if (map.has("streams")) {
    read_streams(map, defaults, spec);
  } else {
    read_folders(map, defaults);
    spec.streams.push_back(defaults);
  }
  if (map.has("epoch_size")) spec.epoch_size = read_abbreviated(map, "epoch_size", kSampleSuffixes, "12000, 10k or 2m");
  read_order(map, spec);
  if (map.has("replication")) spec.replication = map.integer("replication", 1);
  if (map.has("predownload")) spec.predownload = map.integer("predownload", 1);
  if (map.has("cache_limit")) spec.cache_limit = read_abbreviated(map, "cache_limit", kByteSuffixes, "500mb or 2tb");
  check_weights(map, spec);
  check_packing(map, spec);
  map.finish();
  return spec;
}

DatasetSpec read_train_loader(YamlMap loader, const RunClock& clock) {
  YamlMap map = loader.map("dataset");
  DatasetSpec spec = read_dataset(map, is_finetuning_loader(loader));
  if (!loader.boolean("drop_last", true))
    loader.fail("drop_last", "found false, needs true: a step takes a whole global batch");
  if (loader.has("curriculum")) {
    if (!spec.streams.front().proportion)
      loader.fail("curriculum", "found streams without a proportion, needs one for each: entries change them");
    for (YamlMap& entry : loader.maps("curriculum"))
      spec.curriculum.push_back(
          read_change(entry, spec, clock, spec.curriculum.empty() ? 0 : spec.curriculum.back().at));
  }
  check_shares(loader, spec);
  loader.finish();
  return spec;
}

namespace {

void write_stream(YAML::Emitter& out, const StreamSpec& s) {
  const StreamSpec usual;
  const auto key = [&](const char* name) -> YAML::Emitter& { return out << YAML::Key << name << YAML::Value; };
  if (!s.remote.empty()) key("remote") << s.remote;
  if (!s.local.empty()) key("local") << s.local;
  if (!s.split.empty()) key("split") << s.split;
  if (s.proportion) key("proportion") << fmt::format("{}", *s.proportion);
  if (s.repeat) key("repeat") << fmt::format("{}", *s.repeat);
  if (s.choose) key("choose") << *s.choose;
  if (s.download_retry != usual.download_retry) key("download_retry") << s.download_retry;
  if (s.download_timeout_s != usual.download_timeout_s)
    key("download_timeout") << fmt::format("{}", s.download_timeout_s);
  if (!s.validate_hash.empty()) key("validate_hash") << s.validate_hash;
  if (s.keep_zip) key("keep_zip") << s.keep_zip;
}

void write_curriculum(YAML::Emitter& out, const DatasetSpec& spec) {
  out << YAML::Key << "curriculum" << YAML::Value << YAML::BeginSeq;
  for (const MixChange& change : spec.curriculum) {
    out << YAML::BeginMap << YAML::Key << "at" << YAML::Value << fmt::format("{}ba", change.at) << YAML::Key
        << "proportions" << YAML::Value << YAML::BeginMap;
    for (std::size_t i = 0; i < spec.streams.size(); ++i)
      out << YAML::Key << spec.streams[i].name << YAML::Value << fmt::format("{}", change.proportions[i]);
    out << YAML::EndMap << YAML::EndMap;
  }
  out << YAML::EndSeq;
}

}  // namespace

void dataset_to_yaml(const DatasetSpec& spec, YAML::Emitter& out) {
  const DatasetSpec usual;
  const auto key = [&](const char* name) -> YAML::Emitter& { return out << YAML::Key << name << YAML::Value; };
  out << YAML::BeginMap;
  if (spec.streams.size() == 1 && spec.streams.front().name.empty()) {
    write_stream(out, spec.streams.front());
  } else {
    key("streams") << YAML::BeginMap;
    for (const StreamSpec& stream : spec.streams) {
      out << YAML::Key << stream.name << YAML::Value << YAML::BeginMap;
      write_stream(out, stream);
      out << YAML::EndMap;
    }
    out << YAML::EndMap;
  }
  if (spec.finetuning) finetuning_to_yaml(*spec.finetuning, out);
  if (spec.epoch_size) key("epoch_size") << *spec.epoch_size;
  if (spec.sampling_method != usual.sampling_method) key("sampling_method") << to_string(spec.sampling_method);
  if (spec.sampling_granularity != 1) key("sampling_granularity") << spec.sampling_granularity;
  if (spec.batching_method != usual.batching_method) key("batching_method") << to_string(spec.batching_method);
  if (!spec.shuffle) key("shuffle") << false;
  if (spec.shuffle_algorithm != usual.shuffle_algorithm) key("shuffle_algo") << to_string(spec.shuffle_algorithm);
  key("shuffle_seed") << spec.shuffle_seed;
  if (spec.shuffle_block_size) key("shuffle_block_size") << *spec.shuffle_block_size;
  if (spec.num_canonical_nodes != 1) key("num_canonical_nodes") << spec.num_canonical_nodes;
  if (spec.partition_algorithm != usual.partition_algorithm)
    key("partition_algo") << to_string(spec.partition_algorithm);
  if (spec.replication) key("replication") << *spec.replication;
  if (spec.predownload) key("predownload") << *spec.predownload;
  if (spec.cache_limit) key("cache_limit") << *spec.cache_limit;
  out << YAML::EndMap;
}

void train_loader_to_yaml(const DatasetSpec& spec, YAML::Emitter& out) {
  out << YAML::BeginMap;
  if (spec.finetuning) out << YAML::Key << "name" << YAML::Value << "finetuning";
  dataset_to_yaml(spec, out << YAML::Key << "dataset" << YAML::Value);
  if (!spec.curriculum.empty()) write_curriculum(out, spec);
  out << YAML::EndMap;
}

}  // namespace wt
