// The key `loggers` of a run file.
#include "configs/files/loggers.hpp"

#include <yaml-cpp/yaml.h>

#include <catch2/catch.hpp>

#include "configs/files/run.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;

namespace {

const std::string kRun =
    "{run_name: r, model: {name: m, n_layers: 2, d_model: 64, n_heads: 4, vocab_size: 99, ffn_config: "
    "{ffn_hidden_size: 96}}, max_duration: 3ba, "
    "max_seq_len: 16, global_train_batch_size: 4, device_train_microbatch_size: 1";

RunSpec run_with(const std::string& loggers) { return run_from_text(kRun + ", loggers: " + loggers + "}", "run.yaml"); }
std::string refusal(const std::string& loggers) {
  return usage_error([&] { run_with(loggers); });
}

}  // namespace

TEST_CASE("loggers are read and written back to the same") {
  const RunSpec run = run_with(
      "{mlflow: {tracking_uri: 'http://127.0.0.1:5000/x', experiment_name: moe, run_name: again, tags: {team: a, n: "
      "'01'}}, tensorboard: {log_dir: tb}, prometheus: {textfile_directory: /tmp}}");
  REQUIRE((run.loggers.mlflow && run.loggers.tensorboard && run.loggers.prometheus));
  CHECK(run.loggers.mlflow->tracking_uri == "http://127.0.0.1:5000/x");
  CHECK(run.loggers.mlflow->experiment_name == "moe");
  CHECK(run.loggers.mlflow->run_name == "again");
  CHECK(run.loggers.mlflow->tags == std::map<std::string, std::string>{{"team", "a"}, {"n", "01"}});
  CHECK(run.loggers.tensorboard->log_dir == "tb");
  CHECK(run.loggers.prometheus->textfile_directory == "/tmp");
  CHECK(run_from_text(run_to_yaml(run), "again").loggers == run.loggers);
}

TEST_CASE("a logger without keys has its usual ones, a run without loggers none") {
  const RunSpec run = run_with("{tensorboard: {}, prometheus: , mlflow: {}}");
  CHECK(run.loggers.tensorboard == TensorboardSpec{"tensorboard_logs"});                 // Composer's
  CHECK(run.loggers.prometheus == PrometheusSpec{"/var/lib/prometheus/node-exporter"});  // Debian's
  CHECK(run.loggers.mlflow == MlflowSpec{});
  CHECK(run_from_text(run_to_yaml(run), "again").loggers == run.loggers);
  const RunSpec none = run_from_text(kRun + "}", "run.yaml");
  CHECK_FALSE(none.loggers.any());
  CHECK_THAT(run_to_yaml(none), !Contains("loggers"));
}

TEST_CASE("what loggers may not say is refused by name") {
  CHECK_THAT(refusal("{tensorbord: {}}"), Contains("did you mean 'tensorboard'"));
  CHECK_THAT(refusal("{wandb: {}}"), Contains("wandb sync --sync-tensorboard"));
  CHECK_THAT(refusal("[tensorboard]"), Contains("needs a map"));
  CHECK_THAT(refusal("{tensorboard: {logdir: a}}"), Contains("did you mean 'log_dir'"));
  CHECK_THAT(refusal("{mlflow: {tags: a}}"), Contains("tags"));
  CHECK_THAT(refusal("{mlflow: {tags: {a: [1]}}}"), Contains("one word for each tag"));
  for (const char* uri : {"mlruns", "databricks", "ftp://host", "http://", "https:///path", "'http://a b'"})
    CHECK_THAT(refusal(fmt::format("{{mlflow: {{tracking_uri: {}}}}}", uri)), Contains("mlflow server"));
}

TEST_CASE("a user or a password in an address is refused, and not repeated") {
  for (const char* uri : {"https://me:s3cret@host", "http://s3cret@host:5000/x", "https://me:s3cret@host?x=1"}) {
    const std::string said = refusal(fmt::format("{{mlflow: {{tracking_uri: '{}'}}}}", uri));
    CHECK_THAT(said, Contains("MLFLOW_TRACKING_PASSWORD") && !Contains("s3cret"));
  }
  CHECK_THAT(refusal("{mlflow: {tracking_uri: 'https://host?token=s3cret'}}"),
             Contains("query") && !Contains("s3cret"));
}
