// Finetuning data trained on: the same in every layout and after a resume, one example a sequence and packed.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "configs/base/json_reader.hpp"
#include "configs/base/text.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/trainer_fixture.hpp"
#include "tests/fixtures/usage_error.hpp"
#include "trainer/data/pack.hpp"

using namespace wt;
using namespace wt::test;

namespace {

using nlohmann::json;
constexpr int kExamples = 300;

/// Pieces of the licence as prompts and responses, bytes as tokens: 6 to 40 of them, and now and then more than a
/// sequence holds.
std::filesystem::path licence_examples(std::int64_t seq) {
  const std::filesystem::path folder = scratch("examples"), file = scratch("examples.jsonl");
  if (std::filesystem::exists(folder)) return folder;
  const std::string text = read_file("LICENSE", "a text");
  std::string lines;
  for (std::size_t i = 0; i < kExamples; ++i) {
    const std::size_t prompt = 2 + i % 9, response = i % 40 == 7 ? 70 : 3 + i * 7 % 29, at = i * 31;
    lines += json{{"prompt", text.substr(at, prompt)}, {"response", text.substr(at + prompt, response)}}.dump() + "\n";
  }
  write_bytes(file, lines);
  PackOptions options;
  options.samples = SampleKind::finetune, options.seq_len = seq;
  REQUIRE(pack_text({file}, folder, options).samples == kExamples);
  return folder;
}

/// 48 tokens a sequence, 24 sequences a step; with a ratio of 2 into the second epoch.
RunSpec finetuned(double packing_ratio) {
  RunSpec run = short_run();
  run.name = packing_ratio > 1 ? "packed" : "alone";
  run.dataset.use_folder(licence_examples(run.seq));
  run.dataset.finetuning.emplace().packing_ratio = packing_ratio;
  return run;
}

std::vector<json> lines_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::vector<json> out;
  for (std::string line; std::getline(in, line);) out.push_back(json::parse(line));
  return out;
}

double apart(double a, double b) { return a == b ? 0 : std::abs(a / b - 1); }

/// As e2e/layouts.cpp compares them.
void check_same_steps(const RunSpec& expected, const RunSpec& found) {
  INFO(found.name << ", " << found.layout.name() << ", microbatch " << found.layout.microbatch);
  const auto alone = lines_of(trained(expected) / "metrics.jsonl"),
             together = lines_of(trained(found) / "metrics.jsonl");
  REQUIRE(together.size() == alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) {
    INFO("step " << i + 1);
    for (const char* key : {"samples", "sequences", "targets"})
      CHECK(alone[i].value(key, json()) == together[i].value(key, json()));
    for (const char* key : {"loss", "aux_loss", "z_loss"})
      CHECK(apart(together[i].at(key), alone[i].at(key)) <= (i == 0 ? 1e-6 : 1e-5));
    CHECK(apart(together[i].at("grad_norm"), alone[i].at("grad_norm")) <= (i == 0 ? 1e-6 : 2e-3));
  }
}

std::vector<RunSpec> other_layouts(const RunSpec& run) {
  const auto sharded = sharded_runs(run), context = context_runs(run), uneven = uneven_runs(run);
  std::vector<RunSpec> out{sharded[2], sharded[5], context[0], context[2], uneven[0], uneven.back()};
  out.back().loss_chunks = 7;
  return out;
}

}  // namespace

TEST_CASE("examples train alike in every layout, however they are cut into microbatches and pieces of the loss") {
  const RunSpec alone = finetuned(1);
  for (const RunSpec& run : some_of(other_layouts(alone))) check_same_steps(alone, run);
  const auto steps = lines_of(trained(alone) / "metrics.jsonl");
  CHECK(steps.front().at("loss").get<double>() == Approx(std::log(257.0)).epsilon(0.03));
  CHECK(steps.back().at("loss") < steps.front().at("loss"));
  CHECK(steps.front().at("samples").size() == 24);
  CHECK_FALSE(steps.front().contains("sequences"));
}

TEST_CASE("so they do packed, and every sample that was drawn is trained on once, or waits") {
  const RunSpec packed = finetuned(2);
  for (const RunSpec& run : some_of(other_layouts(packed))) check_same_steps(packed, run);
  std::map<std::int64_t, int> drawn, taken;  // times, by sample
  const auto take = [&](const json& sequences) {
    for (const json& sequence : sequences)
      for (const std::int64_t id : sequence) ++taken[id];
  };
  for (const json& step : lines_of(trained(packed) / "metrics.jsonl")) {
    CHECK(step.at("samples").size() == 48);
    for (const std::int64_t id : step.at("samples")) ++drawn[id];
    CHECK(step.at("sequences").size() == 24);
    take(step.at("sequences"));
  }
  CHECK(taken.size() > 200);
  const json manifest = read_json(latest_checkpoint(trained(packed)) / "manifest.json");
  take(manifest.at("sampler").value("waiting", json::array()));
  CHECK(taken == drawn);
}

TEST_CASE("a run that is killed goes on with the examples that waited, bit for bit") {
  for (const double ratio : {1.0, 2.0}) {
    RunSpec run = with_layout(finetuned(ratio), 1, 2, 2);
    run.save_interval = 4;
    const auto folder = scratch(run.name + "-killed");
    Launch killed_at_six;
    killed_at_six.more = {"--faults", fault_file(run.name + "-kill", {killed(0, "step: 7")}).string()};
    REQUIRE(train(run, folder, killed_at_six).status == 0);
    RunSpec whole = run;
    whole.save_interval = 0;
    CHECK(steps_of(folder) == steps_of(trained(whole)));
    CHECK((state_of(latest_checkpoint(folder)) == state_of(latest_checkpoint(trained(whole)))));
    RunSpec other = run;
    other.steps += 2, other.dataset.finetuning->packing_ratio = 3;
    const Ended refused = train(other, folder);
    CHECK(refused.status != 0);
    CHECK_THAT(refused.said, Catch::Contains("checkpoint of another run") && Catch::Contains("packing_ratio"));
  }
}

TEST_CASE("evaluated on examples that it was trained on, a run that stands still has their loss") {
  RunSpec run = finetuned(1);
  run.name = "still", run.optimizer.lr = 0, run.optimizer.weight_decay = 0, run.steps = 2, run.dataset.shuffle = false;
  run.evaluation.sets = {{"examples", run.dataset}};
  run.evaluation.device_batch = run.global_batch, run.evaluation.subset_batches = 2;
  double loss = 0, targets = 0;
  for (const json& step : lines_of(trained(run) / "metrics.jsonl"))
    loss += step.at("loss").get<double>() * step.at("targets").get<double>(),
        targets += step.at("targets").get<double>();
  const auto found = lines_of(trained(run) / "evaluations.jsonl");
  REQUIRE(found.size() == 1);
  CHECK(found[0].at("targets") == targets);
  CHECK(found[0].at("samples") == 48);
  CHECK(found[0].at("loss").get<double>() == Approx(loss / targets).epsilon(1e-6));
  RunSpec shared = context_runs(run)[1];
  shared.evaluation.device_batch = run.global_batch / shared.layout.data_ranks();
  CHECK(lines_of(trained(shared) / "evaluations.jsonl")[0].at("targets") == targets);
}

TEST_CASE("data and keys that cannot be trained on are refused by name") {
  using Catch::Contains;
  const auto refused = [](const RunSpec& run) {
    static int count = 0;
    const Ended ended = train(run, scratch("refused-examples-" + std::to_string(++count)));
    CHECK(ended.status == 2);
    return ended.said;
  };
  RunSpec run = finetuned(1);
  run.steps = 2;
  run.model.vocab = 256;  // the bytes end with 256
  CHECK_THAT(refused(run), Contains("token 256 in sample") && Contains("vocab_size is 256"));
  run = finetuned(1);
  run.dataset.finetuning.reset();
  CHECK_THAT(refused(run), Contains("found the columns turns: json") && Contains("'tokens'"));
  run.dataset.use_folder(licence_tokens(run.seq));
  run.dataset.finetuning.emplace();
  CHECK_THAT(refused(run), Contains("found the columns tokens: ndarray:uint16") && Contains("--samples finetune"));
  run = finetuned(1);
  run.seq = 8, run.global_batch = 48;
  CHECK_THAT(refused(run), Contains("of which the first 8 (max_seq_len) hold nothing to learn"));
  run = finetuned(1);
  run.model.mtp_layers = 1;
  CHECK_THAT(refused(run), Contains("multi-token prediction on finetuning data"));
}
