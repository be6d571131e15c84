// The lines of metrics.jsonl from one membership of ranks to the next.
#include "trainer/executor/recorder.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// What rank 0 finds in metrics.jsonl and leaves there when it goes on after step 3.
std::string after_step_3(const std::string& found, const std::string& own_last) {
  const TempDirectory folder;
  write_bytes(folder / "metrics.jsonl", found);
  RunSpec run;
  run.steps = 9;
  const Recorder recorder(run, folder.path(), 0, 3, std::nullopt, own_last);
  CHECK(recorder.last_line() == own_last);
  return read_bytes(folder / "metrics.jsonl");
}

const std::string kTwo = "{\"step\":1}\n{\"step\":2}\n", kThird = "{\"step\":3}", kFourth = "{\"step\":4}";

}  // namespace

TEST_CASE("the line of the last step that was done is there once, whoever writes it") {
  const std::string all = kTwo + kThird + "\n";
  CHECK(after_step_3(kTwo, kThird) == all);                  // rank 0 was lost before it wrote its line
  CHECK(after_step_3(kTwo + "{\"st", kThird) == all);        // or while it did
  CHECK(after_step_3(all, kThird) == all);                   // or after it
  CHECK(after_step_3(all + kFourth + "\n", kThird) == all);  // or after that of a step that others have not done
  CHECK(after_step_3(all, kFourth) == all);                  // this rank has
  CHECK(after_step_3(kTwo, "") == kTwo);                     // from a checkpoint: nothing was done here
}

TEST_CASE("how many times in a row a run diverged at the same step") {
  const TempDirectory folder;
  RunSpec run;
  run.steps = 9;
  const auto times = [&](std::int64_t step) {
    Recorder(run, folder.path(), 0, 3, std::nullopt).diverged(step);
    const auto written = nlohmann::json::parse(read_bytes(folder / "diverged.json"));
    CHECK(written.at("step") == step);
    CHECK(written.at("unix_s") > 0);
    return written.at("times").get<int>();
  };
  CHECK(times(4) == 1);
  CHECK(times(4) == 2);
  CHECK(times(5) == 1);
  write_bytes(folder / "diverged.json", "{");
  CHECK(times(5) == 1);
  Recorder(run, folder.path(), 1, 3, std::nullopt).diverged(5);  // rank 0 has written it
  CHECK(times(5) == 2);
}
