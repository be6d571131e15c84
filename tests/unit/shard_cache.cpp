// Data sets of several streams, local and remote: what is fetched, verified and kept, and what goes wrong on the way.
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/file_write.hpp"
#include "tests/fixtures/faulty_store.hpp"
#include "tests/fixtures/mds_sets.hpp"
#include "trainer/data/mds_hash.hpp"

namespace fs = std::filesystem;
using Catch::Contains;
using namespace wt;
using namespace wt::test;

TEST_CASE("samples of all streams have one numbering, and a remote is cached beside a local one") {
  const TempDirectory folder;
  write_set(folder / "a/train", 25, 100, "zstd");
  write_set(folder / "b", 12, 500);
  StreamSpec a = stream_of(folder / "a", folder / "cache");
  a.split = "train";
  const DatasetSpec spec = dataset_of({a, stream_of({}, folder / "b")});
  {
    const ShardCache cache(spec);
    CHECK(cache.size() == 37);
    CHECK(cache.shard_sizes() == std::vector<std::vector<std::int64_t>>{{10, 10, 5}, {10, 2}});
    CHECK(files_in(folder / "cache") == 1);  // the index: nothing is fetched before it is needed
    check_all(cache, 500, 12, 25);
    check_all(cache, 100, 25);
    CHECK_THROWS_WITH(cache.tokens(37), Contains("sample 37, allowed are 0 to 36"));
    CHECK_THROWS_WITH(cache.tokens(-1), Contains("sample -1"));
  }
  CHECK(fs::exists(folder / "cache/train/shard.00002.mds"));
  CHECK(files_in(folder / "cache") == 4);  // without the compressed ones
  fs::remove_all(folder / "a");
  check_all(ShardCache(spec), 100, 25);  // nothing more is needed of the remote
}

TEST_CASE("compressed files stay where they are the data set, or by keep_zip") {
  for (const char* const codec : {"zstd", "gz:1", "br:1", "bz2", "snappy"}) {
    CAPTURE(codec);
    const TempDirectory folder;
    write_set(folder / "a", 12, 0, codec, {"sha1", "xxh64"});
    StreamSpec kept = stream_of(folder / "a", folder / "kept");
    kept.keep_zip = true;
    for (const StreamSpec& stream : {kept, stream_of(folder / "a", folder / "not"), stream_of({}, folder / "a")})
      check_all(ShardCache(dataset_of({stream})), 0, 12);
    CHECK(files_in(folder / "kept") == 5);
    CHECK(files_in(folder / "not") == 3);
    CHECK(files_in(folder / "a") == 5);
    check_all(ShardCache(dataset_of({stream_of(folder / "a", folder / "a")})), 0, 12);
  }
}

TEST_CASE("without local the cache is a temporary folder named by a hash of the remote") {
  const TempDirectory folder;
  write_set(folder / "a", 3, 0);
  const std::string remote = (folder / "a").string();
  const fs::path cached =
      fs::temp_directory_path() / fmt::format("windtunnel-{}-{}", ::geteuid(),
                                              mds_hash("blake2s", {std::as_bytes(std::span(remote))}).substr(0, 32));
  check_all(ShardCache(dataset_of({stream_of(remote, {})})), 0, 3);
  CHECK(files_in(cached) == 2);
  fs::remove_all(cached);
}

TEST_CASE("shards are fetched ahead in the order of the samples") {
  const TempDirectory folder;
  write_set(folder / "a", 40, 0);
  StoreScript script;
  ShardCacheOptions options = options_with(script);
  options.threads = 1;
  const ShardCache cache(dataset_of({stream_of(folder / "a", folder / "cache")}), options);
  cache.prefetch(std::vector<std::int64_t>{35, 36, -1, 2, 35, 15});
  CHECK(wait_until(60, 0.01, [&] { return files_in(folder / "cache") == 4; }));
  check_all(cache, 0, 40);
  CHECK(script.fetched == std::vector<std::string>{"index.json", "shard.00003.mds", "shard.00000.mds",
                                                   "shard.00001.mds", "shard.00002.mds"});
}

TEST_CASE("a fetch that fails is tried again, and then named") {
  const TempDirectory folder;
  const std::string codec = GENERATE("", "zstd");
  write_set(folder / "a", 5, 0, codec);
  StoreScript script;
  const auto open = [&] {
    return ShardCache(dataset_of({stream_of(folder / "a", folder / "cache")}), options_with(script));
  };
  const StoreFault fault = GENERATE(StoreFault::cut, StoreFault::flip, StoreFault::unreachable);
  SECTION("twice, then it is there") {
    script.faults = {StoreFault::unreachable, StoreFault::cut};  // of the index
    const ShardCache cache = open();
    script.faults = {fault, fault};
    check_all(cache, 0, 5);
  }
  SECTION("three times: an error, and nothing is left") {
    const ShardCache cache = open();
    script.faults = {fault, fault, fault};
    CHECK_THROWS_WITH(cache.tokens(0), Contains("shard.00000.mds") && Contains((folder / "a").string()) &&
                                           Contains("failed in 3 attempts of at most 60 s") &&
                                           Contains("download_retry"));
    CHECK(files_in(folder / "cache") == 1);
    check_all(cache, 0, 5);  // and it may be tried again
  }
  SECTION("in the background: told when the sample is asked for") {
    const ShardCache cache = open();
    script.faults = {fault, fault, fault};
    cache.prefetch(std::vector<std::int64_t>{0});
    CHECK(wait_until(60, 0.01, [&] {
      const std::lock_guard<std::mutex> guard(script.mutex);
      return script.faults.empty();
    }));
    CHECK_THROWS_WITH(cache.tokens(0), Contains("failed in 3 attempts"));
  }
}

TEST_CASE("what hangs ends by its timeout, and what is not there is not asked for again") {
  const TempDirectory folder;
  write_set(folder / "a", 5, 0);
  StoreScript script;
  StreamSpec stream = stream_of(folder / "a", folder / "cache");
  stream.download_timeout_s = 0.01;
  stream.download_retry = 1;
  const ShardCache cache(dataset_of({stream}), options_with(script));
  script.faults = {StoreFault::hang, StoreFault::hang};
  CHECK_THROWS_WITH(cache.tokens(0), Contains("in 2 attempts of at most 0.01 s") && Contains("timed out"));
  script.faults = {StoreFault::missing};
  CHECK_THROWS_WITH(cache.tokens(0), Contains("in 1 attempt of") && Contains("no such file"));
  check_all(cache, 0, 5);
}

TEST_CASE("hashes are compared with the index") {
  const TempDirectory folder;
  const fs::path set = write_set(folder / "a", 5, 0, "", {"sha1", "xxh3_64"});
  const auto wrong = [&](const char* hash) {
    edit(set, [&](auto& index) { index["shards"][0]["raw_data"]["hashes"][hash] = "0123"; });
  };
  StreamSpec local = stream_of({}, set), remote = stream_of(set, folder / "cache");
  SECTION("an xxHash always") {
    wrong("xxh3_64");
    CHECK_THROWS_WITH(ShardCache(dataset_of({local})).tokens(0), Contains("shard.00000.mds: found xxh3_64 "));
    remote.download_retry = 0;
    CHECK_THROWS_WITH(ShardCache(dataset_of({remote})).tokens(0), Contains("found xxh3_64 "));
  }
  SECTION("another in a local folder if validate_hash names it") {
    wrong("sha1");
    check_all(ShardCache(dataset_of({local})), 0, 5);
    local.validate_hash = "sha1";
    CHECK_THROWS_WITH(ShardCache(dataset_of({local})).tokens(0), Contains("found sha1 "));
  }
  SECTION("any in a download") {
    edit(set, [&](auto& index) { index["shards"][0]["raw_data"]["hashes"] = {{"sha1", "0123"}}; });
    remote.download_retry = 0;
    CHECK_THROWS_WITH(ShardCache(dataset_of({remote})).tokens(0), Contains("found sha1 "));
    CHECK(files_in(folder / "cache") == 1);
  }
  SECTION("one that the index does not have") {
    local.validate_hash = remote.validate_hash = "md5";
    for (const StreamSpec& stream : {local, remote})
      CHECK_THROWS_WITH(ShardCache(dataset_of({stream})).tokens(0),
                        Contains("validate_hash: found md5, allowed are the hashes of index.json (sha1, xxh3_64)"));
  }
}

TEST_CASE("a compressed shard that was tampered with is refused") {
  const TempDirectory folder;
  const fs::path set = write_set(folder / "a", 5, 0, "zstd", {});
  StreamSpec remote = stream_of(set, folder / "cache");
  remote.download_retry = 0;
  SECTION("the raw file is larger than the index says") {
    edit(set, [](auto& index) { index["shards"][0]["raw_data"]["bytes"] = 100; });
    CHECK_THROWS_WITH(ShardCache(dataset_of({remote})).tokens(0), Contains("more bytes, allowed are the 100"));
  }
  SECTION("other samples than the index says") {
    edit(set, [](auto& index) { index["shards"][0]["samples"] = 4; });
    CHECK_THROWS_WITH(ShardCache(dataset_of({remote})).tokens(0), Contains("found 5 samples in the shard"));
    return;
  }
  SECTION("the compressed file is of another size") {
    edit(set, [](auto& index) { index["shards"][0]["zip_data"]["bytes"] = 10; });
    CHECK_THROWS_WITH(ShardCache(dataset_of({remote})).tokens(0), Contains("allowed are the 10 of index.json"));
  }
  SECTION("no stream of the format") {
    edit(set, [](auto& index) { index["shards"][0]["compression"] = "gz"; });
    CHECK_THROWS_WITH(ShardCache(dataset_of({remote})).tokens(0), Contains("gz: found a damaged stream"));
  }
  CHECK(files_in(folder / "cache") == 1);
}

TEST_CASE("streams that cannot be are refused when they are opened") {
  const TempDirectory folder;
  StoreScript script;
  const auto open = [&](const StreamSpec& stream) { ShardCache(dataset_of({stream}), options_with(script)); };
  CHECK_THROWS_WITH(open(stream_of({}, {})), Contains("neither remote nor local"));
  CHECK_THROWS_WITH(open(stream_of({}, folder / "none")), Contains("none/index.json: cannot be read"));
  StreamSpec missing = stream_of(folder / "none", folder / "cache");
  CHECK_THROWS_WITH(open(missing), Contains("cache/index.json: fetching it from") && Contains("in 1 attempt "));
  fs::create_directory(folder / "empty");
  write_bytes(folder / "empty/index.json", R"({"shards": [], "version": 2})");
  CHECK_THROWS_WITH(open(stream_of({}, folder / "empty")), Contains("found no sample"));
  write_bytes(folder / "empty/index.json", R"({"shards": [)");
  CHECK_THROWS_WITH(open(stream_of(folder / "empty", folder / "cache")), Contains("text that is no JSON"));
  CHECK(files_in(folder / "cache") == 0);
}

TEST_CASE("a shard is not read through a link that leaves the folder") {
  const TempDirectory folder;
  const fs::path set = write_set(folder / "a", 5, 0);
  fs::rename(set / "shard.00000.mds", folder / "elsewhere");
  fs::create_symlink(folder / "elsewhere", set / "shard.00000.mds");
  CHECK_THROWS_WITH(ShardCache(dataset_of({stream_of({}, set)})).tokens(0), Contains("found a link to"));
  fs::create_directory(folder / "cache");
  fs::create_directory(folder / "outside");
  fs::create_directory_symlink(folder / "outside", folder / "cache/0");
  write_set(folder / "b/0", 5, 0);
  wt::test::merge_mds_indexes(folder / "b");
  CHECK_THROWS_WITH(ShardCache(dataset_of({stream_of(folder / "b", folder / "cache")})).tokens(0),
                    Contains("found a link to"));
  CHECK(files_in(folder / "outside") == 0);
}

TEST_CASE("a merged data set is fetched into its subfolders") {
  const TempDirectory folder;
  write_set(folder / "a/0", 15, 0, "zstd");
  write_set(folder / "a/1", 5, 15, "zstd");
  CHECK(wt::test::merge_mds_indexes(folder / "a") == 2);
  check_all(ShardCache(dataset_of({stream_of(folder / "a", folder / "cache")})), 0, 20);
  CHECK(fs::exists(folder / "cache/1/shard.00000.mds"));
}
