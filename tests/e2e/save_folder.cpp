// A run whose checkpoints go to a save_folder, too, and whose own are damaged or gone.
#include <catch2/catch.hpp>

#include "tests/fixtures/saved_run.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;

namespace {

RunSpec mirrored_run(std::int64_t steps, const fs::path& store) {
  RunSpec run = saved_run(steps);
  run.save_folder = store.string();
  return run;
}

Ended goes_on(const RunSpec& run, const fs::path& folder, const std::vector<std::string>& said) {
  Ended ended = train(run, folder);
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  for (const std::string& words : said) CHECK_THAT(ended.said, Catch::Contains(words));
  CHECK(steps_of(folder) == steps_of(trained(saved_run(12))));
  CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(trained(saved_run(12))))));
  return ended;
}

}  // namespace

TEST_CASE("a checkpoint that is damaged on this machine comes from the save_folder") {
  const fs::path folder = scratch("damaged-here"), store = scratch("damaged-here-store");
  REQUIRE(train(mirrored_run(8, store), folder).status == 0);
  flip_byte(shard(checkpoint_of(folder, 8), 2));
  const Ended ended = goes_on(mirrored_run(12, store), folder,
                              {"step-00000008 cannot be read and is passed over: ", "fetched step-00000008 from ",
                               "continuing after step 8 from "});
  CHECK(fs::exists(checkpoint_of(folder, 8).string() + ".unreadable"));
  CHECK(leftovers(folder).empty());
}

TEST_CASE("of a folder that is gone the newest whole one comes, with the run's records") {
  const fs::path folder = scratch("other-machine"), store = scratch("other-machine-store");
  REQUIRE(train(mirrored_run(8, store), folder).status == 0);
  fs::remove_all(folder);
  fs::remove(shard(store / "step-00000008", 2));
  flip_byte(shard(store / "step-00000006", 1));
  const Ended ended = goes_on(mirrored_run(12, store), folder,
                              {"checkpoint of step 8 at ", "checkpoint of step 6 at ", "fetched step-00000004 from ",
                               "continuing after step 4 from "});
  CHECK(checkpoint_steps(folder) == std::vector<std::int64_t>{4, 6, 8, 10, 12});
  CHECK(leftovers(folder).empty());
}

TEST_CASE("what is whole here is not fetched, and where nothing is whole the run says so") {
  const fs::path folder = scratch("whole-here"), store = scratch("whole-here-store");
  REQUIRE(train(mirrored_run(4, store), folder).status == 0);
  for (const std::int64_t step : {2, 4}) flip_byte(shard(store / checkpoint_of(folder, step).filename(), 1));
  const fs::path other = scratch("nowhere-whole");
  const Ended refused = train(mirrored_run(12, store), other);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.said, Catch::Contains("found checkpoints and none that is whole"));
  CHECK(checkpoint_steps(other).empty());
  const Ended ended = goes_on(mirrored_run(12, store), folder, {"continuing after step 4 from "});
  CHECK_THAT(ended.said, !Catch::Contains("fetched"));
}
