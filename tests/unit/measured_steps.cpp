// The file of --measured: what it may say, and what is refused by name.
#include "configs/files/measured_steps.hpp"

#include <catch2/catch.hpp>
#include <fstream>

#include "configs/files/find.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;

namespace {

std::vector<MeasuredStep> read(const TempDirectory& folder, const std::string& text) {
  const auto file = folder.path() / "measured.yaml";
  std::ofstream(file) << text;
  return read_measured_steps(file);
}

}  // namespace

TEST_CASE("a measured step is of a run and a cluster, in seconds or tokens") {
  const TempDirectory folder;
  const RunSpec run = read_run(find_config("runs", "llama3-8b-128-h100"));
  std::filesystem::copy_file(find_config("runs", "llama3-8b-128-h100"), folder.path() / "mine.yaml");
  const auto steps = read(folder,
                          "steps:\n- {run: mine.yaml, cluster: hgx-h100, step_s: 2.5, reserved: 60GiB}\n"
                          "- {run: llama3-8b-128-h100, cluster: hgx-h200, tokens_per_s_per_gpu: 6000}\n");
  REQUIRE(steps.size() == 2);
  CHECK((steps[0].run_file == "mine.yaml" && steps[0].step_s == 2.5 && steps[0].cluster.name == "hgx-h100"));
  CHECK((steps[0].reserved_bytes == 60.0 * (1 << 30) && !steps[0].allocated_bytes));
  CHECK((steps[1].run.name == run.name && steps[1].cluster.name == "hgx-h200"));
  const double tokens = static_cast<double>(run.tokens_per_step()) / static_cast<double>(run.layout.world());
  CHECK(steps[1].step_s == Approx(tokens / 6000));
}

TEST_CASE("what is no measured step is refused by name") {
  const TempDirectory folder;
  const auto refused = [&](const std::string& text, const std::string& says) {
    INFO(text);
    CHECK_THROWS_WITH(read(folder, text), Catch::Contains("measured.yaml") && Catch::Contains(says));
  };
  const std::string run = "run: llama3-8b-128-h100, cluster: hgx-h100";
  refused("steps: []\n", "at least one");
  refused("runs: []\n", "steps");
  refused("steps:\n- {" + run + "}\n", "none of step_s and tokens_per_s_per_gpu");
  refused("steps:\n- {" + run + ", step_s: 1, tokens_per_s_per_gpu: 1}\n", "both of step_s");
  refused("steps:\n- {step_s: 1}\n", "run");
  refused("steps:\n- {run: llama3-8b-128-h100, step_s: 1}\n", "cluster");
  refused("steps:\n- {" + run + ", step_s: 1, reserved: 5}\n", "reserved");
  refused("steps:\n- {" + run + ", step_s: 1, allocated: 1KB}\n", "allocated");
  refused("steps:\n- {" + run + ", step_s: 0}\n", "step_s");
  refused("steps:\n- {" + run + ", step_s: .nan}\n", "step_s");
  refused("steps:\n- {" + run + ", tokens_per_s_per_gpu: -5}\n", "tokens_per_s_per_gpu");
  refused("steps:\n- {" + run + ", step_s: 1, step: 3}\n", "step");
  CHECK_THROWS_AS(read(folder, "steps:\n- {run: nowhere.yaml, cluster: hgx-h100, step_s: 1}\n"), Error);
}
