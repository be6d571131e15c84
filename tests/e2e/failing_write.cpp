// A checkpoint that cannot be written ends the run with its reason and harms nothing that was there.
#include <catch2/catch.hpp>

#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/trainer_fixture.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;

TEST_CASE("a file-size limit below a shard") {
  RunSpec run = with_layout(small_run(), 2, 2, 2);
  run.save = true, run.save_interval = 2, run.steps = 2, run.optimizer.final_lr_fraction = 1;
  const fs::path folder = scratch("limited");
  REQUIRE(train(run, folder).status == 0);
  const State earlier = state_of(checkpoint_of(folder, 2));
  const fs::path shard = checkpoint_of(folder, 2) / "shard-00001-model-00001-of-00002.safetensors";

  run.steps = 4;
  Launch limited;
  limited.more = {"--max-restarts", "0"};
  limited.file_limit_bytes = static_cast<std::int64_t>(fs::file_size(shard)) / 2;
  const Ended ended = train(run, folder, limited);
  INFO(ended.said);
  CHECK(ended.status == 4);
  CHECK_THAT(ended.said, Catch::Contains("checkpoint of step 4 was not written") &&
                             Catch::Contains("step-00000004.partial/shard-0000") && Catch::Contains("File too large"));
  CHECK(checkpoint_steps(folder) == std::vector<std::int64_t>{2});
  CHECK(latest_checkpoint(folder) == checkpoint_of(folder, 2));
  CHECK((state_of(checkpoint_of(folder, 2)) == earlier));
  CHECK(leftovers(folder).empty());

  const Ended again = train(run, folder);  // with room it goes on where it was
  CHECK(again.status == 0);
  CHECK_THAT(again.said, Catch::Contains("continuing after step 2 "));
  CHECK(checkpoint_steps(folder) == std::vector<std::int64_t>{2, 4});
}
