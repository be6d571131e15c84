// A cache that processes share, that has a limit, or whose disk is full.
#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <random>
#include <thread>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/file_write.hpp"
#include "tests/fixtures/faulty_store.hpp"

namespace fs = std::filesystem;
using Catch::Contains;
using namespace wt;
using namespace wt::test;

TEST_CASE("processes that share a folder fetch each shard once") {
  const TempDirectory folder;
  write_set(folder / "a", 200, 0, "zstd");
  const DatasetSpec spec = dataset_of({stream_of(folder / "a", folder / "cache")});
  const auto reader = [&](int process) {
    StoreScript script;
    script.before = [&](const std::string& name) {
      std::ofstream(folder / ("log" + std::to_string(process)), std::ios::app) << name << '\n';
    };
    const ShardCache cache(spec, options_with(script));
    std::vector<std::int64_t> ids(200);
    for (int i = 0; i < 200; ++i) ids[static_cast<std::size_t>(i)] = (i * 37 + process * 50) % 200;
    cache.prefetch(ids);
    for (const std::int64_t id : ids)
      if (cache.tokens(id).at(0) != id) throw std::runtime_error("other tokens");
  };
  CHECK(in_processes(3, reader) == std::vector<int>{0, 0, 0});
  std::vector<std::string> fetched;
  for (int process = 0; process < 3; ++process) {
    std::ifstream log(folder / ("log" + std::to_string(process)));
    for (std::string line; std::getline(log, line);) fetched.push_back(line);
  }
  std::sort(fetched.begin(), fetched.end());
  CHECK(fetched.size() == 21);  // 20 shards and the index
  CHECK(std::adjacent_find(fetched.begin(), fetched.end()) == fetched.end());
}

TEST_CASE("a process that is killed amid a fetch leaves nothing that blocks") {
  const TempDirectory folder;
  write_set(folder / "a", 25, 0, "zstd");
  DatasetSpec spec = dataset_of({stream_of(folder / "a", folder / "cache")});
  if (GENERATE(false, true)) spec.cache_limit = 20000;
  CHECK(in_process([&] {
          StoreScript script;
          const ShardCache cache(spec, options_with(script));
          cache.tokens(20);
          script.before = [&](const std::string&) {
            write_bytes(folder / "cache/shard.00000.mds.zstd.windtunnel-part", "half");
            ::kill(::getpid(), SIGKILL);
          };
          cache.tokens(0);
        }) == 100 + SIGKILL);
  const ShardCache cache(spec);
  check_all(cache, 0, 25);
  CHECK_FALSE(fs::exists(folder / "cache/shard.00000.mds.zstd.windtunnel-part"));
  CHECK(files_in(folder / "cache") == 4);
}

TEST_CASE("a full disk is an error that leaves no half of a shard") {
  const TempDirectory folder;
  write_set(folder / "a", 5, 0, "zstd");
  CHECK(in_process([&] {
          StreamSpec stream = stream_of(folder / "a", folder / "cache");
          stream.download_retry = 0;
          const ShardCache cache(dataset_of({stream}));
          limit_writes({0, {}});
          try {
            cache.tokens(0);
          } catch (const Error& error) {
            if (std::string(error.what()).find("No space left") != std::string::npos) ::_exit(5);
          }
        }) == 5);
  CHECK(files_in(folder / "cache") == 1);
  check_all(ShardCache(dataset_of({stream_of(folder / "a", folder / "cache")})), 0, 5);
}

TEST_CASE("a limit is kept by removing what was not read for the longest time") {
  const TempDirectory folder;
  const std::string codec = GENERATE("", "snappy");
  write_set(folder / "a", 200, 0, codec);
  write_set(folder / "b", 30, 1000);
  DatasetSpec spec = dataset_of({stream_of(folder / "a", folder / "cache"), stream_of({}, folder / "b")});
  const std::uint64_t indexes = fs::file_size(folder / "a/index.json") + fs::file_size(folder / "b/index.json");
  spec.cache_limit = static_cast<std::int64_t>(indexes) + 6 * 2500;
  StoreScript script;
  const ShardCache cache(spec, options_with(script));
  std::mt19937 random(3);  // NOLINT: the same order in every run
  for (int i = 0; i < 300; ++i) {
    const auto id = static_cast<std::int64_t>(random() % 230);
    if (i % 3 == 0) cache.prefetch(std::vector<std::int64_t>{id, (id + 10) % 230, (id + 20) % 230});
    CHECK(cache.tokens(id).at(0) == (id < 200 ? id : 800 + id));
    CHECK(cache.usage() <= static_cast<std::uint64_t>(*spec.cache_limit));
    CHECK(indexes + shard_bytes(folder / "cache") <= static_cast<std::uint64_t>(*spec.cache_limit));
  }
  CHECK(script.fetched.size() > 21);   // some more than once
  CHECK(files_in(folder / "b") == 4);  // what could not be fetched again stays
  CHECK(files_in(folder / "a") == 21);
}

TEST_CASE("the shard that was read last is not the one that goes") {
  const TempDirectory folder;
  write_set(folder / "a", 80, 0);
  DatasetSpec spec = dataset_of({stream_of(folder / "a", folder / "cache")});
  const std::uint64_t shard = fs::file_size(folder / "a/shard.00000.mds");
  spec.cache_limit = static_cast<std::int64_t>(fs::file_size(folder / "a/index.json") + 4 * shard);
  if (static_cast<std::uint64_t>(*spec.cache_limit) < 4 * shard) return;
  const ShardCache cache(spec);
  for (const std::int64_t id : {0, 10, 20, 30, 0, 40}) cache.tokens(id);
  CHECK(fs::exists(folder / "cache/shard.00000.mds"));
  CHECK_FALSE(fs::exists(folder / "cache/shard.00001.mds"));
  CHECK(cache.tokens(11).at(0) == 11);  // fetched again
}

TEST_CASE("several processes keep one limit") {
  const TempDirectory folder;
  write_set(folder / "a", 300, 0, "zstd");
  DatasetSpec spec = dataset_of({stream_of(folder / "a", folder / "cache")});
  spec.cache_limit = static_cast<std::int64_t>(fs::file_size(folder / "a/index.json")) + 8 * 2600;
  const auto reader = [&](int process) {
    const ShardCache cache(spec);
    for (int i = 0; i < 150; ++i) {
      const std::int64_t id = (i * 7 + process * 100) % 300;
      if (i % 4 == 0) cache.prefetch(std::vector<std::int64_t>{id, (id + 7) % 300, (id + 14) % 300, (id + 21) % 300});
      if (cache.tokens(id).at(0) != id) throw std::runtime_error("other tokens");
      if (cache.usage() > static_cast<std::uint64_t>(*spec.cache_limit)) throw std::runtime_error("beyond the limit");
    }
  };
  CHECK(in_processes(3, reader) == std::vector<int>{0, 0, 0});
  check_all(ShardCache(spec), 0, 300);
}

TEST_CASE("what a shard takes is noted while no other process can begin with it, also where it fails") {
  const TempDirectory folder;
  write_set(folder / "a", 20, 0);
  StreamSpec spec = stream_of(folder / "a", folder / "cache");
  spec.download_retry = 0;
  StoreScript script;
  StreamFolder stream(spec, kTokensColumn, options_with(script).fetch), elsewhere(spec, kTokensColumn, {});
  std::vector<std::string> heard;
  const auto hears = [&](const char* what) {
    return [&, what] { heard.push_back(std::string(what) + (elsewhere.prepared_elsewhere(0) ? "" : ", unguarded")); };
  };
  const ShardMaking making{hears("begins"), hears("made"), hears("failed")};
  script.faults = {StoreFault::unreachable};
  CHECK_THROWS(stream.prepare(0, true, making));
  CHECK(heard == std::vector<std::string>{"begins", "failed"});
  heard.clear();
  CHECK(stream.prepare(0, true, making) == StreamFolder::Prepared::made);
  CHECK(heard == std::vector<std::string>{"begins", "made"});
  heard.clear();
  CHECK(stream.prepare(0, true, making) == StreamFolder::Prepared::found);
  CHECK(heard.empty());
  stream.unless_being_prepared(0, [&] {
    hears("looked at")();
    elsewhere.unless_being_prepared(0, [&] { heard.push_back("by two"); });
  });
  CHECK(heard == std::vector<std::string>{"looked at"});
  CHECK_FALSE(elsewhere.prepared_elsewhere(0));
}

TEST_CASE("a limit that holds too little is refused, and so is another beside one in use") {
  const TempDirectory folder;
  write_set(folder / "a", 80, 0);
  DatasetSpec spec = dataset_of({stream_of(folder / "a", folder / "cache")});
  spec.cache_limit = 1000;
  CHECK_THROWS_WITH(ShardCache(spec),
                    Contains("cache_limit: found 1000 bytes") && Contains("four times the largest shard"));
  spec.cache_limit = 100000;
  const ShardCache cache(spec);
  const ShardCache beside(spec);
  spec.cache_limit = 90000;
  CHECK_THROWS_WITH(ShardCache(spec), Contains("another process uses this folder"));
}
