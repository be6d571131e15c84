// A training is kept by all that decides on its bits, and nothing else is handed out for it.
#include "tests/fixtures/trained_runs.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>

#include "tests/fixtures/temp_directory.hpp"

using namespace wt::test;
namespace fs = std::filesystem;

namespace {

/// Runs of a trainer that is a file of the test's; counts what it trains.
class Site {
 public:
  Site() {
    unsetenv("OMP_NUM_THREADS");
    trainer("one");
    setenv("WINDTUNNEL_TRAIN", (folder_ / "trainer").c_str(), 1);
    setenv("WT_TRAINED_RUNS", (folder_ / "kept").c_str(), 1);
  }
  ~Site() { unsetenv("WINDTUNNEL_TRAIN"), unsetenv("WT_TRAINED_RUNS"); }
  void trainer(const std::string& bytes) { write_bytes(folder_ / "trainer", bytes); }
  /// What the run's folder holds, as a process that begins now gets it.
  std::string run(const std::string& text, bool fails = false) {
    const fs::path to = folder_ / ("run" + std::to_string(++runs_));
    TrainedRuns().copy_or_train(text, own(), to, [&](const fs::path& folder) {
      ++trainings;
      fs::create_directories(folder / "checkpoints");
      write_bytes(folder / "checkpoints" / "latest", text + std::to_string(trainings));
      if (fails) throw std::runtime_error("it failed");
    });
    return read_bytes(to / "checkpoints" / "latest");
  }
  fs::path own() const { return folder_ / "own"; }
  fs::path folder() const { return folder_.path(); }
  int trainings = 0;

 private:
  TempDirectory folder_;
  int runs_ = 0;
};

}  // namespace

TEST_CASE("the same run is trained once, and each asker has a copy of its own") {
  Site site;
  CHECK(site.run("a") == "a1");
  write_bytes(site.folder() / "run1/checkpoints/latest", "spoilt");
  CHECK(site.run("a") == "a1");
  CHECK(site.run("b") == "b2");
  CHECK(site.trainings == 2);
}

TEST_CASE("another trainer, other variables and a folder of the process are trained anew") {
  Site site;
  site.run("a");
  setenv("OMP_NUM_THREADS", "3", 1);
  CHECK(site.run("a") == "a2");
  unsetenv("OMP_NUM_THREADS");
  CHECK(site.run("a") == "a1");
  site.trainer("two");
  CHECK(site.run("a") == "a3");
  site.trainer("one");
  CHECK(site.run("a") == "a1");  // two trainers may be tested beside each other
  for (const auto& entry : fs::directory_iterator(site.folder() / "kept"))
    if (entry.is_directory()) fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(7));
  CHECK(site.run("a") == "a1");  // in use again
  site.trainer("two");
  CHECK(site.run("a") == "a4");  // nobody had used what it trained
  const std::string writes_elsewhere = "save_folder: " + site.own().string() + "/store";
  CHECK(site.run(writes_elsewhere) != site.run(writes_elsewhere));
}

TEST_CASE("a training that failed is not kept") {
  Site site;
  CHECK_THROWS_WITH(site.run("a", true), "it failed");
  CHECK(site.run("a") == "a2");
}

TEST_CASE("data has the name of its bytes, and is repaired where others have changed it") {
  Site site;
  const fs::path data = site.folder() / "data";
  fs::create_directories(data);
  write_bytes(data / "shard", "tokens");
  const fs::path kept = TrainedRuns().keep_data(data);
  CHECK((kept != data && TrainedRuns().keep_data(data) == kept));
  write_bytes(kept / "shard", "tokenz");
  CHECK(TrainedRuns().keep_data(data) == kept);
  CHECK(read_bytes(kept / "shard") == "tokens");
  write_bytes(data / "shard", "others");
  CHECK(TrainedRuns().keep_data(data) != kept);
}

TEST_CASE("without a folder to keep them in, all is trained, and data stays where it is") {
  Site site;
  unsetenv("WT_TRAINED_RUNS");
  site.run("a");
  CHECK(site.run("a") == "a2");
  CHECK(TrainedRuns().keep_data(site.folder()) == site.folder());
}
