// windtunnel profile as a user meets it: the text of show and diff, what merge writes, and what is refused.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/files/profile.hpp"
#include "tests/fixtures/golden.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/windtunnel.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

Ended run(const std::string& arguments) { return windtunnel("profile " + arguments); }

Measurement gemm(std::int64_t rows, double scale) {
  Measurement m;
  m.kernel = "gemm", m.dtype = "bf16", m.clock = "device";
  m.shape = {{"rows", rows}, {"n", 1024}, {"k", 1024}};
  for (int i = 0; i < 9; ++i) m.samples.push_back(scale * 1e-6 * static_cast<double>(rows) * (1 + 0.002 * i));
  m.counters = {
      {"flops", 2.0 * static_cast<double>(rows) * 1024 * 1024}, {"max_rel_error", 0.004}, {"mean_sm_clock_MHz", 1900}};
  m.evidence = {Evidence::measured, "9 samples"};
  return m;
}

Profile profile(const std::string& date, double scale) {
  Measurement write;
  write.kernel = "checkpoint_write", write.pass = "", write.dtype = "fp32",
  write.shape = {{"bytes", 1 << 20}, {"ranks", 1}};
  write.samples = {1e-3, 1.1e-3, 1.2e-3};
  write.evidence = {Evidence::measured, "3 samples"};
  return {{{"device", "NVIDIA H200"},
           {"driver", "580.82.07"},
           {"commit", "0123456789ab"},
           {"date", date},
           {"run.seed", "17"},
           {"run.data", "standard normal"},
           {"run.clock_events", "none"},
           {"run.other_gpu_processes", "0"}},
          {gemm(512, 1), gemm(2048, scale), write}};
}

/// All that has no place, time or commit of this run in it.
std::string without_provenance(const std::string& text) { return text.substr(0, text.find("Where this comes from")); }

void check_golden(const std::string& name, const std::string& text) {
  CHECK(text == golden("tests/golden/" + name, text));
}

struct Files {
  test::TempDirectory folder;
  std::string a = (folder / "a.json").string(), b = (folder / "b.json").string(), out = (folder / "out.json").string();
  Files() {
    write_profile(profile("2026-01-01T00:00:00Z", 1), a);
    Profile slowed = profile("2026-01-02T00:00:00Z", 1.25);
    slowed.measurements[1].throttled = {"hw_slowdown"};
    slowed.measurements.push_back(gemm(4096, 1));
    slowed.fingerprint["run.other_gpu_processes"] = "2";
    slowed.fingerprint["run.ecc_uncorrected_volatile"] = "1";
    slowed.fingerprint["run.other_busy_cores"] = "0.05 + 1.20";
    write_profile(slowed, b);
  }
};

}  // namespace

TEST_CASE("profile show says machine, run, measurements and what speaks against them") {
  const Files files;
  const Ended shown = run("show " + files.b + " gemm");
  INFO(shown.said);
  CHECK(shown.status == 0);
  check_golden("profile_show.txt", without_provenance(shown.said));
  const Ended clean = run("show " + files.a);
  CHECK(clean.said.find("throttled") == std::string::npos);
  CHECK(clean.said.find("other processes") == std::string::npos);
  const json document = json::parse(run("show " + files.b + " --json").said);
  CHECK(document.at("payload").at("measurements").size() == 4);
  CHECK(document.at("payload").at("measurements")[1].at("throttled") == json{"hw_slowdown"});
  CHECK(document.at("payload").at("measurements")[0].at("max_rel_error") == 0.004);
}

TEST_CASE("a rate of bytes that an estimate counts is named an estimate, and one of bytes that moved is not") {
  const test::TempDirectory folder;
  Measurement loss = gemm(8192, 1);
  loss.kernel = "cross_entropy", loss.shape = {{"rows", 8192}, {"vocab", 32768}};
  loss.counters["bytes"] = 8192.0 * 32768 * 8;
  Measurement moved = loss;  // as the aims of our kernels count it
  moved.kernel = "permute", moved.counters.erase("flops");
  Profile of = profile("2026-01-01T00:00:00Z", 1);
  of.measurements = {loss, moved};
  const std::string file = (folder / "p.json").string(), note = "no bandwidth";
  write_profile(of, file);
  CHECK_THAT(run("show " + file).said, Contains("GB/s est.") && Contains(note));
  CHECK_THAT(run("show " + file + " cross_entropy").said, Contains(note));
  const json rows = json::parse(run("show " + file + " --json").said).at("payload").at("measurements");
  CHECK(rows[0].at("rate_estimated") == true);
  CHECK(rows[1].at("rate_estimated") == false);
  of.measurements = {moved};
  write_profile(of, file);
  CHECK_THAT(run("show " + file).said, !Contains("est."));
}

TEST_CASE("profile diff shows ratios with their intervals and judges nothing") {
  const Files files;
  const Ended looked = run("diff " + files.a + " " + files.b);
  INFO(looked.said);
  CHECK(looked.status == 0);
  check_golden("profile_diff.txt", without_provenance(looked.said));
  const json document = json::parse(run("diff " + files.a + " " + files.b + " --json").said).at("payload");
  CHECK(document.at("pairs").size() == 3);
  CHECK(document.at("pairs")[1].at("ratio") == Approx(1.25));
  CHECK(document.at("pairs")[1].at("ratio_low") < 1.25);
  CHECK(document.at("pairs")[2].at("ratio_low").is_null());  // three samples give no interval of 95 %
  CHECK(document.at("within_spreads") == 2);                 // the third is a quarter slower, by samples within 1 %
  CHECK(document.at("only_b") == json{"gemm/forward/bf16/k=1024,n=1024,rows=4096/device"});
  CHECK_THAT(run("diff " + files.a + " tests/data/h100-profile.json").said, Contains("no measurement in common"));
}

TEST_CASE("profile reads Google Benchmark and nvbench as they are") {
  const test::TempDirectory folder;
  const std::string in = (folder / "in.json").string();
  test::write_bytes(
      in, R"({"context": {"host_name": "h"}, "benchmarks": [{"name": "BM_copy/bytes:4096", "run_type": "iteration",
    "real_time": 2, "cpu_time": 2, "time_unit": "us"}]})");
  CHECK_THAT(run("show " + in).said, Contains("1 measurement of 1 kernel") && Contains("2.05 GB/s"));
  test::write_bytes(
      in, R"({"devices": [{"id": 0, "name": "NVIDIA H200"}], "benchmarks": [{"name": "copy", "states": [{"device": 0,
    "axis_values": null, "summaries": [{"tag": "nv/cold/time/gpu/mean", "data": [{"name": "value", "type": "float64", "value": "2e-05"}]}]}]}]})");
  CHECK_THAT(run("show " + in).said, Contains("1 kernel on NVIDIA H200") && Contains("20 us"));
}

TEST_CASE("profile merge joins the samples of one machine's runs") {
  const Files files;
  Profile other = profile("2026-01-03T00:00:00Z", 1.01);
  other.measurements[0].counters["max_rel_error"] = 0.009;
  const std::string c = (files.folder / "c.json").string();
  write_profile(other, c);
  const Ended merged = run("merge " + files.a + " " + files.b + " " + c + " -o " + files.out + " --json");
  INFO(merged.said);
  REQUIRE(merged.status == 0);
  CHECK(json::parse(merged.said).at("payload").at("samples") == 3 * 21 + 9);
  const Profile all = read_profile(files.out);
  REQUIRE(all.measurements.size() == 4);
  CHECK(all.measurements[0].samples.size() == 27);
  CHECK(all.measurements[0].counters.at("max_rel_error") == 0.009);  // the largest, not the mean
  CHECK(all.measurements[0].counters.at("mean_sm_clock_MHz") == 1900);
  CHECK(all.measurements[1].throttled == std::vector<std::string>{"hw_slowdown"});
  CHECK(all.fingerprint.at("run.other_gpu_processes") == "0 + 2");
  CHECK_THAT(run("show " + files.out).said, Contains("2 on the device beside the one that measured"));
}

TEST_CASE("profile refuses what it cannot read or merge") {
  const Files files;
  const auto refused = [&](const std::string& arguments, const std::string& why) {
    const Ended ended = run(arguments);
    INFO(arguments << ": " << ended.said);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.said, Contains(why));
  };
  refused("", "subcommand");
  refused("show", "PROFILE");
  refused("show " + files.a + " gem", "did you mean 'gemm'?");
  refused("show no-such-profile", "no-such-profile");
  refused("diff " + files.a, "PROFILES");
  refused("merge " + files.a + " " + files.b, "--output");
  refused("merge " + files.a + " " + files.a + " -o " + files.out, "twice");
  test::write_bytes(files.out, "# nccl-tests");
  refused("show " + files.out, "not JSON");
  test::write_bytes(files.out, R"({"schema": "windtunnel.plan/1"})");
  refused("show " + files.out, "windtunnel.profile/1");
  Profile other = profile("2026-01-01T00:00:00Z", 1);
  other.fingerprint["driver"] = "570.1";
  write_profile(other, files.out);
  refused("merge " + files.a + " " + files.out + " -o " + files.b, "driver: '580.82.07' and '570.1'");
}
