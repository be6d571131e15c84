#include <catch2/catch.hpp>

#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"
#include "trainer/storage/file_store.hpp"
#include "trainer/storage/parallel_parts.hpp"

using namespace wt;
using Catch::Contains;
namespace fs = std::filesystem;

TEST_CASE("a folder holds files by name") {
  const test::TempDirectory folder;
  const auto store = open_store((folder / "not/yet").string());
  CHECK(store->list("").empty());
  CHECK_FALSE(store->size("a/b"));
  store->put("a/b", "text");
  store->put("a/c", "more text");
  store->put("d", "");
  CHECK(store->size("a/b") == 4u);
  CHECK(store->read("a/b", 4) == "text");
  CHECK_THROWS_WITH(store->read("a/b", 3), Contains("found 4 bytes, allowed are 3"));
  CHECK(store->list("").size() == 3);
  CHECK(store->list("a/").size() == 2);
  CHECK(store->list("a/").front().name == "a/b");
  CHECK(store->list("a/").front().bytes == 4);
  store->fetch("a/c", folder / "copy", 60);
  CHECK(test::read_bytes(folder / "copy") == "more text");
  store->upload(folder / "copy", "e/f");
  CHECK(store->read("e/f", 100) == "more text");
  store->remove("a/b");
  store->remove("a/b");
  store->remove("a/c");
  CHECK_FALSE(fs::exists(folder / "not/yet/a"));
  CHECK(store->list("").size() == 2);
}

TEST_CASE("a put that replaces nothing says what is there") {
  const test::TempDirectory folder;
  const auto store = open_store("file://" + folder.path().string());
  store->put("x", "first", true);
  try {
    store->put("x", "second", true);
    FAIL("it is replaced");
  } catch (const StoreFailed& e) {
    CHECK(e.kind() == StoreFailed::Kind::exists);
  }
  CHECK(store->read("x", 100) == "first");
  store->put("x", "third");
  CHECK(store->read("x", 100) == "third");
  CHECK(folder.entries() == 1);
}

TEST_CASE("of two that put the same name, one does it") {
  const test::TempDirectory folder;
  const auto store = open_store(folder.path().string());
  std::atomic<bool> given_up = false;
  std::atomic<int> won = 0;
  in_parallel(16, 8, given_up, [&](std::uint64_t i) {
    try {
      store->put("x", std::to_string(i), true);
      ++won;
    } catch (const StoreFailed& e) {
      if (e.kind() != StoreFailed::Kind::exists) throw;
    }
  });
  CHECK(won == 1);
}

TEST_CASE("what is not there is told, and leaves the place as it was") {
  const test::TempDirectory folder;
  const auto store = open_store(folder.path().string());
  test::write_bytes(folder / "to", "before");
  try {
    store->fetch("x", folder / "to", 60);
    FAIL("it is there");
  } catch (const StoreFailed& e) {
    CHECK(e.kind() == StoreFailed::Kind::not_found);
  }
  CHECK_THROWS_AS(store->read("x", 1), StoreFailed);
  CHECK_THROWS_AS(store->upload(folder / "missing", "y"), StoreFailed);
  CHECK(test::read_bytes(folder / "to") == "before");
  CHECK(folder.entries() == 1);
}

TEST_CASE("names stay inside") {
  const test::TempDirectory folder;
  const auto store = open_store(folder.path().string());
  for (const std::string& name :
       {std::string(), std::string("/etc/passwd"), std::string("../x"), std::string("a/../../x"), std::string("a/./b"),
        std::string("a//b"), std::string("a/"), std::string("a\0b", 3)}) {
    CAPTURE(name);
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { store->size(name); }, [&] { store->read(name, 1); }, [&] { store->fetch(name, folder / "x", 1); },
             [&] { store->put(name, ""); }, [&] { store->upload(folder / "x", name); }, [&] { store->remove(name); }})
      CHECK_THAT(test::usage_error(call), Contains("relative paths"));
  }
}

TEST_CASE("addresses that no store has name what to use") {
  CHECK_THAT(test::usage_error([] { open_store("az://container/x"); }), Contains("s3proxy") && Contains("rclone"));
  CHECK_THAT(test::usage_error([] { open_store("abfss://c@a.dfs.core.windows.net/x"); }), Contains("rclone"));
  CHECK_THAT(test::usage_error([] { open_store("gs://bucket"); }), Contains("https://storage.googleapis.com"));
  CHECK_THAT(test::usage_error([] { open_store("r2://bucket"); }), Contains("r2.cloudflarestorage.com"));
  CHECK_THAT(test::usage_error([] { open_store("http://host/x"); }), Contains("allowed are s3://"));
  CHECK_THAT(test::usage_error([] { open_store("file://host/x"); }), Contains("three slashes"));
  CHECK_THAT(test::usage_error([] { open_store(""); }), Contains("name one"));
  CHECK(is_remote_address("s3://bucket"));
  CHECK_FALSE(is_remote_address("/s3://bucket"));
}

TEST_CASE("the first part that fails ends the rest") {
  std::atomic<bool> given_up = false;
  std::atomic<int> done = 0;
  CHECK_THROWS_WITH(in_parallel(1000, 4, given_up,
                                [&](std::uint64_t i) {
                                  if (i == 7) throw_runtime("part seven");
                                  ++done;
                                }),
                    Contains("part seven"));
  CHECK(given_up);
  given_up = false;
  done = 0;
  in_parallel(100, 16, given_up, [&](std::uint64_t) { ++done; });
  CHECK(done == 100);
}
