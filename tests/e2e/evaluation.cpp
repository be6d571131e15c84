// Evaluation while training: the loss of a set is that of training on it, in every layout, and training does not
// notice.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/fixtures/trainer_fixture.hpp"

using namespace wt;
using namespace wt::test;

namespace {

using nlohmann::json;

std::vector<json> evaluations_of(const std::filesystem::path& folder) {
  std::ifstream in(folder / "evaluations.jsonl");
  std::vector<json> out;
  for (std::string line; std::getline(in, line);) out.push_back(json::parse(line));
  return out;
}

RunSpec evaluated(RunSpec run, std::int64_t interval) {
  EvalSet set{"licence", run.dataset};
  run.evaluation.sets = {set};
  run.evaluation.interval = interval;
  return run;
}

/// Weights that never change, and samples in their order.
RunSpec standing_still() {
  RunSpec run = short_run();
  run.name = "still", run.optimizer.lr = 0, run.optimizer.weight_decay = 0, run.steps = 2, run.dataset.shuffle = false;
  run = evaluated(run, 1);
  run.evaluation.first = true;
  run.evaluation.device_batch = run.global_batch, run.evaluation.subset_batches = 2;
  return run;
}

}  // namespace

TEST_CASE("evaluated on what a run was trained on, weights that do not change have its loss") {
  const auto folder = trained(standing_still());
  const auto steps = steps_of(folder);
  const double trained_loss = (steps[0].loss + steps[1].loss) / 2;
  const auto found = evaluations_of(folder);
  REQUIRE(found.size() == 3);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].at("step") == i);
    CHECK(found[i].at("label") == "licence");
    CHECK(found[i].at("samples") == 2 * standing_still().global_batch);
    CHECK(found[i].at("loss").get<double>() == Approx(trained_loss).epsilon(1e-6));
    CHECK(found[i].at("loss") == found[0].at("loss"));
    CHECK(found[i].at("perplexity").get<double>() == Approx(std::exp(trained_loss)).epsilon(1e-6));
  }
}

TEST_CASE("training does not notice, and every layout evaluates alike") {
  const RunSpec plain = short_run(), alone = evaluated(plain, 4);
  CHECK(steps_of(trained(alone)) == steps_of(trained(plain)));
  CHECK((state_of(latest_checkpoint(trained(alone))) == state_of(latest_checkpoint(trained(plain)))));
  const auto expected = evaluations_of(trained(alone));
  REQUIRE(expected.size() == 3);  // after steps 4, 8 and 10
  // HSDP with experts elsewhere, a padded shard, shared sequences, weights that stay, the loss in pieces.
  std::vector<RunSpec> runs{with_layout(plain, 2, 2, 2), with_layout(plain, 1, 3, 1), context_runs(plain).front(),
                            further_layouts(plain).front(), plain};
  runs.back().loss_chunks = 4;
  for (const RunSpec& run : some_of(runs)) {
    INFO(run.layout.name());
    const RunSpec tried = evaluated(run, 4);
    CHECK(steps_of(trained(tried)) == steps_of(trained(run)));
    const auto found = evaluations_of(trained(tried));
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].at("samples") == expected[i].at("samples"));
      CHECK(found[i].at("targets") == expected[i].at("targets"));
      CHECK(found[i].at("loss").get<double>() == Approx(expected[i].at("loss").get<double>()).epsilon(1e-5));
    }
  }
}

TEST_CASE("of several sets each has its own line and its own loss, as if it were alone") {
  RunSpec run = short_run();
  run.name = "two-sets";
  run = evaluated(run, 4);
  const auto alone = evaluations_of(trained(run));
  run.evaluation.sets.push_back({"same", run.dataset});
  const auto both = evaluations_of(trained(run));
  REQUIRE(both.size() == 2 * alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {  // in the order of the file
    CHECK(both[2 * i].at("label") == "licence");
    CHECK(both[2 * i + 1].at("label") == "same");
    for (const char* key : {"step", "loss", "targets", "samples"})
      for (const std::size_t set : {2 * i, 2 * i + 1}) CHECK(both[set].at(key) == alone[i].at(key));
  }
}

TEST_CASE("a run that goes on has each evaluation once") {
  RunSpec run = evaluated(short_run(), 2);
  run.evaluation.first = true;
  run.save_interval = 4;
  const auto folder = scratch("evaluated-twice");
  Launch killed_at_six;
  killed_at_six.more = {"--faults", fault_file("kill-six", {killed(0, "step: 7")}).string()};
  REQUIRE(train(run, folder, killed_at_six).status == 0);
  std::vector<std::int64_t> steps;
  for (const json& line : evaluations_of(folder)) steps.push_back(line.at("step"));
  CHECK(steps == std::vector<std::int64_t>{0, 2, 4, 6, 8, 10});
  CHECK(evaluations_of(folder).back().at("loss") ==
        evaluations_of(trained(evaluated(short_run(), 2))).back().at("loss"));
}
