// A remote for tests of the shard cache: a folder behind a store that fails when it is told to, data sets whose samples
// say which they are, and processes that share a cache.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temp_directory.hpp"
#include "trainer/data/mds_writer.hpp"
#include "trainer/data/shard_cache.hpp"

namespace wt::test {

enum class StoreFault { cut, flip, unreachable, hang, missing };

/// What is to go wrong, fetch by fetch, and what has been fetched.
struct StoreScript {
  std::deque<StoreFault> faults;
  std::vector<std::string> fetched;
  std::function<void(const std::string&)> before = [](const std::string&) {};
  std::mutex mutex;
};

class FaultyStore : public Store {
 public:
  FaultyStore(const std::string& folder, StoreScript& script) : files_(open_store(folder)), script_(script) {}
  std::string address() const override { return files_->address(); }
  std::optional<std::uint64_t> size(const std::string& name) override { return files_->size(name); }
  std::string read(const std::string& name, std::uint64_t at_most) override { return files_->read(name, at_most); }
  void put(const std::string& name, std::string_view bytes, bool absent) override { files_->put(name, bytes, absent); }
  void upload(const std::filesystem::path& from, const std::string& name) override { files_->upload(from, name); }
  std::vector<StoreEntry> list(const std::string& prefix) override { return files_->list(prefix); }
  void remove(const std::string& name) override { files_->remove(name); }

  void fetch(const std::string& name, const std::filesystem::path& to, double timeout_s) override {
    script_.before(name);
    std::optional<StoreFault> fault;
    {
      const std::lock_guard<std::mutex> guard(script_.mutex);
      script_.fetched.push_back(name);
      if (!script_.faults.empty()) {
        fault = script_.faults.front();
        script_.faults.pop_front();
      }
    }
    using Kind = StoreFailed::Kind;
    if (fault == StoreFault::unreachable) throw StoreFailed(Kind::unreachable, "connection reset");
    if (fault == StoreFault::missing) throw StoreFailed(Kind::not_found, "no such file");
    if (fault == StoreFault::hang) {
      std::this_thread::sleep_for(std::chrono::duration<double>(timeout_s));
      throw StoreFailed(Kind::unreachable, "timed out");
    }
    files_->fetch(name, to, timeout_s);
    if (fault == StoreFault::cut) std::filesystem::resize_file(to, std::filesystem::file_size(to) - 1);
    if (fault == StoreFault::flip) {
      std::string bytes = read_bytes(to);
      bytes.back() = static_cast<char>(bytes.back() ^ 1);
      write_bytes(to, bytes);
    }
  }

 private:
  std::unique_ptr<Store> files_;
  StoreScript& script_;
};

inline ShardCacheOptions options_with(StoreScript& script) {
  ShardCacheOptions options;
  options.fetch.open = [&script](const std::string& address) { return std::make_unique<FaultyStore>(address, script); };
  options.fetch.first_pause_s = 0.001;
  return options;
}

/// Sample i holds first + i and 99 times 7; a shard takes ten of them.
inline std::filesystem::path write_set(const std::filesystem::path& folder, int samples, std::uint16_t first,
                                       const std::string& compression = "",
                                       std::vector<std::string> hashes = {"xxh3_64"}) {
  std::filesystem::create_directories(folder.parent_path());
  MdsWriter writer(folder, {{"tokens", "ndarray:uint16"}}, {std::move(hashes), 2400, compression});
  std::vector<std::uint16_t> tokens(100, 7);
  for (int i = 0; i < samples; ++i) {
    tokens[0] = static_cast<std::uint16_t>(first + i);
    writer.write_tokens(tokens);
  }
  writer.finish();
  return folder;
}

inline StreamSpec stream_of(const std::filesystem::path& remote, const std::filesystem::path& local) {
  StreamSpec stream;
  stream.remote = remote.string();
  stream.local = local.string();
  return stream;
}

inline DatasetSpec dataset_of(std::vector<StreamSpec> streams) {
  DatasetSpec spec;
  spec.streams = std::move(streams);
  return spec;
}

inline std::size_t files_in(const std::filesystem::path& folder) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    files += entry.is_regular_file() && !entry.path().filename().string().starts_with(".");
  return files;
}

inline std::uint64_t shard_bytes(const std::filesystem::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code gone;  // removed meanwhile
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("shard."))
      if (const std::uint64_t size = entry.file_size(gone); !gone) bytes += size;
  return bytes;
}

inline void check_all(const ShardCache& cache, std::int32_t first, int samples, std::int64_t offset = 0) {
  for (int i = 0; i < samples; ++i) {
    const auto tokens = cache.tokens(offset + i);
    REQUIRE(tokens.size() == 100);
    CHECK(tokens[0] == first + i);
  }
}

inline void edit(const std::filesystem::path& set, const std::function<void(nlohmann::json&)>& change) {
  auto index = nlohmann::json::parse(read_bytes(set / "index.json"));
  change(index);
  write_bytes(set / "index.json", index.dump());
}

/// What each of so many processes of their own ends with, side by side: 0, 9 where it throws, 100 and more by a signal.
inline std::vector<int> in_processes(int count, const std::function<void(int process)>& work) {
  std::vector<pid_t> children;
  for (int process = 0; process < count; ++process) {
    const pid_t child = ::fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    int status = 0;
    try {
      work(process);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "%s\n", failure.what());
      status = 9;
    }
    ::_exit(status);
  }
  std::vector<int> ends;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    ends.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status));
  }
  return ends;
}

inline int in_process(const std::function<void()>& work) {
  return in_processes(1, [&](int) { work(); }).front();
}

}  // namespace wt::test
