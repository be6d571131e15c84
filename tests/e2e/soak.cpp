// Two thousand steps with a checkpoint every fifty: memory does not grow, and files are those that retention keeps.
#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "configs/base/json_reader.hpp"
#include "tests/fixtures/trainer_fixture.hpp"

using namespace wt;
using namespace wt::test;

namespace fs = std::filesystem;

namespace {

RunSpec long_run() {
  RunSpec run = with_layout(small_run(), 1, 2, 2);
  ModelSpec& m = run.model;
  m.layers = 1, m.d_model = 16, m.heads = 2, m.kv_heads = 1, m.head_dim = 8, m.ffn = 16, m.experts = 4, m.top_k = 2;
  run.seq = 16, run.dataset.use_folder(licence_tokens(run.seq));
  run.layout.microbatch = 1, run.global_batch = 2;
  run.steps = 2000, run.save = true, run.save_interval = 50, run.keep_checkpoints = 3;
  return run;
}

/// Resident memory of rank 0 after the step, bytes.
double resident_after(const fs::path& folder, std::int64_t step) {
  std::ifstream in(folder / "metrics.jsonl");
  for (std::string line; std::getline(in, line);)
    if (const auto entry = parse_json(line, "metrics.jsonl"); entry.at("step") == step)
      return entry.at("resident_bytes").get<double>();
  throw std::runtime_error("metrics.jsonl has no such step");
}

}  // namespace

TEST_CASE("resident memory after 2,000 steps is that after 200", "[.nightly]") {
  const fs::path folder = trained(long_run());
  const double early = resident_after(folder, 200), late = resident_after(folder, 2000);
  INFO(early << " bytes, then " << late);
  CHECK(early > 20e6);
  CHECK(late <= 1.03 * early);
}

TEST_CASE("of forty checkpoints the last three are left, and nothing else") {
  const fs::path folder = trained(long_run());
  CHECK(checkpoint_steps(folder) == std::vector<std::int64_t>{1900, 1950, 2000});
  CHECK(latest_checkpoint(folder) == checkpoint_of(folder, 2000));
  CHECK(leftovers(folder).empty());
  CHECK(steps_of(folder).size() == 2000);
}
