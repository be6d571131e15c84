// Data sets of several streams, local and remote: what is fetched, verified, kept, removed, and what goes wrong on the
// way. The remote is a folder, behind a store that fails when it is told to.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <deque>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "configs/spec/support/clock.hpp"
#include "configs/spec/support/error.hpp"
#include "configs/spec/support/file_write.hpp"
#include "tests/support/temp_directory.hpp"
#include "trainer/data/mds_hash.hpp"
#include "trainer/data/mds_writer.hpp"
#include "trainer/data/shard_cache.hpp"

namespace fs = std::filesystem;
using Catch::Contains;
using namespace wt;
using namespace wt::test;

namespace {

enum class Fault { cut, flip, unreachable, hang, missing };

/// What is to go wrong, fetch by fetch, and what has been fetched.
struct Script {
  std::deque<Fault> faults;
  std::vector<std::string> fetched;
  std::function<void(const std::string&)> before = [](const std::string&) {};
  std::mutex mutex;
};

class FaultyStore : public Store {
 public:
  FaultyStore(const std::string& folder, Script& script) : files_(open_store(folder)), script_(script) {}
  std::string address() const override { return files_->address(); }
  std::optional<std::uint64_t> size(const std::string& name) override { return files_->size(name); }
  std::string read(const std::string& name, std::uint64_t at_most) override { return files_->read(name, at_most); }
  void put(const std::string& name, std::string_view bytes, bool absent) override { files_->put(name, bytes, absent); }
  void upload(const fs::path& from, const std::string& name) override { files_->upload(from, name); }
  std::vector<StoreEntry> list(const std::string& prefix) override { return files_->list(prefix); }
  void remove(const std::string& name) override { files_->remove(name); }

  void fetch(const std::string& name, const fs::path& to, double timeout_s) override {
    script_.before(name);
    std::optional<Fault> fault;
    {
      const std::lock_guard<std::mutex> guard(script_.mutex);
      script_.fetched.push_back(name);
      if (!script_.faults.empty()) {
        fault = script_.faults.front();
        script_.faults.pop_front();
      }
    }
    using Kind = StoreFailed::Kind;
    if (fault == Fault::unreachable) throw StoreFailed(Kind::unreachable, "connection reset");
    if (fault == Fault::missing) throw StoreFailed(Kind::not_found, "no such file");
    if (fault == Fault::hang) {
      std::this_thread::sleep_for(std::chrono::duration<double>(timeout_s));
      throw StoreFailed(Kind::unreachable, "timed out");
    }
    files_->fetch(name, to, timeout_s);
    if (fault == Fault::cut) fs::resize_file(to, fs::file_size(to) - 1);
    if (fault == Fault::flip) {
      std::string bytes = read_bytes(to);
      bytes.back() = static_cast<char>(bytes.back() ^ 1);
      write_bytes(to, bytes);
    }
  }

 private:
  std::unique_ptr<Store> files_;
  Script& script_;
};

ShardCacheOptions options_with(Script& script) {
  ShardCacheOptions options;
  options.fetch.open = [&script](const std::string& address) { return std::make_unique<FaultyStore>(address, script); };
  options.fetch.first_pause_s = 0.001;
  return options;
}

/// Sample i holds first + i and 99 times 7; a shard takes ten of them.
fs::path write_set(const fs::path& folder, int samples, std::uint16_t first, const std::string& compression = "",
                   std::vector<std::string> hashes = {"xxh3_64"}) {
  fs::create_directories(folder.parent_path());
  MdsWriter writer(folder, {{"tokens", "ndarray:uint16"}}, {std::move(hashes), 2400, compression});
  std::vector<std::uint16_t> tokens(100, 7);
  for (int i = 0; i < samples; ++i) {
    tokens[0] = static_cast<std::uint16_t>(first + i);
    writer.write_tokens(tokens);
  }
  writer.finish();
  return folder;
}

StreamSpec stream_of(const fs::path& remote, const fs::path& local) {
  StreamSpec stream;
  stream.remote = remote.string();
  stream.local = local.string();
  return stream;
}

DatasetSpec dataset_of(std::vector<StreamSpec> streams) {
  DatasetSpec spec;
  spec.streams = std::move(streams);
  return spec;
}

std::size_t files_in(const fs::path& folder) {
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    files += entry.is_regular_file() && !entry.path().filename().string().starts_with(".");
  return files;
}

std::uint64_t shard_bytes(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code gone;  // removed meanwhile
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("shard."))
      if (const std::uint64_t size = entry.file_size(gone); !gone) bytes += size;
  return bytes;
}

void check_all(const ShardCache& cache, std::int32_t first, int samples, std::int64_t offset = 0) {
  for (int i = 0; i < samples; ++i) {
    const auto tokens = cache.tokens(offset + i);
    REQUIRE(tokens.size() == 100);
    CHECK(tokens[0] == first + i);
  }
}

void edit(const fs::path& set, const std::function<void(nlohmann::json&)>& change) {
  auto index = nlohmann::json::parse(read_bytes(set / "index.json"));
  change(index);
  write_bytes(set / "index.json", index.dump());
}

/// What a process of its own ends with.
int in_process(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 0;
    try {
      work();
    } catch (const std::exception&) {
      status = 9;
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

}  // namespace

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
  Script script;
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
  Script script;
  const auto open = [&] {
    return ShardCache(dataset_of({stream_of(folder / "a", folder / "cache")}), options_with(script));
  };
  const Fault fault = GENERATE(Fault::cut, Fault::flip, Fault::unreachable);
  SECTION("twice, then it is there") {
    script.faults = {Fault::unreachable, Fault::cut};  // of the index
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
  Script script;
  StreamSpec stream = stream_of(folder / "a", folder / "cache");
  stream.download_timeout_s = 0.01;
  stream.download_retry = 1;
  const ShardCache cache(dataset_of({stream}), options_with(script));
  script.faults = {Fault::hang, Fault::hang};
  CHECK_THROWS_WITH(cache.tokens(0), Contains("in 2 attempts of at most 0.01 s") && Contains("timed out"));
  script.faults = {Fault::missing};
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
  Script script;
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
  merge_mds_indexes(folder / "b");
  CHECK_THROWS_WITH(ShardCache(dataset_of({stream_of(folder / "b", folder / "cache")})).tokens(0),
                    Contains("found a link to"));
  CHECK(files_in(folder / "outside") == 0);
}

TEST_CASE("a merged data set is fetched into its subfolders") {
  const TempDirectory folder;
  write_set(folder / "a/0", 15, 0, "zstd");
  write_set(folder / "a/1", 5, 15, "zstd");
  CHECK(merge_mds_indexes(folder / "a") == 2);
  check_all(ShardCache(dataset_of({stream_of(folder / "a", folder / "cache")})), 0, 20);
  CHECK(fs::exists(folder / "cache/1/shard.00000.mds"));
}

TEST_CASE("processes that share a folder fetch each shard once") {
  const TempDirectory folder;
  write_set(folder / "a", 200, 0, "zstd");
  const DatasetSpec spec = dataset_of({stream_of(folder / "a", folder / "cache")});
  const auto reader = [&](int process) {
    return [&, process] {
      Script script;
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
  };
  std::vector<std::thread> waiting;
  std::vector<int> ends(3, -1);
  std::vector<pid_t> children;
  for (int process = 0; process < 3; ++process) {
    const pid_t child = ::fork();
    if (child == 0) {
      int status = 0;
      try {
        reader(process)();
      } catch (const std::exception&) {
        status = 9;
      }
      ::_exit(status);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
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
          Script script;
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
  Script script;
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
  std::vector<pid_t> children;
  for (int process = 0; process < 3; ++process) {
    const pid_t child = ::fork();
    if (child == 0) {
      int status = 0;
      try {
        const ShardCache cache(spec);
        for (int i = 0; i < 150; ++i) {
          const std::int64_t id = (i * 7 + process * 100) % 300;
          if (i % 4 == 0)
            cache.prefetch(std::vector<std::int64_t>{id, (id + 7) % 300, (id + 14) % 300, (id + 21) % 300});
          if (cache.tokens(id).at(0) != id || cache.usage() > static_cast<std::uint64_t>(*spec.cache_limit)) status = 8;
        }
      } catch (const std::exception& failure) {
        std::fputs(failure.what(), stderr);
        status = 9;
      }
      ::_exit(status);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
  check_all(ShardCache(spec), 0, 300);
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
