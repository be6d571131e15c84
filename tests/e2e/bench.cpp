// bench as a person runs it: interrupted and continued, with a benchmark that fails, and for a study.
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/work/cases.hpp"
#include "bench/work/work_list.hpp"
#include "configs/files/profile.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/trainer_fixture.hpp"
#include "tests/fixtures/windtunnel.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

fs::path run_file(const RunSpec& run, const fs::path& folder) {
  write_bytes(folder / "run.yaml", run_to_yaml(run));
  return folder / "run.yaml";
}

Ended bench(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{"bench"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return wait_for(start_trainer(words), 400);
}

std::map<std::string, std::vector<double>> samples_of(const fs::path& file) {
  std::map<std::string, std::vector<double>> out;
  for (const Measurement& m : read_profile(file).measurements) out[m.name()] = m.samples;
  return out;
}

const char* const kModel =
    "name: small\nn_layers: 2\nd_model: 64\nn_heads: 4\nvocab_size: 264\nattn_config: {kv_n_heads: 2}\n"
    "ffn_config: {ffn_hidden_size: 96, moe_num_experts: 4, moe_top_k: 2}\n";

std::string study(const fs::path& folder, const std::string& profiles, const std::string& cluster = "local-2core") {
  return "name: small\nmodel: " + (folder / "model.yaml").string() + "\ncluster: " + cluster +
         "\ngpus: " + (cluster == "local-2core" ? "4" : "8") + "\n" + profiles +
         "tokens: 1M\nmax_seq_len: 32\nglobal_train_batch_size: 16\nrouting: [balanced]\nfailures: llama3\n" +
         "precision: " + (cluster == "local-2core" ? "fp32" : "amp_bf16") +
         "\nsearch: {microbatch: [1, 2], recompute: [none]}\n";
}

}  // namespace

TEST_CASE("an interrupted bench keeps what it has measured, and the same command goes on from there") {
  constexpr std::size_t kSamples = 4;
  const TempDirectory folder;
  const RunSpec run = small_run();
  const fs::path out = folder / "out.json", partial = out.string() + ".partial";
  const std::vector<std::string> command{
      "kernels", "--run",     run_file(run, folder.path()).string(), "--samples", std::to_string(kSamples),
      "-o",      out.string()};
  std::vector<std::string> words = command;
  words.insert(words.begin(), "bench");
  const Started started = start_trainer(words);
  for (int waited_ms = 0; !fs::exists(partial) && waited_ms < 100'000; waited_ms += 5) usleep(5000);
  REQUIRE(kill(started.pid, SIGINT) == 0);
  const Ended interrupted = wait_for(started);
  INFO(interrupted.said);
  CHECK(interrupted.status == 128 + SIGINT);
  CHECK_THAT(interrupted.said, Contains("interrupted") && Contains("the same command goes on from there"));
  CHECK_FALSE(fs::exists(out));
  const auto before = samples_of(partial);
  REQUIRE_FALSE(before.empty());

  const Ended continued = bench(command);
  INFO(continued.said);
  CHECK(continued.status == 0);
  CHECK_THAT(continued.said, Contains("continues from"));
  CHECK_FALSE(fs::exists(partial));
  const auto after = samples_of(out);                          // a name that is there twice cannot be read
  CHECK(after.size() == kernel_cases(run, false).size() + 2);  // and copies of two sizes
  for (const auto& [name, samples] : after) CHECK(samples.size() == kSamples);
  std::size_t missing = 0;
  for (const auto& [name, samples] : before) {
    const std::vector<double>& all = after.at(name);
    CHECK(std::equal(samples.begin(), samples.end(), all.begin()));
    missing += kSamples - samples.size();
  }
  CHECK((missing > 0 || before.size() < after.size()));
}

TEST_CASE("of an interrupted suite of several processes its blocks stay, and what failed is measured again") {
  constexpr std::size_t kSamples = 3, kCollectiveSamples = 2 * kSamples + 1;
  constexpr std::size_t kKinds = 7, kKindsAcross = 4, kSizes = 11,
                        kFewSizes = 3;  // 1 KiB to 1 MiB, of them 4, 32 and 256 KiB
  const TempDirectory folder;
  const fs::path out = folder / "out.json", partial = out.string() + ".partial";
  const std::vector<std::string> command{"collectives",
                                         "--largest",
                                         "1MiB",
                                         "--run",
                                         run_file(small_run(), folder.path()).string(),
                                         "--samples",
                                         std::to_string(kSamples),
                                         "-o",
                                         out.string()};
  std::vector<std::string> words = command;
  words.insert(words.begin(), "bench");
  const Started started = start_trainer(words);
  for (int waited_ms = 0; (!fs::exists(partial) || samples_of(partial).empty()) && waited_ms < 100'000; waited_ms += 5)
    usleep(5000);
  REQUIRE(kill(started.pid, SIGINT) == 0);
  const Ended interrupted = wait_for(started);
  INFO(interrupted.said);
  CHECK(interrupted.status == 128 + SIGINT);
  CHECK_THAT(interrupted.said, Contains("the same command goes on from there"));
  CHECK(folder.entries() == 2);  // the run file and what was measured
  Profile found = read_profile(partial);
  REQUIRE_FALSE(found.measurements.empty());
  CHECK(found.measurements.size() < kKinds * kSizes);  // over two ranks, the first suite
  CHECK(found.fingerprint.count("run.done") == 0);
  const Measurement failed = found.measurements.back();
  found.measurements.pop_back();
  found.failures.push_back({failed.name(), "planted"});
  write_profile(found, partial);
  const auto before = samples_of(partial);

  const Ended continued = bench(command);
  INFO(continued.said);
  CHECK(continued.status == 0);
  CHECK_THAT(continued.said, Contains("continues from"));
  const auto after = samples_of(out);  // a name that is there twice cannot be read
  CHECK(after.size() ==
        2 * (kKinds * kSizes + 1 + 2 * kKinds) + (kKinds + kKindsAcross) * kFewSizes);  // crowding, overlap; axes
  for (const auto& [name, samples] : before) CHECK(after.at(name) == samples);
  CHECK(after.at(failed.name()).size() == kCollectiveSamples);
  CHECK(after.at(failed.name()) != failed.samples);
}

TEST_CASE("what another command left behind is not taken over") {
  const TempDirectory folder;
  const fs::path out = folder / "out.json";
  Profile other;
  other.fingerprint = {{"cpu_model", "of another machine"}};
  Measurement& m = other.measurements.emplace_back();
  m.kernel = "gemm", m.shape = {{"rows", 1}}, m.samples = {1.0}, m.evidence = {Evidence::measured, "test"};
  write_profile(other, out.string() + ".partial");
  const Ended ended = bench({"kernels", "--quick", "--samples", "3", "--run",
                             run_file(small_run(), folder.path()).string(), "-o", out.string()});
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said, Contains("starts anew") && Contains("of another machine"));
  CHECK(samples_of(out).count(m.name()) == 0);
}

TEST_CASE("a benchmark that fails keeps its row, stops no other, and is the exit status") {
  const TempDirectory folder;
  WorkList list{"broken", "", {}};
  list.items = {make_item(Kernel::copy, Pass::forward, Precision::fp32, {4096, 0}),
                make_item(Kernel::rope, Pass::forward, Precision::fp32, {48, 0}, {1234}),
                make_item(Kernel::swiglu, Pass::forward, Precision::fp32, {64, 0}, {104})};
  write_bytes(folder / "items.json", to_json(list).dump());
  const fs::path out = folder / "out.json";
  const Ended ended = bench({"--run", run_file(small_run(), folder.path()).string(), "--items",
                             (folder / "items.json").string(), "--samples", "3", "-o", out.string()});
  INFO(ended.said);
  CHECK(ended.status == 4);
  CHECK_THAT(ended.said, Contains("1 of 3 benchmarks failed") && Contains("failed: rope of width 1234"));
  const Profile profile = read_profile(out);
  CHECK(profile.measurements.size() == 2);
  REQUIRE(profile.failures.size() == 1);
  CHECK_THAT(profile.failures[0].name, Contains("rope/forward/fp32") && Contains("width=1234"));
}

TEST_CASE("bench aims ends with a verdict on every aim") {
  const TempDirectory folder;
  const Ended ended = bench({"aims", "--samples", "3", "-o", (folder / "aims.json").string()});
  INFO(ended.said);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said, Contains("\naim ") && Contains("permute forward, of the copy's rate") &&
                             Contains("not judged, the aims are of an H200"));
  CHECK(samples_of(folder / "aims.json").count("router_softmax/forward/fp32/experts=64,rows=512,top_k=8/thread_cpu") ==
        1);
}

TEST_CASE("bench staircase measures the products of a list of models, and calibrate takes all of them") {
  const TempDirectory folder;
  write_bytes(folder / "model.yaml", kModel);
  const fs::path out = folder / "stairs.json";
  const Ended ended = bench(
      {"staircase", "--models", (folder / "model.yaml").string(), "--quick", "--samples", "3", "-o", out.string()});
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  const Profile profile = read_profile(out);
  std::map<std::string, int> rows;
  for (const Measurement& m : profile.measurements) ++rows[m.kernel + "/" + m.pass];
  CHECK(rows.size() == 3);
  for (const auto& [name, count] : rows) CHECK(count == rows.at("gemm/forward"));
  CHECK_THAT(windtunnel("calibrate " + out.string()).said, Contains("gemm/backward/fp32") && !Contains("left out"));
  CHECK(bench({"staircase", "--models", "no-such-model"}).status == 2);
  CHECK_THAT(bench({"staircase"}).said, Contains("staircase without --models"));
  CHECK(bench({"kernels", "--models", "dbrx"}).status == 2);
}

TEST_CASE("bench without a run and a file to write prints its table, and measures storage where it is: in any folder") {
  const TempDirectory folder;
  const Ended ended = windtunnel("bench storage --quick --samples 3", "cd '" + folder.path().string() + "' &&");
  INFO(ended.said);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said, Contains("checkpoint_write") && Contains("checkpoint_read"));
  CHECK(folder.entries() == 0);
}

TEST_CASE("bench storage --to measures a store beside the disk and the client itself, and leaves nothing there") {
  const TempDirectory folder;
  const fs::path out = folder / "profile.json", store = folder / "store";
  const Ended ended = windtunnel("bench storage --quick --samples 3 --to " + store.string() + " -o " + out.string());
  INFO(ended.said);
  REQUIRE(ended.status == 0);
  const Profile profile = read_profile(out);
  CHECK(profile.fingerprint.at("run.store") == store.string());
  std::set<std::string> kernels;
  for (const Measurement& m : profile.measurements) kernels.insert(m.kernel);
  CHECK(kernels == std::set<std::string>{"checkpoint_write", "checkpoint_read", "disk_write", "disk_read",
                                         "client_write", "client_read"});
  CHECK(fs::is_empty(store));
  CHECK(folder.entries() == 2);
  CHECK_THAT(windtunnel("bench kernels --to " + store.string()).said, Contains("allowed is storage"));
  CHECK_THAT(windtunnel("bench storage --quick --to az://container/x").said, Contains("s3proxy"));
}

TEST_CASE("bench --for measures what a study lacks, and nothing once it is there") {
  const TempDirectory folder;
  write_bytes(folder / "model.yaml", kModel);
  const fs::path first = folder / "first.json", second = folder / "second.json", file = folder / "study.yaml";
  REQUIRE(bench({"kernels", "--quick", "--samples", "3", "--run", run_file(small_run(), folder.path()).string(), "-o",
                 first.string()})
              .status == 0);
  write_bytes(file, study(folder.path(), "profiles: [" + first.string() + "]\n"));
  const Ended listed = windtunnel("bench --for " + file.string() + " --dry-run");
  INFO(listed.said);
  CHECK(listed.status == 0);
  CHECK_THAT(listed.said, Contains("kernel shapes") && Contains("grouped_gemm/forward/fp32/"));
  const Ended measured = windtunnel("bench --for " + file.string() + " --quick --samples 3 -o " + second.string());
  INFO(measured.said);
  REQUIRE(measured.status == 0);
  CHECK(read_profile(second).fingerprint.at("run.name") == "small");
  write_bytes(file, study(folder.path(), "profiles: [" + first.string() + ", " + second.string() + "]\n"));
  CHECK_THAT(windtunnel("bench --for " + file.string() + " --dry-run").said, Contains("the other 0 take"));
}

TEST_CASE("bench --for refuses what this machine cannot measure") {
  const TempDirectory folder;
  write_bytes(folder / "model.yaml", kModel);
  write_bytes(folder / "study.yaml", study(folder.path(), "", "hgx-h100"));
  const std::string command = "--for " + (folder / "study.yaml").string();
  const Ended refused = windtunnel("bench " + command);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.said, Contains("H100") && Contains("--device cuda"));
  CHECK(windtunnel("bench " + command + " --dry-run").status == 0);
  CHECK(windtunnel("bench " + command + " --run configs/runs/demo.yaml").status == 2);
}
