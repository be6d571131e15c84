// Results of lm-eval and LLM Foundry as they are found in files, and evaluation.json as it is written and read.
#include "planner/evaluate/harness_results.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/base/json_reader.hpp"
#include "planner/evaluate/lm_eval.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Matchers::Contains;

namespace {

/// The keys of lm-eval 0.4.13, a group among them.
const char* const kLmEval = R"({
  "results": {
    "arc_easy": {"alias": "arc_easy", "acc,none": 0.75, "acc_stderr,none": 0.02, "acc_norm,none": 0.7,
                 "acc_norm_stderr,none": "N/A"},
    "mmlu": {"alias": "mmlu", "acc,none": 0.3, "acc_stderr,none": 0.01},
    "mmlu_anatomy": {"alias": " - anatomy", "acc,none": 0.4, "acc_stderr,none": 0.03},
    "mmlu_history": {"alias": " - history", "acc,none": 0.2, "acc_stderr,none": 0.03},
    "empty_group": {"alias": "empty_group", " ": " "}},
  "group_subtasks": {"arc_easy": [], "mmlu": ["mmlu_anatomy", "mmlu_history"]},
  "n-shot": {"arc_easy": 0, "mmlu_anatomy": 5, "mmlu_history": 5},
  "n-samples": {"arc_easy": {"original": 2376, "effective": 100},
                "mmlu_anatomy": {"original": 135, "effective": 135}, "mmlu_history": {"original": 10, "effective": 10}},
  "higher_is_better": {"arc_easy": {"acc": true, "acc_norm": true}},
  "config": {"model": "hf", "model_args": "pretrained=out/export"},
  "model_name": "out/export", "lm_eval_version": "0.4.13"})";

Evaluation read(const std::string& text, const std::string& origin = "results.json") {
  return evaluation_from_results(parse_json(text, origin), origin);
}

const TaskScore& score(const Evaluation& evaluation, const std::string& task, const std::string& metric) {
  for (const TaskScore& each : evaluation.scores)
    if (each.task == task && each.metric == metric) return each;
  FAIL(task << " has no " << metric);
  return evaluation.scores.front();
}

}  // namespace

TEST_CASE("results of lm-eval: value, standard error, shots and samples of each metric") {
  const Evaluation found = read(kLmEval);
  CHECK(found.harness == Evaluation::Harness::lm_eval);
  CHECK(found.version == "0.4.13");
  CHECK(found.model == "out/export");
  CHECK(found.scores.size() == 5);
  const TaskScore& acc = score(found, "arc_easy", "acc");
  CHECK(acc.value == 0.75);
  CHECK(acc.standard_error == 0.02);
  CHECK(acc.shots == 0);
  CHECK(acc.samples == 100);
  CHECK(acc.higher_is_better == true);
  CHECK_FALSE(score(found, "arc_easy", "acc_norm").standard_error);
}

TEST_CASE("a group has the samples of its tasks together, and their shots where these are equal") {
  const TaskScore group = score(read(kLmEval), "mmlu", "acc");
  CHECK(group.samples == 145);
  CHECK(group.shots == 5);
  nlohmann::json unequal = nlohmann::json::parse(kLmEval);
  unequal["n-shot"]["mmlu_history"] = 0;
  CHECK_FALSE(score(evaluation_from_results(unequal, "r"), "mmlu", "acc").shots);
  unequal["group_subtasks"]["mmlu"] = {"mmlu"};  // a group inside itself
  CHECK_FALSE(score(evaluation_from_results(unequal, "r"), "mmlu", "acc").shots);
}

TEST_CASE("metrics of LLM Foundry, subsets apart; other metrics of the same log are left out") {
  const Evaluation found = read(R"({"metrics/copa/0-shot/InContextLearningMultipleChoiceAccuracy": 0.6,
    "metrics/mmlu/5-shot/anatomy/InContextLearningMultipleChoiceAccuracy": 0.25,
    "metrics/train/LanguageCrossEntropy": 2.1, "loss/train/total": 2.1, "time/batch": 7, "name": "a run"})");
  CHECK(found.harness == Evaluation::Harness::composer);
  REQUIRE(found.scores.size() == 2);
  CHECK(found.scores[0].task == "copa");
  CHECK(found.scores[0].shots == 0);
  CHECK(found.scores[1].name() == "mmlu/anatomy");
  CHECK(found.scores[1].value == 0.25);
}

TEST_CASE("what holds no scores is refused, and so is a score that is no number") {
  const auto fails = [](const std::string& text) { return usage_error([&] { read(text); }); };
  CHECK_THAT(fails("[1]"), Contains("results.json: found no object"));
  CHECK_THAT(fails("{}"), Contains("found no score"));
  CHECK_THAT(fails(R"({"results": {}})"), Contains("found no score"));
  CHECK_THAT(fails(R"({"results": {"a": {"alias": "a"}}})"), Contains("found no score"));
  CHECK_THAT(fails(R"({"results": [1]})"), Contains("/results"));
  CHECK_THAT(fails(R"({"results": {"a": 1}})"), Contains("/results/a"));
  CHECK_THAT(fails(R"({"metrics/copa/0-shot/Accuracy": "high"})"), Contains("high"));
  CHECK_THAT(fails(R"({"metrics/copa/many-shot/Accuracy": 1})"), Contains("found no score"));
}

TEST_CASE("several files are one evaluation, if they are of one model and no score is there twice") {
  const TempDirectory folder;
  write_bytes(folder / "a.json", R"({"results": {"a": {"acc,none": 0.5}}, "model_name": "m"})");
  write_bytes(folder / "b.json", R"({"results": {"b": {"acc,none": 0.25}}, "model_name": "m"})");
  write_bytes(folder / "other.json", R"({"results": {"c": {"acc,none": 0.25}}, "model_name": "other"})");
  write_bytes(folder / "foundry.json", R"({"metrics/copa/0-shot/Accuracy": 0.5})");
  const Evaluation both = read_results({folder / "a.json", folder / "b.json"});
  CHECK(both.scores.size() == 2);
  CHECK(both.files.size() == 2);
  const auto fails = [&](const char* second) {
    return usage_error([&] { read_results({folder / "a.json", folder / second}); });
  };
  CHECK_THAT(fails("a.json"), Contains("found acc of a twice"));
  CHECK_THAT(fails("other.json"), Contains("of model 'other'"));
  CHECK_THAT(fails("foundry.json"), Contains("scores of LLM Foundry"));
  CHECK_THAT(fails("none.json"), Contains("none.json"));
  CHECK_THAT(usage_error([] { read_results({}); }), Contains("needs at least one file"));
}

TEST_CASE("an evaluation is read back as it was written") {
  Evaluation written = read(kLmEval);
  written.gauntlet = GauntletScores{
      "EQUAL",
      {{"c", 0.25, {{"arc_easy", "acc", 0, 0.25, 0.75, 2.0 / 3, 1}}, {}}, {"d", {}, {}, {"copa, 0-shot"}}},
      {{"core", 0.25, {"c"}, {"d"}}}};
  const nlohmann::json document = evaluation_json(written);
  CHECK(evaluation_json(evaluation_from_json(document, "evaluation.json")) == document);
  CHECK(document["gauntlet"]["categories"][1]["score"].is_null());
  const TempDirectory folder;
  CHECK_FALSE(kept_evaluation(folder.path()));
  write_bytes(folder / "evaluation.json", document.dump());
  CHECK(evaluation_json(*kept_evaluation(folder.path())) == document);
  for (const auto& [key, value] : std::map<std::string, nlohmann::json>{{"schema", "windtunnel.evaluation/9"},
                                                                        {"harness", "another"},
                                                                        {"scores", 1},
                                                                        {"gauntlet", "none"},
                                                                        {"no", 1}}) {
    nlohmann::json changed = document;
    changed[key] = value;
    CHECK_THAT(usage_error([&] { evaluation_from_json(changed, "evaluation.json"); }),
               Contains("evaluation.json") && Contains(key));
  }
}

TEST_CASE("an evaluation file is read strictly, its paths from where it is") {
  const TempDirectory folder;
  std::filesystem::create_directories(folder / "tasks");
  const auto spec = [&](const std::string& text) {
    write_bytes(folder / "evaluation.yaml", text);
    return read_evaluation_file(folder / "evaluation.yaml");
  };
  const HarnessSpec all = spec(
      "tasks: [a, b]\ninclude_path: tasks\nmodel: vllm\ndtype: float32\ndevice: cpu\nbatch_size: 8\nnum_fewshot: 2\n"
      "limit: 10\ntimeout: 2h\n");
  CHECK(all.tasks == std::vector<std::string>{"a", "b"});
  CHECK(all.include_path == folder / "tasks");
  CHECK(all.model == "vllm");
  CHECK(all.shots == 2);
  CHECK(all.limit == 10);
  CHECK(all.timeout_s == 7200);
  CHECK(spec("batch_size: auto\n").batch_size == "auto");
  const auto fails = [&](const std::string& text) { return usage_error([&] { spec(text); }); };
  CHECK_THAT(fails("tasks: []\n"), Contains("found an empty list"));
  CHECK_THAT(fails("include_path: none\n"), Contains("needs a folder"));
  CHECK_THAT(fails("model: openai\n"), Contains("openai"));
  CHECK_THAT(fails("batch_size: some\n"), Contains("batch_size"));
  CHECK_THAT(fails("timeout: 0s\n"), Contains("needs a time above 0"));
  CHECK_THAT(fails("limit: 0\n"), Contains("limit"));
  CHECK_THAT(fails("task: a\n"), Contains("task") && Contains("tasks"));
}
