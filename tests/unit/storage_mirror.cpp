#include "trainer/storage/mirror.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <nlohmann/json.hpp>

#include "tests/fixtures/fetched_checkpoint.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/safetensors/manifest.hpp"
#include "trainer/safetensors/safetensors.hpp"
#include "trainer/safetensors/sealed_document.hpp"
#include "trainer/storage/file_store.hpp"

using namespace wt;
using Catch::Contains;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kShards = {"shard-1.safetensors", "shard-2.safetensors", "shard-3.safetensors"};

/// A checkpoint folder as the trainer leaves it; every value is `value`.
fs::path local_checkpoint(const fs::path& folder, std::int64_t step, float value) {
  const fs::path checkpoint = folder / step_name(step);
  fs::create_directories(checkpoint);
  const std::vector<float> values(1000, value);
  json manifest = {{"schema", kCheckpointSchema}, {"step", step},
                   {"data", json::object()},      {"model", json::object()},
                   {"sampler", json::object()},   {"files", json::array()}};
  for (const std::string& name : kShards) {
    const WrittenFile file = write_safetensors(checkpoint / name, {{"w", "F32", {1000}, values.data()}});
    manifest["files"].push_back({{"name", name}, {"bytes", file.bytes}, {"header_xxh3", file.header_xxh3}});
  }
  test::write_bytes(checkpoint / "manifest.json", sealed(manifest).dump(1));
  return checkpoint;
}

void save(CheckpointMirror& mirror, const fs::path& checkpoint, std::int64_t step) {
  for (const std::string& name : kShards) mirror.upload(step, checkpoint, {name});  // a rank each
  mirror.commit(checkpoint);
}

/// Of the first tensor: which checkpoint it is.
float value_of(const fs::path& checkpoint) {
  float first = 0;
  float last = 0;
  const StoredTensor tensor = read_safetensors(checkpoint / kShards[0]).tensors.at("w");
  read_values(tensor, 0, 1, &first);
  const StoredTensor other = read_safetensors(checkpoint / kShards[2]).tensors.at("w");
  read_values(other, 999, 1, &last);
  CHECK(first == last);
  return first;
}

/// Fails at one call, before or after it had its effect.
class FailingStore : public FileStore {
 private:
  template <class F>
  auto failing(F&& call) {
    const std::lock_guard lock(mutex_);
    const bool fails = calls++ == fail_at;
    if (fails && !after) throw StoreFailed(StoreFailed::Kind::unreachable, "made to fail");
    const auto result = call();
    if (fails) throw StoreFailed(StoreFailed::Kind::unreachable, "made to fail");
    return result;
  }
  std::recursive_mutex mutex_;  // read() asks for size()

 public:
  using FileStore::FileStore;
  int fail_at = -1;
  bool after = false;
  int calls = 0;

  std::optional<std::uint64_t> size(const std::string& name) override {
    return failing([&] { return FileStore::size(name); });
  }
  std::string read(const std::string& name, std::uint64_t at_most) override {
    return failing([&] { return FileStore::read(name, at_most); });
  }
  void fetch(const std::string& name, const fs::path& to, double timeout_s) override {
    failing([&] { return FileStore::fetch(name, to, timeout_s), 0; });
  }
  void put(const std::string& name, std::string_view bytes, bool only_if_absent) override {
    failing([&] { return FileStore::put(name, bytes, only_if_absent), 0; });
  }
  void upload(const fs::path& from, const std::string& name) override {
    failing([&] { return FileStore::upload(from, name), 0; });
  }
  void remove(const std::string& name) override {
    failing([&] { return FileStore::remove(name), 0; });
  }
};

void never(std::int64_t step, const std::string& why) { FAIL("step " << step << ": " << why); }

}  // namespace

TEST_CASE("a checkpoint goes to a store and comes to a machine that has nothing") {
  const test::TempDirectory folder;
  FileStore store(folder / "store");
  CheckpointMirror mirror(store);
  CHECK(mirror.steps().empty());
  CHECK_FALSE(test::fetch_newest(mirror, folder / "empty", never));
  save(mirror, local_checkpoint(folder / "local", 2, 2), 2);
  save(mirror, local_checkpoint(folder / "local", 12, 12), 12);
  CHECK(mirror.steps() == std::vector<std::int64_t>{12, 2});
  CHECK(store.read("latest", 100) == "step-00000012\n");
  const auto fetched = test::fetch_newest(mirror, folder / "other", never);
  REQUIRE(fetched);
  CHECK(*fetched == folder / "other/step-00000012");
  CHECK(value_of(*fetched) == 12);
  CHECK(read_manifest(*fetched).at("step") == 12);
  CHECK(value_of(test::fetch(mirror, 2, folder / "other")) == 2);
  CHECK_THROWS_WITH(test::fetch(mirror, 2, folder / "other"), Contains("is there already"));
  CHECK(std::distance(fs::directory_iterator(folder / "other"), fs::directory_iterator()) == 2);
}

TEST_CASE("processes that share a folder bring a share of the files each") {
  const test::TempDirectory folder;
  FileStore store(folder / "store");
  std::atomic<int> moves = 0;
  store.on_progress([&] { ++moves; });
  CheckpointMirror mirror(store);
  save(mirror, local_checkpoint(folder / "local", 2, 2), 2);
  CHECK(moves.exchange(0) >= 3);
  const auto shards_in = [](const fs::path& checkpoint) {
    return std::count_if(fs::directory_iterator(checkpoint), fs::directory_iterator(),
                         [](const auto& entry) { return entry.path().extension() == ".safetensors"; });
  };
  const fs::path begun = mirror.begin_fetch(2, folder / "other");
  CHECK(shards_in(begun) == 0);
  mirror.fetch_files(begun, 1, 2);
  CHECK(shards_in(begun) == 1);
  CHECK_FALSE(fs::exists(folder / "other" / step_name(2)));
  mirror.fetch_files(begun, 0, 2);
  CHECK(moves >= 3);
  const fs::path there = CheckpointMirror::end_fetch(begun);
  CHECK(there == folder / "other" / step_name(2));
  CHECK(value_of(there) == 2);
  CheckpointMirror::abandon_fetch(mirror.begin_fetch(2, folder / "other"));
  CHECK(std::distance(fs::directory_iterator(folder / "other"), fs::directory_iterator()) == 1);
}

TEST_CASE("the time that a fetch may take follows its bytes") {
  CHECK(fetch_limit_s(0) == 3600);
  CHECK(fetch_limit_s(1'000'000'000'000) > 24 * 3600);
}

TEST_CASE("what is not whole is no checkpoint") {
  const test::TempDirectory folder;
  FileStore store(folder / "store");
  CheckpointMirror mirror(store);
  save(mirror, local_checkpoint(folder / "local", 2, 2), 2);
  const fs::path newer = local_checkpoint(folder / "local", 3, 3);
  mirror.upload(3, newer, {kShards[0], kShards[1]});
  CHECK_THROWS_WITH(mirror.commit(newer), Contains("shard-3.safetensors: found nothing"));
  CHECK(mirror.steps() == std::vector<std::int64_t>{2});
  store.put(step_name(3) + "/" + kShards[2], "short");
  CHECK_THROWS_WITH(mirror.commit(newer), Contains("found 5 bytes"));
  CHECK(store.read("latest", 100) == "step-00000002\n");
  mirror.upload(3, newer, {kShards[2]});
  mirror.commit(newer);
  mirror.commit(newer);  // whose answer was lost
  CHECK(mirror.steps() == std::vector<std::int64_t>{3, 2});
}

TEST_CASE("damage at the store is found, and the checkpoint before is taken") {
  const test::TempDirectory folder;
  FileStore store(folder / "store");
  CheckpointMirror mirror(store);
  save(mirror, local_checkpoint(folder / "local", 2, 2), 2);
  save(mirror, local_checkpoint(folder / "local", 3, 3), 3);
  const std::string victim = GENERATE(as<std::string>(), "shard-2.safetensors", "manifest.json", "missing");
  const std::string name = step_name(3) + "/" + (victim == "missing" ? kShards[1] : victim);
  std::string bytes = store.read(name, 1 << 20);
  bytes[bytes.size() / 2] ^= 1;
  if (victim == "missing")
    store.remove(name);
  else
    store.put(name, bytes);
  std::vector<std::int64_t> passed_over;
  const auto fetched = test::fetch_newest(mirror, folder / "other", [&](std::int64_t step, const std::string& why) {
    passed_over.push_back(step);
    CHECK_THAT(why, Contains(victim == "missing" ? kShards[1] : victim));
  });
  REQUIRE(fetched);
  CHECK(value_of(*fetched) == 2);
  CHECK(passed_over == std::vector<std::int64_t>{3});
  CHECK(std::distance(fs::directory_iterator(folder / "other"), fs::directory_iterator()) == 1);
  store.remove(step_name(2) + "/" + kShards[0]);
  CHECK_THROWS_WITH(test::fetch_newest(mirror, folder / "third", [](std::int64_t, const std::string&) {}),
                    Contains("found 2 checkpoints, none of them whole"));
  CHECK(fs::is_empty(folder / "third"));
}

TEST_CASE("a manifest that leads out of its folder is none") {
  const test::TempDirectory folder;
  FileStore store(folder / "store");
  CheckpointMirror mirror(store);
  save(mirror, local_checkpoint(folder / "local", 2, 2), 2);
  const std::string name = step_name(2) + "/manifest.json";
  for (const char* victim : {"../../outside", "/tmp/outside", ".."}) {
    json manifest = json::parse(store.read(name, 1 << 20));
    manifest["files"][0]["name"] = victim;
    store.put(name, sealed(manifest).dump());
    CHECK_THROWS_WITH(test::fetch(mirror, 2, folder / "other"), Contains("allowed are files of its own folder"));
    CHECK(fs::is_empty(folder / "other"));
  }
}

TEST_CASE("whatever call fails, the store has the checkpoint before or the new one, and a second try ends it") {
  for (const bool after : {false, true})
    for (auto [fail_at, failed] = std::pair(0, true); failed; ++fail_at) {  // until a save goes through
      CAPTURE(after, fail_at);
      const test::TempDirectory folder;
      FailingStore store(folder / "store");
      CheckpointMirror mirror(store);
      save(mirror, local_checkpoint(folder / "local", 2, 2), 2);
      const fs::path newer = local_checkpoint(folder / "local", 3, 3);
      store.calls = 0, store.fail_at = fail_at, store.after = after;
      failed = false;
      try {
        save(mirror, newer, 3);
        mirror.retain(3, 1);
      } catch (const StoreFailed&) {
        failed = true;
      }
      store.fail_at = -1;
      const auto fetched = test::fetch_newest(mirror, folder / "other", never);
      REQUIRE(fetched);
      const float found = value_of(*fetched);
      CHECK((found == 2 || found == 3));
      if (!failed) CHECK(found == 3);
      if (found == 2) {
        save(mirror, newer, 3);
        CHECK(value_of(*test::fetch_newest(mirror, folder / "third", never)) == 3);
      }
    }
}

TEST_CASE("a step that is a checkpoint already is not written over") {
  const test::TempDirectory folder;
  FileStore store(folder / "store");
  CheckpointMirror mirror(store);
  save(mirror, local_checkpoint(folder / "local", 3, 3), 3);
  const fs::path other = local_checkpoint(folder / "again", 3, 33);
  CHECK_THROWS_WITH(mirror.upload(3, other, kShards), Contains("found a checkpoint of this step"));
  CHECK_THROWS_AS(mirror.commit(other), StoreFailed);
  // A run that goes on from before it sets it aside.
  mirror.start(3);
  CHECK(mirror.steps() == std::vector<std::int64_t>{3});
  mirror.start(2);
  CHECK(mirror.steps().empty());
  CHECK(store.size(step_name(3) + "/manifest.json.passed-over"));
  save(mirror, other, 3);
  CHECK(value_of(*test::fetch_newest(mirror, folder / "other", never)) == 33);
}

TEST_CASE("the newest are kept") {
  const test::TempDirectory folder;
  FileStore store(folder / "store");
  CheckpointMirror mirror(store);
  for (const std::int64_t step : {1, 2, 3, 4}) save(mirror, local_checkpoint(folder / "local", step, 1), step);
  store.put("step-00000001x/not-ours", "");
  mirror.retain(4, -1);
  CHECK(mirror.steps().size() == 4);
  mirror.retain(3, 2);  // step 4 is newer than what this run saved
  CHECK(mirror.steps() == std::vector<std::int64_t>{4, 3, 2});
  mirror.retain(4, 0);
  CHECK(mirror.steps() == std::vector<std::int64_t>{4});
  CHECK(store.list("step-").size() == 5);
  CHECK(store.size("step-00000001x/not-ours"));
}
