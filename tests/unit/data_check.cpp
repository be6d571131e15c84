#include <catch2/catch.hpp>

#include "configs/base/error.hpp"
#include "tests/fixtures/mds_sets.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/data/data_check.hpp"
#include "trainer/data/pack.hpp"

namespace fs = std::filesystem;
using Catch::Contains;
using wt::check_dataset;
using wt::DataCheckOptions;
using wt::DataCheckResult;
using wt::test::read_bytes;
using wt::test::TempDirectory;
using wt::test::write_bytes;

namespace {

/// 400 bytes and 256: a hundred samples of 4 (+1), in shards of some 200 bytes of samples.
fs::path packed(const TempDirectory& directory, const std::string& compression = "", const std::string& name = "set") {
  std::string text;
  for (int i = 0; i < 400; ++i) text += static_cast<char>(i % 200);
  write_bytes(directory / "text", text);
  wt::PackOptions options;
  options.seq_len = 4;
  options.writer.compression = compression;
  options.writer.size_limit = 500;
  wt::pack_text({directory / "text"}, directory / name, options);
  return directory / name;
}

void flip(const fs::path& file, std::size_t place) {
  std::string bytes = read_bytes(file);
  bytes.at(place) = static_cast<char>(bytes.at(place) ^ 1);
  write_bytes(file, bytes);
}

}  // namespace

TEST_CASE("a sound data set, stored as it is and compressed") {
  const TempDirectory directory;
  for (const std::string compression : {"", "zstd:3", "gz", "snappy"}) {
    const fs::path set = packed(directory, compression, "set-" + compression);
    DataCheckOptions options;
    options.seq_len = 4;
    options.vocabulary = 257;
    const DataCheckResult r = check_dataset(set, options);
    CHECK(r.problem_count == 0);
    CHECK(r.samples == 100);
    CHECK(r.tokens == 500);
    CHECK(r.shards > 3);
    CHECK(r.lengths == std::map<std::int64_t, std::int64_t>{{5, 100}});
    CHECK(r.largest_id == 256);
    CHECK(r.hash == "xxh3_64");
    CHECK(r.compression == compression);
    CHECK(r.columns == std::vector<std::string>{"tokens: ndarray:uint16"});
    REQUIRE(r.shown.size() == 3);
    CHECK(r.shown[0].sample == 0);
    for (const wt::ShownSample& shown : r.shown) CHECK(shown.ids[1] == (4 * shown.sample + 1) % 200);
  }
}

TEST_CASE("the seed draws the samples that are shown, each once") {
  const TempDirectory directory;
  const fs::path set = packed(directory);
  DataCheckOptions options;
  options.shown = 100;
  CHECK(check_dataset(set, options).shown.size() == 100);
  options.shown = 5;
  const auto first = check_dataset(set, options);
  options.seed = 1;
  const auto other = check_dataset(set, options);
  REQUIRE(other.shown.size() == 5);
  bool differs = false;
  for (std::size_t i = 0; i < 5; ++i) differs |= first.shown[i].sample != other.shown[i].sample;
  CHECK(differs);
}

TEST_CASE("each damage is a problem that names its file, and the other shards are read") {
  const TempDirectory directory;
  const fs::path set = packed(directory);
  const std::int64_t all = check_dataset(set).shards;
  const auto one_problem = [&](const std::string& what) {
    const DataCheckResult r = check_dataset(set);
    REQUIRE(r.problem_count == 1);
    CHECK_THAT(r.problems[0], Contains("shard.00001.mds") && Contains(what));
    CHECK(r.lengths.at(5) < 100);
    CHECK(r.lengths.at(5) >= 100 * (all - 2) / all);
  };
  const fs::path shard = set / "shard.00001.mds";
  SECTION("a flipped bit") {
    flip(shard, fs::file_size(shard) - 3);
    one_problem("xxh3_64");
  }
  SECTION("cut off") {
    fs::resize_file(shard, fs::file_size(shard) - 1);
    one_problem("cut off");
  }
  SECTION("missing") {
    fs::remove(shard);
    one_problem("shard.00001.mds");
  }
}

TEST_CASE("damage of compressed shards is found by the hash of their file") {
  const TempDirectory directory;
  const fs::path set = packed(directory, "zstd");
  flip(set / "shard.00002.mds.zstd", 40);
  const DataCheckResult r = check_dataset(set);
  REQUIRE(r.problem_count == 1);
  CHECK_THAT(r.problems[0], Contains("shard.00002.mds.zstd: found xxh3_64"));
}

TEST_CASE("lengths and ids that do not fit the run are problems, of which twenty are listed") {
  const TempDirectory directory;
  const fs::path set = packed(directory);
  DataCheckOptions options;
  options.seq_len = 6;
  const DataCheckResult lengths = check_dataset(set, options);
  CHECK(lengths.problem_count == 100);
  CHECK(lengths.problems.size() == 20);
  CHECK_THAT(lengths.problems[0], Contains("shard.00000.mds: sample 0: found 5 tokens, allowed are 6 or 7"));
  options.seq_len = 5;  // the data set of another trainer
  options.vocabulary = 256;
  const DataCheckResult ids = check_dataset(set, options);
  REQUIRE(ids.problem_count == 1);
  CHECK_THAT(ids.problems[0], Contains("found id 256 at place 4, allowed are 0 to 255"));
}

TEST_CASE("folders that are no data set, and columns that nobody trains on, are errors") {
  const TempDirectory directory;
  CHECK_THROWS_WITH(check_dataset(directory / "nowhere"), Contains("index.json"));
  wt::MdsWriter writer(directory / "numbers", {{"n", "int"}});
  const std::string payload = wt::test::encode_mds_int(3);
  writer.write({&payload, 1});
  writer.finish();
  CHECK_THROWS_WITH(check_dataset(directory / "numbers"), Contains("found the columns n: int"));
}

TEST_CASE("documents of text: lengths are bytes") {
  const TempDirectory directory;
  write_bytes(directory / "a.jsonl", "{\"text\": \"abc\"}\n{\"text\": \"\\u00fc\"}\n");
  wt::PackOptions options;
  options.samples = wt::SampleKind::text;
  wt::pack_text({directory / "a.jsonl"}, directory / "set", options);
  const DataCheckResult r = check_dataset(directory / "set");
  CHECK(r.text);
  CHECK(r.lengths == std::map<std::int64_t, std::int64_t>{{2, 1}, {3, 1}});
  CHECK(r.shown.at(1).text == "\xc3\xbc");
}

TEST_CASE("a merged index: shards in subfolders, and one of them damaged") {
  const TempDirectory directory;
  fs::create_directory(directory / "merged");
  const std::int64_t shards = check_dataset(packed(directory, "zstd", "merged/0")).shards;
  packed(directory, "zstd", "merged/1");
  CHECK(wt::test::merge_mds_indexes(directory / "merged") == 2);
  const DataCheckResult sound = check_dataset(directory / "merged");
  CHECK(sound.problem_count == 0);
  CHECK(sound.shards == 2 * shards);
  CHECK(sound.samples == 200);
  CHECK(sound.tokens == 1000);
  flip(directory / "merged/1/shard.00000.mds.zstd", 30);
  const DataCheckResult damaged = check_dataset(directory / "merged");
  REQUIRE(damaged.problem_count == 1);
  CHECK_THAT(damaged.problems[0], Contains("merged/1/shard.00000.mds.zstd"));
}
