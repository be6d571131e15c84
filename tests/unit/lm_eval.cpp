// How lm-eval is called and what becomes of its ends: a script stands for it. tests/python/lm_eval_test.py calls the
// real one where it is installed.
#include "planner/evaluate/lm_eval.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

/// A variable of the environment for the length of a case.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// A folder of weights and a program lm_eval before all others in PATH; $out is what follows --output_path.
class Site {
 public:
  explicit Site(const std::string& script) : path_("PATH", (folder_ / "bin").string() + ":/usr/bin:/bin") {
    unsetenv("WINDTUNNEL_PYTHON");
    fs::create_directories(folder_ / "bin"), fs::create_directories(weights());
    write_bytes(weights() / "config.json", "{}"), write_bytes(weights() / "model.safetensors", "");
    write_bytes(
        program(),
        "#!/bin/sh\nall=\"$*\"\nwhile [ $# -gt 0 ]; do [ \"$1\" = --output_path ] && out=$2; shift; done\n" + script);
    fs::permissions(program(), fs::perms::owner_all);
  }
  fs::path program() const { return folder_ / "bin/lm_eval"; }
  fs::path weights() const { return folder_ / "export"; }
  fs::path folder() const { return folder_.path(); }
  Evaluation run(HarnessSpec spec = {}) const {
    if (spec.tasks.empty()) spec.tasks = {"a", "b"};
    return run_lm_eval(spec, weights(), folder());
  }
  /// What the error says.
  std::string fails(Code code, const HarnessSpec& spec = {}) const {
    try {
      run(spec);
    } catch (const Error& e) {
      CHECK(e.code() == code);
      CHECK_FALSE(fs::exists(folder() / "lm_eval"));
      return e.what();
    }
    return "no error";
  }

 private:
  TempDirectory folder_;
  Variable path_;
};

const std::string kWrites =
    "mkdir -p $out/model && echo '{\"results\": {\"a\": {\"acc,none\": 0.5}}, \"model_name\": \"m\"}' > "
    "$out/model/results_2026.json\n";

}  // namespace

TEST_CASE("what lm-eval writes is read and kept") {
  const Site site("echo $all\n" + kWrites);
  const Evaluation found = site.run();
  REQUIRE(found.scores.size() == 1);
  CHECK(found.scores[0].value == 0.5);
  CHECK(found.files == std::vector<std::string>{(site.folder() / "lm_eval/results_2026.json").string()});
  CHECK(fs::exists(found.files[0]));
  const std::string log = read_bytes(site.folder() / "lm_eval.log");
  CHECK_THAT(log,
             Contains("--model hf --model_args pretrained=" + site.weights().string() + ",dtype=auto --tasks a,b"));
  std::size_t left = 0;  // nothing but: bin, export, lm_eval, lm_eval.log
  for ([[maybe_unused]] const auto& each : fs::directory_iterator(site.folder())) ++left;
  CHECK(left == 4);
}

TEST_CASE("words go to lm-eval as they are: no shell reads them") {
  const Site site(kWrites + "printf '%s\\n' \"$all\"\n");
  HarnessSpec spec;
  spec.tasks = {"a;touch " + (site.folder() / "ran").string(), "$(touch " + (site.folder() / "ran").string() + ")"};
  site.run(spec);
  CHECK_FALSE(fs::exists(site.folder() / "ran"));
}

TEST_CASE("each setting is an argument") {
  HarnessSpec spec;
  spec.tasks = {"a"}, spec.include_path = "my/tasks", spec.model = "vllm", spec.dtype = "float32", spec.device = "cpu";
  spec.batch_size = "auto", spec.shots = 3, spec.limit = 7;
  const std::vector<std::string> words = lm_eval_arguments(spec, "/w", "/o");
  const std::vector<std::string> wanted{"--model",        "vllm",     "--model_args",  "pretrained=/w,dtype=float32",
                                        "--tasks",        "a",        "--batch_size",  "auto",
                                        "--output_path",  "/o",       "--device",      "cpu",
                                        "--include_path", "my/tasks", "--num_fewshot", "3",
                                        "--limit",        "7"};
  CHECK(words == wanted);
  CHECK_THAT(usage_error([&] { lm_eval_arguments(spec, "/w,trust_remote_code=True", "/o"); }), Contains("comma"));
}

TEST_CASE("lm-eval that is not installed is a usage error that says how to install it") {
  const Site site("");
  fs::remove(site.program());
  CHECK_THAT(site.fails(Code::usage), Contains("found no program lm_eval in PATH") && Contains("pip install"));
  const Variable none("WINDTUNNEL_PYTHON", "/no/such/python");
  CHECK_THAT(site.fails(Code::usage), Contains("WINDTUNNEL_PYTHON: found /no/such/python"));
}

TEST_CASE("an interpreter without lm-eval is a usage error, too") {
  const Site site("echo 'python3: No module named lm_eval' >&2; exit 1\n");
  const Variable python("WINDTUNNEL_PYTHON", site.program().string());
  CHECK_THAT(site.fails(Code::usage), Contains("has no module lm_eval"));
  CHECK_THAT(read_bytes(site.folder() / "lm_eval.log"), Contains("-m lm_eval --model hf"));
}

TEST_CASE("lm-eval that fails, hangs, writes nothing or writes no JSON is an error that says so") {
  CHECK_THAT(Site("echo 'Tasks not found: a' >&2; exit 3\n").fails(Code::runtime),
             Contains("failed with status 3") && Contains("Tasks not found: a"));
  CHECK_THAT(Site("kill -9 $$\n").fails(Code::runtime), Contains("failed with status 137"));
  CHECK_THAT(Site("echo all is well\n").fails(Code::runtime),
             Contains("left no results_*.json") && Contains("all is well"));
  CHECK_THAT(Site("echo '{' > $out/results_1.json\n").fails(Code::runtime), Contains("cannot be read"));
  CHECK_THAT(Site("echo '{\"results\": {\"a\": {\"acc,none\": NaN}}}' > $out/results_1.json\n").fails(Code::runtime),
             Contains("cannot be read"));
  HarnessSpec soon;
  soon.timeout_s = 0.3;
  CHECK_THAT(Site("exec sleep 100\n").fails(Code::runtime, soon),
             Contains("did not end within") && Contains("timeout"));
}

TEST_CASE("an error shows what lm-eval said this time, not in an earlier call") {
  const Site site("echo of now; exit 1\n");
  write_bytes(site.folder() / "lm_eval.log", "of before\n");
  CHECK_THAT(site.fails(Code::runtime), Contains("of now") && !Contains("of before"));
}

TEST_CASE("lm-eval gets no secret of ours") {
  const Site site("env\n" + kWrites);
  const Variable id("AWS_ACCESS_KEY_ID", "hidden-1"), secret("AWS_SECRET_ACCESS_KEY", "hidden-2");
  const Variable token("MLFLOW_TRACKING_TOKEN", "hidden-3"), key("OPENAI_API_KEY", "hidden-4");
  const Variable address("MLFLOW_TRACKING_URI", "https://user:hidden-5@host/path");
  const Variable threads("TOKENIZERS_PARALLELISM", "shown-1"), offline("HF_HUB_OFFLINE", "shown-2");
  const Variable plain("SOME_URI", "https://host/a@b-shown-3"), proxy("https_proxy", "http://u:p@shown-4");
  site.run();
  const std::string log = read_bytes(site.folder() / "lm_eval.log");
  CHECK_THAT(log, !Contains("hidden"));
  for (const char* shown : {"shown-1", "shown-2", "shown-3", "shown-4"}) CHECK_THAT(log, Contains(shown));
}

TEST_CASE("weights are the folder itself, or the only one in it") {
  const Site site("");
  CHECK(find_weights(site.weights()) == site.weights());
  CHECK(find_weights(site.folder()) == site.weights());
  fs::create_directories(site.folder() / "again");
  fs::copy(site.weights(), site.folder() / "again", fs::copy_options::recursive);
  CHECK_THAT(usage_error([&] { find_weights(site.folder()); }), Contains("again") && Contains("export"));
  fs::remove(site.weights() / "model.safetensors"), fs::remove_all(site.folder() / "again");
  CHECK_THAT(usage_error([&] { find_weights(site.folder()); }), Contains("found no weights"));
  CHECK_THAT(usage_error([&] { find_weights(site.folder() / "none"); }), Contains("found no folder"));
}
