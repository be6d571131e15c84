// Lengths in Composer's units, and references to variables, in run files.
#include <catch2/catch.hpp>
#include <fstream>

#include "configs/base/yaml.hpp"
#include "configs/files/duration.hpp"
#include "configs/files/run.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using Catch::Contains;
using namespace wt;
using namespace wt::test;

namespace {

/// Batches of 8 sequences of 100 tokens, 25 batches an epoch.
RunClock clock_of(const std::string& whole) {
  return {{8, 100, [] { return std::int64_t{25}; }}, Duration::parse(whole, "max_duration")};
}
double batches(const std::string& text, const std::string& whole = "40ba") {
  return clock_of(whole).batches(Duration::parse(text, "key"), "key");
}
std::string broken(const std::string& text) {
  return usage_error([&] { batches(text); });
}

RunSpec run_with(const std::string& more) {
  return run_from_text("model: llama3-8b\nmax_seq_len: 64\nglobal_train_batch_size: 4\n" + more, "run.yaml");
}

}  // namespace

TEST_CASE("a duration in every unit") {
  CHECK(batches("40ba") == 40);
  CHECK(batches("2ep") == 50);
  CHECK(batches("2") == 50);  // a plain number is epochs, as in Composer
  CHECK(batches("1_600sp") == 200);
  CHECK(batches("1200tok") == 1.5);
  CHECK(batches("2e3tok") == 2.5);
  CHECK(batches("0.25dur") == 10);
  CHECK(batches("0.1dur", "3ep") == 7);                       // 7.5 of 75 batches: whole batches of a run in epochs
  CHECK(batches("0.1dur", "1234tok") == Approx(1.2300 / 8));  // whole tokens of a run in tokens: 123
}

TEST_CASE("a run's last step reaches its end") {
  CHECK(clock_of("40ba").steps("x") == 40);
  CHECK(clock_of("801tok").steps("x") == 2);
  CHECK(clock_of("800tok").steps("x") == 1);
  CHECK(clock_of("3ep").steps("x") == 75);
}

TEST_CASE("durations without a number of batches are refused by name") {
  CHECK_THAT(usage_error([] { clock_of("9e15ep").steps("max_duration"); }),
             Contains("found 2.25e+17 steps, needs at most"));
  CHECK_THAT(broken("10sec"), Contains("key: found '10sec', which no number of batches follows from"));
  CHECK_THAT(broken("10iter"), Contains("found '10iter'"));
  for (const char* text : {"", "ba", "-1ba", "1.5ba", "40 weeks", "nanba", "1e300tok", "0.5ep"})
    CHECK_THAT(broken(text), Contains("key: found '") && Contains("needs"));
  CHECK_THAT(usage_error([] { RunClock().batches(Duration::parse("5sp", "key"), "key"); }), Contains("such as 40ba"));
}

TEST_CASE("epochs are as long as the data say") {
  const TempDirectory folder;
  std::ofstream(folder.path() / "index.json") << R"({"shards": [{"samples": 30}, {"samples": 13}]})";
  const std::string loader =
      "device_train_microbatch_size: 1\ntrain_loader: {dataset: {local: " + folder.path().string() + "}}\n";
  CHECK(run_with(loader + "max_duration: 2ep\n").steps == 20);  // 43 samples are 10 batches of 4
  CHECK(run_with(loader + "max_duration: 2ep\nsave_interval: 1ep\n").save_interval == 10);
  CHECK_THAT(usage_error([&] { run_with("device_train_microbatch_size: 1\nmax_duration: 1ep\n"); }),
             Contains("found epochs without a data set"));
  std::ofstream(folder.path() / "index.json") << "{}";
  CHECK_THAT(usage_error([&] { run_with(loader + "max_duration: 2ep\n"); }), Contains("no shards with samples"));
}

TEST_CASE("intervals must be whole batches") {
  const std::string run = "device_train_microbatch_size: 1\nmax_duration: 10ba\nsave_interval: ";
  CHECK(run_with(run + "512tok\n").save_interval == 2);
  CHECK_THAT(usage_error([&] { run_with(run + "300tok\n"); }),
             Contains("save_interval: found '300tok', which is 1.17"));
}

TEST_CASE("references to variables are filled in") {
  const RunSpec run = run_with(
      "variables: {steps: 12, word: ba, deep: '${variables.steps}', lr: 0.25, unused: [1, {a: b}]}\n"
      "max_duration: ${variables.deep}${variables.word}\ndevice_train_microbatch_size: 1\nrun_name: "
      "x-${max_seq_len}\noptimizer: {lr: '${variables.lr}'}\n");
  CHECK(run.steps == 12);
  CHECK(run.name == "x-64");
  CHECK(run.optimizer.lr == 0.25);
  const auto refused = [](const std::string& variables) {
    return usage_error([&] {
      run_with("variables: {" + variables + "}\ndevice_train_microbatch_size: 1\nmax_duration: '${variables.a}'\n");
    });
  };
  CHECK_THAT(refused("b: 1"), Contains("found ${variables.a}, but the file has no value there"));
  CHECK_THAT(refused("a: '${variables.b}', b: '${variables.a}'"), Contains("lead back"));
  CHECK_THAT(refused("a: '${variables.b', b: 1"), Contains("needs a closing brace"));
  CHECK_THAT(refused("a: 'x${variables.b}', b: [1]"), Contains("needs one value there"));
}

TEST_CASE("a microbatch that is to be found is written as such") {
  const RunSpec run = run_with("max_duration: 10ba\ndevice_train_microbatch_size: auto\n");
  CHECK(run.microbatch_auto);
  CHECK(run_from_text(run_to_yaml(run), "again").microbatch_auto);
  CHECK_THAT(usage_error([] { run_with("max_duration: 10ba\ndevice_train_microbatch_size: some\n"); }),
             Contains("device_train_microbatch_size"));
}
