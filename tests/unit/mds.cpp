#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "configs/base/error.hpp"
#include "tests/fixtures/mds_sets.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/data/mds_hash.hpp"
#include "trainer/data/mds_reader.hpp"
#include "trainer/data/mds_writer.hpp"

namespace fs = std::filesystem;
using Catch::Contains;
using wt::MdsReader;
using wt::MdsWriter;
using wt::test::read_bytes;
using wt::test::TempDirectory;
using wt::test::write_bytes;
using Tokens = std::vector<std::uint16_t>;
using Ids = std::vector<std::int32_t>;

namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

/// Three samples in two shards (a shard takes two): 10 11 12 | 20 | 30 31.
fs::path small_dataset(const TempDirectory& directory) {
  MdsWriter writer(directory / "set", {{"tokens", "ndarray:uint16"}}, {{"xxh3_64"}, 230});
  for (const Tokens& tokens : {Tokens{10, 11, 12}, Tokens{20}, Tokens{30, 31}}) writer.write_tokens(tokens);
  CHECK(writer.finish().shards == 2);
  return directory / "set";
}

void edit_index(const fs::path& set, const std::function<void(nlohmann::json&)>& edit) {
  auto index = nlohmann::json::parse(read_bytes(set / "index.json"));
  edit(index);
  write_bytes(set / "index.json", index.dump());
}

void patch(const fs::path& file, std::size_t offset, const std::string& bytes) {
  write_bytes(file, read_bytes(file).replace(offset, bytes.size(), bytes));
}

/// Reads one sample whose `tokens` payload has the given encoding and bytes.
Ids decode(const std::string& encoding, const std::string& hex) {
  const auto payload = from_hex(hex);
  return wt::decode_mds_tokens(wt::mds_encoding_from_string(encoding, "test"), std::as_bytes(std::span(payload)),
                               "test");
}

}  // namespace

// The expected shard, its size and its sha1 were written by mosaicml-streaming's MDSWriter from the same samples.
TEST_CASE("a shard is byte for byte Streaming's") {
  const TempDirectory directory;
  MdsWriter writer(directory / "set", {{"n", "int"}, {"tokens", "ndarray:uint16"}}, {{}, 1 << 26});
  writer.write(std::vector<std::string>{wt::test::encode_mds_int(7), wt::encode_mds_tokens(Tokens{1, 2, 3})});
  writer.write(std::vector<std::string>{wt::test::encode_mds_int(8), wt::encode_mds_tokens(Tokens{65535})});
  writer.finish();
  const std::string config =
      R"({"column_encodings": ["int", "ndarray:uint16"], "column_names": ["n", "tokens"], "column_sizes": [8, null], )"
      R"("compression": null, "format": "mds", "hashes": [], "size_limit": 67108864, "version": 2})";
  REQUIRE(config.size() == 197);
  CHECK(read_bytes(directory / "set/shard.00000.mds") == from_hex("02000000d5000000e9000000f9000000") + config +
                                                             from_hex("0800000007000000000000000403010002000300"
                                                                      "0400000008000000000000000401ffff"));
  CHECK(fs::file_size(directory / "set/shard.00000.mds") == 249);
  const std::string command = "sha1sum " + (directory / "set/shard.00000.mds").string();
  std::array<char, 41> sha1{};
  FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  CHECK(std::fgets(sha1.data(), sha1.size(), pipe) == std::string("eac3d3deec243e4de7a9b71e3ec5d9771ae6301b"));
  ::pclose(pipe);
  CHECK(MdsReader(directory / "set").tokens(1) == Ids{65535});
}

TEST_CASE("the index says what Streaming's reader wants") {
  const TempDirectory directory;
  const auto text = read_bytes(small_dataset(directory) / "index.json");
  CHECK_THAT(text,
             Catch::StartsWith(R"({"shards": [{"column_encodings": ["ndarray:uint16"], "column_names": ["tokens"])"));
  const auto index = nlohmann::json::parse(text);
  CHECK(index["version"] == 2);
  REQUIRE(index["shards"].size() == 2);
  const auto& shard = index["shards"][1];
  CHECK(shard["raw_data"]["basename"] == "shard.00001.mds");
  CHECK(shard["raw_data"]["bytes"] == fs::file_size(directory / "set/shard.00001.mds"));
  CHECK(shard["samples"] == 1);
  CHECK(shard["hashes"] == nlohmann::json{"xxh3_64"});
  CHECK((shard["compression"].is_null() && shard["zip_data"].is_null()));
}

TEST_CASE("what was written is read, across shards") {
  const TempDirectory directory;
  const MdsReader reader(small_dataset(directory));
  CHECK(reader.size() == 3);
  CHECK(reader.shard_sizes() == std::vector<std::int64_t>{2, 1});
  CHECK(reader.tokens(0) == Ids{10, 11, 12});
  CHECK(reader.tokens(1) == Ids{20});
  CHECK(reader.tokens(2) == Ids{30, 31});
  CHECK_THROWS_WITH(reader.tokens(3), Contains("sample 3") && Contains("0 to 2"));
  CHECK_THROWS_WITH(reader.tokens(-1), Contains("sample -1"));
}

TEST_CASE("a compressed dataset is stored so alone, with hashes of both files") {
  const TempDirectory directory;
  MdsWriter writer(directory / "set", {{"tokens", "ndarray:uint16"}}, {{"md5", "xxh64"}, 1 << 20, "zstd:5"});
  writer.write_tokens(Tokens(1000, 9));
  const wt::MdsSummary summary = writer.finish();
  CHECK(directory.entries() == 1);
  CHECK_FALSE(fs::exists(directory / "set/shard.00000.mds"));
  const std::string zip = read_bytes(directory / "set/shard.00000.mds.zstd");
  CHECK(summary.stored == zip.size());
  CHECK(summary.bytes > summary.stored);
  const auto shard = nlohmann::json::parse(read_bytes(directory / "set/index.json"))["shards"][0];
  CHECK(shard["compression"] == "zstd:5");
  CHECK(shard["zip_data"]["basename"] == "shard.00000.mds.zstd");
  CHECK(shard["zip_data"]["bytes"] == zip.size());
  CHECK(shard["zip_data"]["hashes"]["md5"] == wt::mds_hash("md5", {std::as_bytes(std::span(zip))}));
  CHECK(MdsReader(directory / "set").tokens(0) == Ids(1000, 9));
  CHECK_THROWS_WITH(MdsWriter(directory / "x", {{"tokens", "bytes"}}, {{}, 9, "lzma"}), Contains("'lzma'"));
}

// The text was written by mosaicml-streaming's merge_index over folders "0" and "1", each with one shard.
TEST_CASE("indexes of subfolders are merged as Streaming does") {
  const TempDirectory directory;
  for (const auto& [name, token] : {std::pair<const char*, std::uint16_t>{"0", 1}, {"1", 2}}) {
    MdsWriter writer(directory / name, {{"tokens", "ndarray:uint16"}}, {{}, 1 << 20});
    writer.write_tokens(Tokens{token});
    writer.finish();
  }
  CHECK(wt::test::merge_mds_indexes(directory.path()) == 2);
  const auto entry = [](int folder) {
    return fmt::format(
        R"({{"column_encodings": ["ndarray:uint16"], "column_names": ["tokens"], "column_sizes": [null], )"
        R"("compression": null, "format": "mds", "hashes": [], "raw_data": {{"basename": "{}/shard.00000.mds", )"
        R"("bytes": 201, "hashes": {{}}}}, "samples": 1, "size_limit": 1048576, "version": 2, "zip_data": null}})",
        folder);
  };
  CHECK(read_bytes(directory / "index.json") ==
        fmt::format(R"({{"version": 2, "shards": [{}, {}]}})", entry(0), entry(1)));
  CHECK(MdsReader(directory.path()).tokens(1) == Ids{2});
  CHECK(wt::test::merge_mds_indexes(directory.path()) == 2);  // again, over its own
}

TEST_CASE("a reader serves many threads") {
  const TempDirectory directory;
  const MdsReader reader(small_dataset(directory));
  std::array<std::int64_t, 4> sums{};
  std::vector<std::thread> threads;
  threads.reserve(sums.size());
  for (auto& sum : sums) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) sum += reader.tokens(i % 3).at(0);
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(sums == std::array<std::int64_t, 4>{6000, 6000, 6000, 6000});
}

TEST_CASE("a new shard begins where Streaming's flush rule says") {
  // An empty shard takes 8 + config bytes, a sample its length (here 4 + 2 + 2) + 4: two fit exactly, or not.
  for (const auto& [room, shards] : {std::pair<std::uint64_t, int>{24, 1}, {23, 2}}) {
    const TempDirectory directory;
    const std::string config_with_three_digits =
        R"({"column_encodings": ["ndarray:uint16"], "column_names": ["tokens"], "column_sizes": [null], )"
        R"("compression": null, "format": "mds", "hashes": [], "size_limit": 999, "version": 2})";
    const std::uint64_t limit = 8 + config_with_three_digits.size() + room;
    REQUIRE((limit > 99 && limit < 1000));
    MdsWriter writer(directory / "set", {{"tokens", "ndarray:uint16"}}, {{}, limit});
    writer.write_tokens(Tokens{1});
    writer.write_tokens(Tokens{2});
    CHECK(writer.finish().shards == shards);
  }
}

TEST_CASE("a sample larger than the limit gets a shard of its own") {
  const TempDirectory directory;
  MdsWriter writer(directory / "set", {{"tokens", "ndarray:uint16"}}, {{}, 1});
  writer.write_tokens(Tokens(70000, 5));
  writer.write_tokens(Tokens(300, 6));
  CHECK(writer.finish().shards == 2);
  CHECK(MdsReader(directory / "set").tokens(0) == Ids(70000, 5));
  CHECK(MdsReader(directory / "set").tokens(1) == Ids(300, 6));
}

// Payloads printed by mosaicml-streaming's mds_encode.
TEST_CASE("every integer ndarray and legacy int64 bytes are read") {
  CHECK(decode("ndarray", "20040301000000020000002c010000") == Ids{1, 2, 300});  // uint32
  CHECK(decode("ndarray:int64", "04010500000000000000") == Ids{5});
  CHECK(decode("ndarray:uint16:2,2", "0100020003000400") == Ids{1, 2, 3, 4});
  CHECK(decode("ndarray", "090801020708") == Ids{7, 8});  // int8 of shape (1, 2)
  CHECK(decode("bytes", "05000000000000000600000000000000") == Ids{5, 6});
  const std::string wide = from_hex("1005") + from_hex("0001");  // 256 elements take a 16-bit dim
  CHECK(wt::encode_mds_tokens(Tokens(256, 1)).substr(0, 3) == wide.substr(1));
}

TEST_CASE("payloads that are not what they say are errors") {
  CHECK_THROWS_WITH(decode("ndarray:uint16", "04020100"), Contains("length and shape disagree"));
  CHECK_THROWS_WITH(decode("ndarray:uint16", "05"), Contains("shape is cut off"));
  CHECK_THROWS_WITH(decode("ndarray", ""), Contains("no type byte"));
  CHECK_THROWS_WITH(decode("ndarray", "63040101"), Contains("type byte is unknown"));
  CHECK_THROWS_WITH(decode("ndarray", "22040100000000"), Contains("not integers"));
  CHECK_THROWS_WITH(decode("ndarray:uint64", "07ffffffffffffffff"), Contains("shape is not that long"));
  CHECK_THROWS_WITH(decode("bytes", "0500"), Contains("length and shape disagree"));
  CHECK_THROWS_WITH(decode("ndarray:int8", "0401ff"), Contains("token id -1"));
  CHECK_THROWS_WITH(decode("ndarray:uint32", "040100000080"), Contains("token id 2147483648"));
}

TEST_CASE("encodings are Streaming's, without pickle") {
  CHECK(wt::mds_encoding_from_string("float16", "f").size == 2u);
  CHECK(wt::mds_encoding_from_string("ndarray:int32:4,5", "f").size == 80u);
  CHECK_FALSE(wt::mds_encoding_from_string("jpeg:90", "f").size);
  CHECK_THROWS_WITH(wt::mds_encoding_from_string("pkl", "f"), Contains("f: ") && Contains("run no code"));
  for (const char* const word :
       {"tokens", "ndarray:uint12", "ndarray:uint16:0", "ndarray:uint16:2,", "bytes:3", "ndarrayx", "int24", ""}) {
    CHECK_THROWS_WITH(wt::mds_encoding_from_string(word, "f"), Contains(fmt::format("'{}'", word)));
  }
}

TEST_CASE("a damaged dataset is named, file and fault") {
  const TempDirectory directory;
  const fs::path set = small_dataset(directory);
  const fs::path shard = set / "shard.00000.mds";
  const auto size = fs::file_size(shard);
  SECTION("missing index") {
    fs::remove(set / "index.json");
    CHECK_THROWS_WITH(MdsReader(set), Contains("index.json: cannot be read"));
  }
  SECTION("missing shard") {
    fs::remove(shard);
    CHECK_THROWS_WITH(MdsReader(set), Contains("shard.00000.mds: the shard is missing"));
  }
  SECTION("cut off shard") {
    fs::resize_file(shard, size - 1);
    CHECK_THROWS_WITH(MdsReader(set), Contains(fmt::format("found {} bytes, allowed are the {}", size - 1, size)) &&
                                          Contains("cut off"));
  }
  SECTION("empty shard") {
    fs::resize_file(shard, 0);
    edit_index(set, [](auto& index) { index["shards"][0]["raw_data"]["bytes"] = 0; });
    CHECK_THROWS_WITH(MdsReader(set), Contains("found 0 samples"));
  }
  SECTION("cut off inside the table, which the index knows of") {
    fs::resize_file(shard, 7);
    edit_index(set, [](auto& index) { index["shards"][0]["raw_data"]["bytes"] = 7; });
    CHECK_THROWS_WITH(MdsReader(set), Contains("found 7 bytes, needs 16 for the offsets of its 2 samples"));
  }
  SECTION("other sample count") {
    edit_index(set, [](auto& index) { index["shards"][0]["samples"] = 4'000'000'000u; });
    CHECK_THROWS_WITH(MdsReader(set), Contains("found 2 samples in the shard, allowed are the 4000000000"));
  }
  SECTION("first offset inside the table") {
    patch(shard, 4, std::string("\x01\0\0\0", 4));
    CHECK_THROWS_WITH(MdsReader(set), Contains("found offset 1 at place 0"));
  }
  SECTION("offsets past the end") {
    patch(shard, 8, "\xff\xff\xff\xff");
    CHECK_THROWS_WITH(MdsReader(set), Contains("found offset 4294967295 at place 1"));
  }
  SECTION("last offset before the end") {
    patch(shard, 12, read_bytes(shard).substr(8, 4));
    CHECK_THROWS_WITH(MdsReader(set), Contains("at place 2"));
  }
  SECTION("column length that leaves the sample") {
    patch(shard, size - 8, "\xff\xff\xff\xff");  // the last sample: length 4, then 04 01 14 00
    CHECK_THROWS_WITH(MdsReader(set).tokens(1), Contains("shard.00000.mds: sample 1") && Contains("do not add up"));
  }
}

TEST_CASE("an index that cannot be is an error that names the key") {
  const TempDirectory directory;
  const fs::path set = small_dataset(directory);
  using Json = nlohmann::json;
  const auto broken = [&](const Json::json_pointer& key, const Json& value) {
    edit_index(set, [&](Json& index) { index[key] = value; });
    std::string message = "opened";
    try {
      const MdsReader reader(set);
    } catch (const wt::Error& error) {
      message = error.what();
    }
    fs::remove_all(set);
    small_dataset(directory);
    return message;
  };
  CHECK_THAT(broken("/version"_json_pointer, 1), Contains("index.version: found 1, allowed is 2"));
  CHECK_THAT(broken("/shards"_json_pointer, "x"), Contains("index.shards: found string"));
  CHECK_THAT(broken("/shards/1/format"_json_pointer, "csv"), Contains("shards[1].format: found csv"));
  CHECK_THAT(broken("/shards/0/samples"_json_pointer, -1), Contains("shards[0].samples: found -1"));
  CHECK_THAT(broken("/shards/0/samples"_json_pointer, "2"), Contains("shards[0].samples"));
  CHECK_THAT(broken("/shards/0/column_encodings/0"_json_pointer, "pkl"), Contains("shards[0]") && Contains("'pkl'"));
  CHECK_THAT(broken("/shards/0/column_encodings/0"_json_pointer, "str"), Contains("tokens: str"));
  CHECK_THAT(broken("/shards/0/column_sizes/0"_json_pointer, 4), Contains("column_sizes: found 4"));
  CHECK_THAT(broken("/shards/0/column_names"_json_pointer, {"a", "b"}), Contains("column_names"));
  CHECK_THAT(broken("/shards/0/column_names/0"_json_pointer, "text"),
             Contains("text: ndarray:uint16") && Contains("'tokens'"));
  CHECK_THAT(broken("/shards/0/raw_data/basename"_json_pointer, "../shard.00000.mds"), Contains("raw_data.basename"));
  CHECK_THAT(broken("/shards/0/raw_data"_json_pointer, nullptr), Contains("shards[0].raw_data: found null"));
  for (const std::string& name : std::vector<std::string>{"/tmp/x", "0/../../x", "0//x", "0/", "./x", "0/.x", "",
                                                          "index.json", "0/index.json", std::string("a\0b", 3)}) {
    CAPTURE(name);
    CHECK_THAT(broken("/shards/1/raw_data/basename"_json_pointer, name),
               Contains("shards[1].raw_data.basename: found"));
  }
  CHECK_THAT(broken("/shards/1/raw_data/basename"_json_pointer, "shard.00000.mds"),
             Contains("found the file 'shard.00000.mds' twice"));
  const Json zip = {{"basename", "x.zstd"}, {"bytes", 1}, {"hashes", Json::object()}};
  CHECK_THAT(broken("/shards/0/zip_data"_json_pointer, zip), Contains("shards[0].compression: found null"));
  CHECK_THAT(broken("/shards/0/raw_data/hashes"_json_pointer, {{"sha1", 5}}),
             Contains("raw_data.hashes.sha1: found 5"));
  CHECK_THAT(broken("/shards"_json_pointer, {1}), Contains("index.shards: found number"));
  edit_index(set, [&](Json& index) {
    index["shards"][0]["zip_data"] = zip;
    index["shards"][0]["compression"] = "zstd:40";
  });
  CHECK_THROWS_WITH(MdsReader(set), Contains("shards[0]: compression: found 'zstd:40'"));
  write_bytes(set / "index.json", "{\"version\": 2,");
  CHECK_THROWS_WITH(MdsReader(set), Contains("text that is no JSON"));
  write_bytes(set / "index.json", "{\"version\": " + std::string(300, '[') + std::string(300, ']') + "}");
  CHECK_THROWS_WITH(MdsReader(set), Contains("found objects and lists in more than 200 levels"));
  write_bytes(set / "index.json", R"({"version": 2, "shards": []})");
  CHECK_THROWS_WITH(MdsReader(set), Contains("found no sample"));
}

TEST_CASE("nothing half written stays, and nothing of others is replaced") {
  const TempDirectory directory;
  SECTION("an abandoned writer leaves no trace") {
    {
      MdsWriter writer(directory / "set", {{"tokens", "ndarray:uint16"}}, {{}, 1});
      writer.write_tokens(Tokens{1});
      writer.write_tokens(Tokens{2});
      CHECK(directory.entries() == 1);
    }
    CHECK(directory.entries() == 0);
  }
  SECTION("an earlier dataset stays until the new one is whole, then goes") {
    const fs::path set = small_dataset(directory);
    const MdsReader open_before(set);
    wt::MdsWriterOptions options;
    options.overwrite = true;
    MdsWriter writer(set, {{"tokens", "ndarray:uint16"}}, options);
    writer.write_tokens(Tokens{77});
    CHECK(MdsReader(set).size() == 3);
    writer.finish();
    CHECK(MdsReader(set).tokens(0) == Ids{77});
    CHECK(directory.entries() == 1);
    CHECK(open_before.tokens(2) == Ids{30, 31});
  }
  SECTION("a dataset with a stranger's file, other columns, a file or a link stay") {
    const auto refuses = [](const fs::path& out) {
      CHECK_THROWS_WITH(MdsWriter(out, {{"tokens", "ndarray:uint16"}}),
                        Contains(out.string()) && Contains("remove it yourself"));
    };
    const fs::path set = small_dataset(directory);
    fs::create_directory_symlink(set, directory / "link");
    refuses(directory / "link");
    CHECK_THROWS_WITH(MdsWriter(set, {{"tokens", "bytes"}}), Contains("remove it yourself"));
    write_bytes(set / "notes.txt", "mine");
    refuses(set);
    write_bytes(directory / "file", "mine");
    refuses(directory / "file");
    CHECK(read_bytes(set / "notes.txt") == "mine");
  }
  SECTION("an empty directory is fine, and so is a trailing slash") {
    fs::create_directory(directory / "set");
    MdsWriter writer((directory / "set").string() + "/", {{"tokens", "ndarray:uint16"}});
    writer.write_tokens(Tokens{1});
    CHECK(writer.finish().samples == 1);
    CHECK(directory.entries() == 1);
  }
}

TEST_CASE("samples that do not fit their columns are errors") {
  const TempDirectory directory;
  MdsWriter writer(directory / "set", {{"n", "int"}, {"tokens", "ndarray:uint16"}});
  CHECK_THROWS_WITH(writer.write(std::vector<std::string>{"12345678"}), Contains("sample of 1 columns, allowed are 2"));
  CHECK_THROWS_WITH(writer.write(std::vector<std::string>{"123", ""}), Contains("column n: found 3 bytes"));
  CHECK_THROWS_WITH(wt::encode_mds_tokens(Tokens{}), Contains("found 0 tokens"));
  CHECK_THROWS_WITH(writer.finish(), Contains("no sample"));
  CHECK_THROWS_WITH(MdsWriter(directory / "x", {{"tokens", "pkl"}}), Contains("'pkl'"));
  CHECK_THROWS_WITH(MdsWriter(directory / "x", {{"tokens", "bytes"}}, {{"md4"}, 9}), Contains("'md4'"));
}

// Printed by python-xxhash.
TEST_CASE("hashes are python-xxhash's hexadecimal") {
  const std::string a = "wind", b = "tunnel";
  const auto hash = [&](const char* name) {
    return wt::mds_hash(name, {std::as_bytes(std::span(a)), std::as_bytes(std::span(b))});
  };
  CHECK(hash("xxh32") == "5b438821");
  CHECK(hash("xxh64") == "88a9d757b1d8d6e3");
  CHECK(hash("xxh3_64") == "f66089a4ca54a4a1");
  CHECK(hash("xxh128") == "82ea099c85dfeda7b5d5c4b0af8cffc5");
  CHECK(hash("xxh3_128") == hash("xxh128"));
}
