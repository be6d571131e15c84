// A place of a store is one run's at a time.
#include "trainer/storage/lease.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "configs/base/clock.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"
#include "trainer/storage/file_store.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;
using nlohmann::json;

namespace {

const LeaseTerms kShort{0.5, 0.05};

std::unique_ptr<StoreLease> lease(const TempDirectory& store, const std::string& run) {
  return std::make_unique<StoreLease>(open_store(store.path().string()), run, kShort);
}

/// The record of a run on another machine.
std::string elsewhere(int renewals) {
  return json{{"run", "a"},
              {"host", "far"},
              {"process", 12},
              {"processes", "another boot"},
              {"since", "2026-01-01 00:00:00 UTC"},
              {"renewals", renewals}}
      .dump();
}

bool finally(const std::function<bool()>& holds) { return wait_until(60, 0.01, holds); }

}  // namespace

TEST_CASE("a place that a process of this machine holds is refused with its name, and free when it has ended") {
  const TempDirectory store;
  {
    const auto held = lease(store, "a");
    CHECK_THAT(usage_error([&] { lease(store, "b"); }),
               Contains("found another run that saves there: process " + std::to_string(getpid())) &&
                   Contains("run a") && Contains("another save_folder"));
    CHECK(held->lost().empty());
  }
  CHECK(store.entries() == 0);
  lease(store, "b");
}

TEST_CASE("a process of this machine that is gone, and the same run, hold nobody up") {
  const TempDirectory store;
  json gone = json::parse(elsewhere(0));
  {
    const auto held = lease(store, "b");
    gone["processes"] = json::parse(read_bytes(store / "owner-00000001.json")).at("processes");
  }
  gone["process"] = 1 << 22;  // no process has such a number (pid_max)
  write_bytes(store / "owner-00000007.json", gone.dump());
  const double begin = steady_s();
  {
    const auto held = lease(store, "b");
    CHECK(std::filesystem::exists(store / "owner-00000008.json"));
    CHECK(store.entries() == 1);  // the older record went
  }
  write_bytes(store / "owner-00000007.json", elsewhere(0));
  lease(store, "a");
  CHECK(steady_s() - begin < kShort.lasts_s);  // nothing was waited for
}

TEST_CASE("an owner elsewhere that is heard of is refused; one that is not is followed when its lease is over") {
  const TempDirectory store;
  write_bytes(store / "owner-00000003.json", elsewhere(0));
  {
    std::atomic<bool> ends = false;
    std::thread renews([&] {
      for (int i = 1; !ends; ++i) {
        open_store(store.path().string())->put("owner-00000003.json", elsewhere(i));
        usleep(20'000);
      }
    });
    CHECK_THAT(usage_error([&] { lease(store, "b"); }), Contains("process 12 on far, since 2026-01-01"));
    ends = true;
    renews.join();
  }
  const auto held = lease(store, "b");
  CHECK(std::filesystem::exists(store / "owner-00000004.json"));
  CHECK_FALSE(std::filesystem::exists(store / "owner-00000003.json"));
}

TEST_CASE("the record is renewed, and who is no longer the owner learns of it") {
  const TempDirectory store;
  const auto held = lease(store, "a");
  const std::string first = read_bytes(store / "owner-00000001.json");
  CHECK(finally([&] { return read_bytes(store / "owner-00000001.json") != first; }));
  write_bytes(store / "owner-00000002.json", elsewhere(0));
  CHECK(finally([&] { return !held->lost().empty(); }));
  CHECK_THAT(held->lost(), Contains("was taken by another run: process 12 on far"));
}

TEST_CASE("a run is named by its folder, and a copy of the folder is another run") {
  const TempDirectory folder;
  for (const char* name : {"one", "two"}) std::filesystem::create_directory(folder / name);
  const std::string one = run_of_folder(folder / "one");
  CHECK(run_of_folder(folder / "one") == one);
  std::filesystem::copy_file(folder / "one/.run", folder / "two/.run");
  CHECK(run_of_folder(folder / "two") != one);
}
