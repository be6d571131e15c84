// windtunnel eval as a user calls it: a script stands for lm-eval.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/windtunnel.hpp"

using namespace wt::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

const std::string kResults =
    R"({"results": {"arc": {"acc,none": 0.625, "acc_stderr,none": 0.03}}, "n-shot": {"arc": 0}, )"
    R"("n-samples": {"arc": {"effective": 8}}, "model_name": "tiny", "lm_eval_version": "0.4.13"})";
const std::string kGauntlet =
    "eval_gauntlet:\n  categories: [{name: reason, benchmarks: [{name: arc, num_fewshot: 0, random_baseline: 0.25, "
    "metric: "
    "acc}]}]\n";

/// A folder with a run's export in it, and an lm_eval that runs this script, `$out` being where results go.
struct EvaluatedRun {
  TempDirectory folder;
  explicit EvaluatedRun(const std::string& script) {
    fs::create_directories(folder / "run/export"), fs::create_directories(folder / "bin");
    write_bytes(folder / "run/export/config.json", "{}"), write_bytes(folder / "run/export/model.safetensors", "");
    write_bytes(folder / "results.json", kResults), write_bytes(folder / "gauntlet.yaml", kGauntlet);
    const fs::path program = folder / "bin/lm_eval";
    write_bytes(program,
                "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ \"$1\" = --output_path ] && out=$2; shift; done\n" + script);
    fs::permissions(program, fs::perms::owner_all);
  }
  Ended eval(const std::string& arguments) const {
    return windtunnel("eval " + arguments, "cd " + folder.path().string() + " && WINDTUNNEL_PYTHON= PATH=" +
                                               (folder / "bin").string() + ":/usr/bin:/bin");
  }
};

}  // namespace

TEST_CASE("scores come home: a table, evaluation.json in the run's folder, the averages asked for") {
  const EvaluatedRun run("cp " + fs::path("$out/../../results.json").string() + " $out/results_1.json\n");
  const Ended ended = run.eval("run gauntlet.yaml --tasks arc");
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  CHECK_THAT(ended.said, Contains("0.6250") && Contains("lm-eval 0.4.13") && Contains("not comparable"));
  CHECK_THAT(ended.said, Contains("0.5000"));  // (0.625 - 0.25) / 0.75
  const json kept = json::parse(read_bytes(run.folder / "run/evaluation.json"));
  CHECK(kept["scores"][0]["value"] == 0.625);
  CHECK(kept["gauntlet"]["categories"][0]["score"] == 0.5);
  CHECK(fs::exists(run.folder / "run/lm_eval/results_1.json"));
}

TEST_CASE("scores of a run go to the trackers that its run file names") {
  const EvaluatedRun run("exit 9\n");
  fs::copy("tests/data/run_resumed", run.folder / "run", fs::copy_options::recursive);
  const std::string file = read_bytes("tests/data/run_resumed/run.yaml");  // a map in braces
  write_bytes(run.folder / "run/run.yaml", file.substr(0, file.rfind('}')) +
                                               ", loggers: {tensorboard: {log_dir: logs}, mlflow: {tracking_uri: "
                                               "'http://127.0.0.1:1'}}}\n");
  const Ended ended = run.eval("run --results results.json");
  INFO(ended.said);
  REQUIRE(ended.status == 0);  // whatever a tracker does
  CHECK_THAT(ended.said, Contains("tensorboard in logs: logged 2 scores") &&
                             Contains("mlflow at http://127.0.0.1:1: logged no scores"));
  std::string events;
  for (const auto& entry : fs::recursive_directory_iterator(run.folder / "logs"))
    if (entry.is_regular_file()) events += read_bytes(entry.path());
  CHECK_THAT(events, Contains("lm_eval/arc/0-shot/acc_stderr"));
  // A folder that is no run's has no trackers; a broken run file is told.
  CHECK_THAT(run.eval("run/export --results results.json").said, !Contains("logged"));
  write_bytes(run.folder / "run/run.yaml", "max_duration: 3\n");
  const Ended broken = run.eval("run --results results.json");
  CHECK(broken.status == 0);
  CHECK_THAT(broken.said, Contains("run: logged no scores: run/run.yaml"));
}

TEST_CASE("scores are kept although the averages are refused") {
  const EvaluatedRun run("cp $out/../../results.json $out/results_1.json\n");
  write_bytes(run.folder / "gauntlet.yaml", kGauntlet.substr(0, kGauntlet.find(", metric")) + "}]}]\n");
  const Ended ended = run.eval("run gauntlet.yaml --tasks arc");
  CHECK(ended.status == 2);
  CHECK_THAT(ended.said, Contains("arc, 0-shot: found no metric"));
  CHECK(json::parse(read_bytes(run.folder / "run/evaluation.json"))["scores"].size() == 1);
}

TEST_CASE("results that are there already need no lm-eval, and write nothing without a folder") {
  const EvaluatedRun run("exit 9\n");
  const Ended ended = run.eval("gauntlet.yaml --results results.json --json 2>/dev/null");
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  const json printed = json::parse(ended.said);
  CHECK(printed["payload"]["schema"] == "windtunnel.evaluation/1");
  CHECK(printed["payload"]["gauntlet"]["averages"][0]["score"] == 0.5);
  CHECK_FALSE(fs::exists(run.folder / "run/evaluation.json"));
  REQUIRE(run.eval("run --results results.json").status == 0);
  CHECK(fs::exists(run.folder / "run/evaluation.json"));
}

TEST_CASE("an evaluation that fails says why, by its exit status too, and writes nothing") {
  const EvaluatedRun run("echo no such task >&2; exit 1\n");
  const auto fails = [&](const std::string& arguments, int status, const std::string& why) {
    const Ended ended = run.eval(arguments);
    INFO(arguments << ": " << ended.said);
    CHECK(ended.status == status);
    CHECK_THAT(ended.said, Contains(why));
    CHECK_FALSE(fs::exists(run.folder / "run/evaluation.json"));
  };
  fails("run --tasks arc", 4, "no such task");
  fails("run", 2, "found no tasks");
  fails("--tasks arc", 2, "found no folder and no --results");
  fails("bin --tasks arc", 2, "found no weights");
  fails("nothing --tasks arc", 2, "found neither a folder nor a file");
  fails("run bin --tasks arc", 2, "allowed is one folder");
  fails("run --tasks arc -o report.pdf", 2, "found the ending '.pdf'");
  write_bytes(run.folder / "wrong.yaml", "task: arc\n");
  fails("run wrong.yaml", 2, "wrong.yaml");
  fs::remove(run.folder / "bin/lm_eval");
  fails("run --tasks arc", 2, "lm-eval is not installed");
}
