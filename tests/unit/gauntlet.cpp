// LLM Foundry's averages: closed forms, weights, and what is missing. tests/python/gauntlet_test.py compares them with
// llm-foundry's own class.
#include "planner/evaluate/gauntlet.hpp"

#include <catch2/catch.hpp>

#include "configs/base/yaml.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Matchers::Contains;

namespace {

GauntletSpec gauntlet(const std::string& text) { return read_gauntlet(YamlMap::from_text(text, "gauntlet.yaml")); }

/// Foundry's accuracies of benchmarks at 0 shots.
Evaluation foundry(const std::vector<std::pair<std::string, double>>& accuracies) {
  Evaluation out;
  out.harness = Evaluation::Harness::composer;
  for (const auto& [task, value] : accuracies) {
    TaskScore score;
    score.task = task, score.metric = "InContextLearningMultipleChoiceAccuracy", score.shots = 0, score.value = value;
    out.scores.push_back(score);
  }
  return out;
}

const std::string kTwo =
    "categories:\n"
    "- name: reason\n"
    "  benchmarks:\n"
    "  - {name: copa, num_fewshot: 0, random_baseline: 0.5, samples: 1024}\n"
    "  - {name: arc, num_fewshot: 0, random_baseline: 0.25, samples: 1}\n"
    "- name: world\n"
    "  benchmarks: [{name: jeopardy, num_fewshot: 0, random_baseline: 0, samples: 7}]\n";

double score(const GauntletScores& scores, std::size_t category = 0) { return *scores.categories.at(category).score; }

}  // namespace

TEST_CASE("a score is what is above random, of what can be above it") {
  const Evaluation all = foundry({{"copa", 0.75}, {"arc", 0.25}, {"jeopardy", 0.4}});
  // (0.75 - 0.5) / 0.5 = 0.5; (0.25 - 0.25) / 0.75 = 0
  CHECK(score(gauntlet_scores(gauntlet(kTwo), all)) == Approx(0.25));
  CHECK(score(gauntlet_scores(gauntlet(kTwo), all), 1) == Approx(0.4));
  const GauntletScores difference = gauntlet_scores(gauntlet("rescale_accuracy: false\n" + kTwo), all);
  CHECK(score(difference) == Approx(0.125));
  const GauntletScores plain =
      gauntlet_scores(gauntlet("rescale_accuracy: false\nsubtract_random_baseline: false\n" + kTwo), all);
  CHECK(score(plain) == Approx(0.5));
}

TEST_CASE("benchmarks weigh the same, by their samples, or by the logarithm of these") {
  const Evaluation all = foundry({{"copa", 1.0}, {"arc", 0.25}, {"jeopardy", 1.0}});  // scores 1 and 0
  CHECK(score(gauntlet_scores(gauntlet("weighting: EQUAL\n" + kTwo), all)) == Approx(0.5));
  CHECK(score(gauntlet_scores(gauntlet("weighting: SAMPLE_SZ\n" + kTwo), all)) == Approx(1024.0 / 1025));
  // log2 1024 = 10; log2 1 = 0 counts as 1
  CHECK(score(gauntlet_scores(gauntlet("weighting: LOG_SAMPLE_SZ\n" + kTwo), all)) == Approx(10.0 / 11));
}

TEST_CASE("a category with a missing benchmark has no score, and averages do without it") {
  const std::string averages = "averages: {core: [reason, world], rest: [reason]}\n";
  const GauntletScores found = gauntlet_scores(gauntlet(kTwo + averages), foundry({{"copa", 0.75}, {"jeopardy", 0.4}}));
  CHECK_FALSE(found.categories[0].score);
  CHECK(found.categories[0].missing == std::vector<std::string>{"arc, 0-shot"});
  REQUIRE(found.averages.size() == 2);
  CHECK(*found.averages[0].score == Approx(0.4));
  CHECK(found.averages[0].missing == std::vector<std::string>{"reason"});
  CHECK_FALSE(found.averages[1].score);
}

TEST_CASE("without averages there is one over all categories") {
  const GauntletScores found =
      gauntlet_scores(gauntlet(kTwo), foundry({{"copa", 0.75}, {"arc", 0.25}, {"jeopardy", 0.75}}));
  REQUIRE(found.averages.size() == 1);
  CHECK(found.averages[0].name == "default_average");
  CHECK(*found.averages[0].score == Approx(0.5));
}

TEST_CASE("other shots are another benchmark; subsets are averaged; only accuracies count") {
  Evaluation all = foundry({{"copa", 0.75}, {"arc", 0.25}, {"jeopardy", 0.2}});
  all.scores[1].shots = 5;
  CHECK_FALSE(gauntlet_scores(gauntlet(kTwo), all).categories[0].score);
  TaskScore other = all.scores[2];
  all.scores[2].subset = "history", other.subset = "science", other.value = 0.6;
  all.scores.push_back(other);
  other.metric = "InContextLearningExpectedCalibrationError", other.value = 9;
  all.scores.push_back(other);
  CHECK(score(gauntlet_scores(gauntlet(kTwo), all), 1) == Approx(0.4));
}

TEST_CASE("lm-eval's metrics are never taken for LLM Foundry's accuracies") {
  Evaluation all = foundry({{"copa", 0.75}, {"arc", 0.25}});
  all.harness = Evaluation::Harness::lm_eval;
  for (TaskScore& each : all.scores) each.metric = "acc", each.filter = "none", each.samples = 8;
  TaskScore norm = all.scores[0];
  norm.metric = "acc_norm", norm.value = 1;
  all.scores.push_back(norm);
  const auto one = [](const std::string& metric) {
    return "weighting: SAMPLE_SZ\ncategories:\n- {name: c, benchmarks: [{name: copa, num_fewshot: 0, random_baseline: "
           "0.5" +
           metric + "}]}\n";
  };
  const auto fails = [&](const std::string& metric) {
    return usage_error([&] { gauntlet_scores(gauntlet(one(metric)), all); });
  };
  CHECK_THAT(fails(""), Contains("copa, 0-shot: found no metric, lm-eval scored acc, acc_norm"));
  CHECK_THAT(fails(", metric: accuracy"), Contains("found metric accuracy"));
  CHECK(score(gauntlet_scores(gauntlet(one(", metric: acc_norm")), all)) == Approx(1));
  CHECK(score(gauntlet_scores(gauntlet(one(", metric: acc")), all)) == Approx(0.5));
  all.scores.back().metric = "acc", all.scores.back().filter = "strict";
  CHECK_THAT(fails(", metric: acc"), Contains("several filters; name one of acc, acc,strict"));
  CHECK(score(gauntlet_scores(gauntlet(one(", metric: 'acc,strict'")), all)) == Approx(1));
}

TEST_CASE("weights by samples need the samples") {
  const std::string text =
      "weighting: SAMPLE_SZ\ncategories: [{name: c, benchmarks: [{name: copa, num_fewshot: 0, random_baseline: "
      "0.5}]}]\n";
  CHECK_THAT(usage_error([&] {
               gauntlet_scores(gauntlet(text), foundry({{"copa", 0.75}}));
             }),
             Contains("its weight is its number of samples") && Contains("weighting: EQUAL"));
}

TEST_CASE("a gauntlet that cannot be is refused") {
  const auto fails = [](const std::string& text) { return usage_error([&] { gauntlet(text); }); };
  CHECK_THAT(fails("weighting: BY_NAME\n" + kTwo), Contains("BY_NAME") && Contains("LOG_SAMPLE_SZ"));
  CHECK_THAT(fails("subtract_random_baseline: false\n" + kTwo), Contains("rescale_accuracy"));
  CHECK_THAT(fails(kTwo + "averages: {core: [reasn]}\n"), Contains("'reasn'") && Contains("reason, world"));
  CHECK_THAT(fails(kTwo + "averages: {reason: [world]}\n"), Contains("which is a category's name"));
  CHECK_THAT(fails(kTwo + "averages: {core: []}\n"), Contains("found no list under core"));
  CHECK_THAT(fails(kTwo + "averages: [core]\n"), Contains("found no map"));
  CHECK_THAT(fails("categories: []\n"), Contains("needs at least one"));
  CHECK_THAT(fails("categories: [{name: a, benchmarks: []}]\n"), Contains("needs at least one"));
  const std::string one = "categories:\n- {name: a, benchmarks: [{name: x, num_fewshot: 0, random_baseline: ";
  CHECK_THAT(fails(one + "1}]}\n"), Contains("random_baseline"));
  CHECK_THAT(fails(one + "-0.1}]}\n"), Contains("random_baseline"));
  CHECK_THAT(fails(one + "0.1, shots: 3}]}\n"), Contains("shots"));
  CHECK_THAT(fails(one + "0}]}\n- {name: a, benchmarks: [{name: y, num_fewshot: 0, random_baseline: 0}]}\n"),
             Contains("found category a twice"));
}
