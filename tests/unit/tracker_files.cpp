// What trackers write: event files, text for Prometheus, names of metrics, parameters of MLflow.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/fixtures/has_program.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "trainer/trackers/event_records.hpp"
#include "trainer/trackers/file_names.hpp"
#include "trainer/trackers/metric_names.hpp"
#include "trainer/trackers/mlflow.hpp"
#include "trainer/trackers/prometheus.hpp"
#include "trainer/trackers/run_parameters.hpp"
#include "trainer/trackers/tensorboard.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;
using nlohmann::json;

namespace {

RunSpec small_run() {
  RunSpec run;
  run.name = "r";
  run.layout.replicate = 2, run.layout.shard = 2;
  run.global_batch = 8, run.seq = 16;
  return run;
}

const json kLine = {{"step", 3},
                    {"loss", 2.5},
                    {"aux_loss", 0.25},
                    {"z_loss", 0.125},
                    {"grad_norm", 1.5},
                    {"lr", 1e-3},
                    {"step_s", 0.5},
                    {"tokens_per_s", 256},
                    {"exposed_communication_s", 0.1},
                    {"peak_tensor_bytes", 2e9},
                    {"resident_bytes", 3e9},
                    {"unix_s", 1000.25},
                    {"samples", {1, 2, 3}}};

std::map<std::string, double> values_of(const TrackedStep& step) {
  std::map<std::string, double> out;
  for (const TrackedValue& v : step.values) out[v.name] = v.value;
  return out;
}

}  // namespace

TEST_CASE("checksums of records are CRC-32C, masked") {
  const std::uint32_t crc = 0xe3069283;  // of "123456789" (RFC 3720)
  CHECK(masked_crc32c("123456789") == ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

TEST_CASE("an event has protobuf's bytes") {
  const std::string time("\x09\0\0\0\0\0\0\xf8\x3f", 9);  // field 1, eight bytes: 1.5
  CHECK(version_event(1.5) == time + "\x1a\x0d" + "brain.Event:2");
  // 300 = 0xac 0x02; summary {value {tag "ab", simple_value 0.5}}
  CHECK(scalar_event(1.5, 300, "ab", 0.5) ==
        time + "\x10\xac\x02" + "\x2a\x0b\x0a\x09" + "\x0a\x02" + "ab" + std::string("\x15\0\0\0\x3f", 5));
  CHECK(restart_event(1.5, 7) == time + "\x10\x07" + "\x3a\x02\x08\x01");
  const std::string record = event_record("abc");
  CHECK(record.substr(0, 8) == std::string("\x03\0\0\0\0\0\0\0", 8));
  CHECK(record.substr(12, 3) == "abc");
  CHECK(record.size() == 8 + 4 + 3 + 4);
}

TEST_CASE("a step has Composer's names and units") {
  const TrackedStep step = tracked_step(small_run(), kLine);
  const auto v = values_of(step);
  CHECK(step.step == 3);
  CHECK(step.unix_s == 1000.25);
  CHECK(v.at("loss/train/loss") == 2.5);
  CHECK(v.at("loss/train/lbl") == 0.25);
  CHECK(v.at("loss/train/total") == 2.875);
  CHECK(v.at("l2_norm/grad/global") == 1.5);
  CHECK(v.at("lr-AdamW/group0") == 1e-3);
  CHECK(v.at("throughput/tokens_per_sec") == 256);
  CHECK(v.at("throughput/device/tokens_per_sec") == 64);  // of four ranks
  CHECK(v.at("throughput/batches_per_sec") == 2);
  CHECK(v.at("throughput/samples_per_sec") == 16);
  CHECK(v.at("time/batch") == 3);
  CHECK(v.at("time/sample") == 24);
  CHECK(v.at("time/token") == 24 * 16);
  CHECK(v.at("memory/peak_allocated_mem") == 2);  // gigabytes
  CHECK(v.count("throughput/device/mfu") == 0);   // the line has none
}

TEST_CASE("the total holds the losses of multi-token prediction as they are weighted") {
  json line = kLine;
  line["mtp_losses"] = {1.0, 3.0};
  RunSpec run = small_run();
  run.model.mtp_loss_weight = 0.5;
  const auto v = values_of(tracked_step(run, line));
  CHECK(v.at("loss/train/mtp_1") == 1);
  CHECK(v.at("loss/train/mtp_2") == 3);
  CHECK(v.at("loss/train/total") == 2.875 + 0.5 * 2);
}

TEST_CASE("a loss that was no number stays none") {
  json line = kLine;
  line["loss"] = nullptr;
  const auto v = values_of(tracked_step(small_run(), line));
  CHECK(std::isnan(v.at("loss/train/loss")));
  CHECK(std::isnan(v.at("loss/train/total")));
}

TEST_CASE("names of metrics are those that MLflow and Prometheus take, each once") {
  std::set<std::string> composer, prometheus;
  for (const MetricName& name : metric_names()) {
    CHECK(composer.insert(name.composer).second);
    CHECK(std::regex_match(name.composer, std::regex("[A-Za-z0-9_{}/-]+")));
    if (*name.prometheus == '\0') continue;
    CHECK(prometheus.insert(name.prometheus).second);
    CHECK(std::regex_match(name.prometheus, std::regex("[a-z_]+")));
  }
}

TEST_CASE("an evaluation has Composer's names with its label") {
  const json line = {{"step", 4}, {"label", "eval"}, {"loss", 2}, {"perplexity", 7.4}, {"targets", 9}, {"samples", 3}};
  const TrackedStep step = tracked_evaluation(line, 12);
  CHECK(step.step == 4);
  CHECK(step.unix_s == 12);
  CHECK(values_of(step) == std::map<std::string, double>{{"metrics/eval/LanguageCrossEntropy", 2},
                                                         {"metrics/eval/LanguagePerplexity", 7.4}});
  json other = line;
  other["label"] = "c4";
  CHECK(values_of(tracked_evaluation(other, 0)).count("metrics/eval/c4/LanguageCrossEntropy") == 1);
}

TEST_CASE("docs/track.md has every name") {
  const std::string page = read_bytes("docs/track.md");
  const auto shown = [](std::string name) {
    for (const auto& [of, word] : {std::pair{"lr-{}", "lr-AdamW"}, {"mtp_{}", "mtp_1"}})
      if (const std::size_t at = name.find(of); at != std::string::npos) name.replace(at, std::string(of).size(), word);
    return "`" + name + "`";
  };
  for (const MetricName& name : metric_names()) {
    CHECK_THAT(page, Contains(shown(name.composer)));
    CHECK_THAT(page, Contains(shown(name.key)));
    if (*name.prometheus != '\0') CHECK_THAT(page, Contains(shown(name.prometheus)));
  }
}

TEST_CASE("text for Prometheus has a help, a type and one sample a metric") {
  const std::string text = prometheus_text("a \"b\"\\\n", tracked_step(small_run(), kLine));
  const std::regex sample(R"RE((windtunnel_[a-z_]+)\{run="a \\"b\\"\\\\\\n",rank="0"\} ([-+0-9.e]+|NaN))RE");
  std::istringstream lines(text);
  std::size_t metrics = 0;
  for (std::string help, type, value; std::getline(lines, help); ++metrics) {
    REQUIRE((std::getline(lines, type) && std::getline(lines, value)));
    std::smatch found;
    INFO(value);
    REQUIRE(std::regex_match(value, found, sample));
    CHECK(help.starts_with("# HELP " + found[1].str() + " "));
    CHECK(type == "# TYPE " + found[1].str() + " gauge");
  }
  CHECK(metrics > 8);
  CHECK_THAT(text, Contains("windtunnel_loss{") && Contains("} 2.5\n"));
}

TEST_CASE("promtool finds nothing to say about the text", "[.promtool]") {  // alone in ctest's unit_trackers_promtool
  if (!has_program("promtool")) return;
  const TempDirectory folder;
  write_bytes(folder / "m.prom", prometheus_text("a \"b\"\\", tracked_step(small_run(), kLine)));
  CHECK(std::system(("promtool check metrics < '" + (folder / "m.prom").string() + "'").c_str()) == 0);
}

TEST_CASE("Prometheus' file is readable for all, is written whole, and is gone at the end") {
  const TempDirectory folder;
  PrometheusTracker tracker(PrometheusSpec{folder.path()});
  tracker.begin({.name = "../a b", .folder = "."});
  const std::vector<TrackedStep> steps{tracked_step(small_run(), kLine),
                                       tracked_evaluation({{"step", 3}, {"label", "eval"}, {"loss", 1}}, 0)};
  tracker.log(std::span(steps).subspan(1));
  CHECK(folder.entries() == 0);  // an evaluation has nothing for it
  tracker.log(steps);
  const auto file = folder / "windtunnel-_.._a_b.prom";
  struct stat is {};
  REQUIRE(stat(file.c_str(), &is) == 0);
  CHECK((is.st_mode & 0777) == 0644);
  CHECK(read_bytes(file) == prometheus_text("../a b", steps[0]));
  CHECK(folder.entries() == 1);  // no temporary file
  tracker.end(TrackedEnd::finished);
  CHECK(folder.entries() == 0);
}

TEST_CASE("without the folder of node_exporter the tracker says which it needs") {
  PrometheusTracker tracker(PrometheusSpec{"/no/such/folder"});
  CHECK_THROWS_WITH(tracker.begin({.name = "r"}), Contains("/no/such/folder") && Contains("textfile_directory"));
}

TEST_CASE("each start has an event file of its own, named behind those before") {
  const TempDirectory folder;
  TrackedRun run{
      .name = "r", .folder = folder.path(), .done = 2, .parameters = {}, .run_file = "a: 1\n", .start_unix_s = 100};
  const auto names = [&] {
    std::set<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "r")) out.insert(entry.path().filename());
    return std::vector<std::string>(out.begin(), out.end());
  };
  TensorboardTracker(TensorboardSpec{folder.path()}).begin(run);
  TensorboardTracker again(TensorboardSpec{folder.path()});
  again.begin(run);
  REQUIRE(names().size() == 2);
  CHECK(names()[0].starts_with("events.out.tfevents.100."));
  CHECK(names()[1].starts_with("events.out.tfevents.101."));
  const std::string before = read_bytes(folder / "r" / names()[1]);
  // What a call that failed half-way has left is written over.
  std::ofstream(folder / "r" / names()[1], std::ios::app) << "half a record";
  TrackedStep step{.step = 3, .unix_s = 101, .values = {{nullptr, "a", 1}}};
  again.log(std::span(&step, 1));
  CHECK(read_bytes(folder / "r" / names()[1]) == before + event_record(scalar_event(101, 3, "a", 1)));
}

TEST_CASE("names of runs are names of files in their folder") {
  CHECK(as_file_name("dbrx-1.2_b") == "dbrx-1.2_b");
  for (const std::string name : {"..", ".", "", "../../etc", "a/b", "a\nb", ".hidden"}) {
    const std::string file = as_file_name(name);
    CHECK_FALSE(file.empty());
    CHECK(file.front() != '.');
    CHECK(file.find_first_of("/\n") == std::string::npos);
  }
}

TEST_CASE("a run file becomes names and values") {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(run_parameters("a: {b: 1, c: word}\nd: [1, 2]\ne: [{f: true}, {f: 0.5}]\nloggers: {mlflow: {}}\n") ==
        Pairs{{"a.b", "1"}, {"a.c", "word"}, {"d", "[1,2]"}, {"e.0.f", "true"}, {"e.1.f", "0.5"}});
}

TEST_CASE("parameters are cut to MLflow's limits, and say so") {
  const std::string two = "\xc3\xa9";  // one character
  std::string text(3001 * 2, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = two[i % 2];
  const auto made = mlflow_parameters({{"k", text}, {"a*b", "x"}, {"none", ""}, {std::string(300, 'k'), "y"}}, {}, 0);
  REQUIRE(made.size() == 4);
  CHECK(made[0].second.size() <= 6000);
  CHECK_THAT(made[0].second, Contains("of 6002 bytes)"));
  CHECK(made[0].second[5939 - 5939 % 2] == two[0]);  // whole characters
  CHECK(made[1].first == "a_b");
  CHECK_FALSE(made[2].second.empty());
  CHECK(made[3].first.size() <= 250);
}

TEST_CASE("a parameter that a resume has changed gets a name of its own") {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(mlflow_parameters({{"a", "1"}, {"b", "2"}, {"c", "3"}}, {{"a", "1"}, {"b", "old"}}, 40) ==
        Pairs{{"b after step 40", "2"}, {"c", "3"}});
  CHECK(mlflow_parameters({{"b", "2"}}, {{"b", "old"}, {"b after step 40", "2"}}, 40) == Pairs{});
}
