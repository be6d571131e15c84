#include "configs/files/profile.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/nearest.hpp"

using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

wt::Profile sample_profile() {
  wt::Measurement gemm;
  gemm.kernel = "gemm";
  gemm.dtype = "fp32";
  gemm.shape = {{"m", 512}, {"n", 256}, {"k", 256}};
  gemm.samples = {3e-6, 1e-6, 0.1 + 0.2};  // 0.30000000000000004: every bit must come back
  gemm.counters = {{"cpu_s", 2.5e-6}};
  gemm.evidence = {wt::Evidence::measured, "host, n = 3"};
  return {{{"device", "cpu"}, {"cores", "2"}}, {gemm}};
}

std::string error_of(const json& document) {
  try {
    wt::profile_from_json(document, "p.json");
  } catch (const wt::Error& e) {
    CHECK(e.code() == wt::Code::usage);
    return e.what();
  }
  return "no error";
}

std::string error_with(const std::string& pointer, const json& value) {
  json document = wt::to_json(sample_profile());
  document[json::json_pointer(pointer)] = value;
  return error_of(document);
}

}  // namespace

TEST_CASE("benchmarks that failed are read back; without any the file is as ever") {
  wt::Profile profile = sample_profile();
  CHECK_FALSE(wt::to_json(profile).contains("failures"));
  profile.failures = {{"rope/forward", "wrong"}};
  const wt::Profile back = wt::profile_from_json(wt::to_json(profile), "p.json");
  REQUIRE(back.failures.size() == 1);
  CHECK(back.failures[0].name == "rope/forward");
  CHECK(back.failures[0].error == "wrong");
}

TEST_CASE("a profile comes back from its file bit for bit") {
  const auto file = std::filesystem::temp_directory_path() / fmt::format("wt_profile_{}.json", getpid());
  wt::write_profile(sample_profile(), file);
  const wt::Profile back = wt::read_profile(file);
  std::filesystem::remove(file);
  REQUIRE(back.measurements.size() == 1);
  CHECK(back.fingerprint == sample_profile().fingerprint);
  CHECK(back.measurements[0].samples == sample_profile().measurements[0].samples);
  CHECK(back.measurements[0].evidence.kind == wt::Evidence::measured);
  CHECK(wt::to_json(back) == wt::to_json(sample_profile()));
}

TEST_CASE("a measurement's name lists its shape in order and its clock when not wall") {
  wt::Measurement m = sample_profile().measurements[0];
  CHECK(m.name() == "gemm/forward/fp32/k=256,m=512,n=256");
  m.clock = "thread_cpu";
  CHECK(m.name() == "gemm/forward/fp32/k=256,m=512,n=256/thread_cpu");
}

TEST_CASE("median of odd, even and no samples") {
  wt::Measurement m;
  m.samples = {5, 1, 3};
  CHECK(m.median() == 3);
  m.samples = {4, 1, 3, 2};
  CHECK(m.median() == 2.5);
  m.samples.clear();
  CHECK_THROWS_AS(m.median(), wt::Error);
}

TEST_CASE("an unknown key names file, place and the nearest known key") {
  CHECK_THAT(error_with("/measurements/0/sampels", json::array()),
             Contains("p.json: /measurements/0: found unknown key 'sampels'") && Contains("did you mean 'samples'?"));
  CHECK_THAT(error_with("/fingerprnt", json::object()), Contains("did you mean 'fingerprint'?"));
}

TEST_CASE("bad values are named with their JSON pointer") {
  CHECK_THAT(error_with("/measurements/0/samples/1", -1.0), Contains("/measurements/0/samples/1: found number -1.0"));
  CHECK_THAT(error_with("/measurements/0/samples/1", "1"), Contains("/measurements/0/samples/1: found string"));
  CHECK_THAT(error_with("/measurements/0/samples/1", std::nan("")), Contains("/samples/1") && Contains("finite"));
  CHECK_THAT(error_with("/measurements/0/samples", json::array()), Contains("found no sample"));
  CHECK_THAT(error_with("/measurements/0/shape/m", 1.5), Contains("/measurements/0/shape/m: found number 1.5"));
  CHECK_THAT(error_with("/measurements/0/shape/m", -2), Contains("found -2"));
  CHECK_THAT(error_with("/measurements/0/pass", "sideways"), Contains("allowed forward, backward"));
  CHECK_THAT(error_with("/measurements/0/evidence/kind", "guessed"), Contains("/measurements/0/evidence/kind"));
  CHECK_THAT(error_with("/fingerprint/cores", 2), Contains("/fingerprint/cores: found number 2, allowed a string"));
  CHECK_THAT(error_with("/schema", "windtunnel.plan/1"), Contains("'windtunnel.profile/1'"));
}

TEST_CASE("throttling is written where there was some, and comes back") {
  wt::Profile profile = sample_profile();
  CHECK_FALSE(wt::to_json(profile)["measurements"][0].contains("throttled"));
  profile.measurements[0].throttled = {"hw_slowdown", "hw_thermal"};
  CHECK(wt::profile_from_json(wt::to_json(profile), "p").measurements[0].throttled ==
        profile.measurements[0].throttled);
  CHECK_THAT(error_with("/measurements/0/throttled", json{"sw_power_cap"}),
             Contains("/measurements/0/throttled/0: found 'sw_power_cap', allowed hw_slowdown"));
  CHECK_THAT(error_with("/measurements/0/throttled", "hw_slowdown"), Contains("/measurements/0/throttled"));
}

TEST_CASE("missing keys and documents of another type are errors") {
  json document = wt::to_json(sample_profile());
  document["measurements"][0].erase("samples");
  CHECK_THAT(error_of(document), Contains("no key 'samples'"));
  CHECK_THAT(error_of(json::array()), Contains("allowed an object"));
}

TEST_CASE("two measurements of one name are refused, reading and writing") {
  wt::Profile twice = sample_profile();
  twice.measurements.push_back(twice.measurements[0]);
  CHECK_THROWS_WITH(wt::to_json(twice), Contains("/measurements/1: found a second measurement named 'gemm/forward"));
}

TEST_CASE("a NaN sample is refused before it is written") {
  wt::Profile broken = sample_profile();
  broken.measurements[0].samples[2] = std::numeric_limits<double>::infinity();
  CHECK_THROWS_WITH(wt::write_profile(broken, "/nonexistent/p.json"), Contains("/measurements/0/samples/2"));
}

TEST_CASE("files that are not there or not JSON are usage errors") {
  CHECK_THROWS_WITH(wt::read_profile("/nonexistent/p.json"), Contains("/nonexistent/p.json: cannot be read"));
  CHECK_THROWS_WITH(wt::read_profile("tests/CMakeLists.txt"), Contains("not JSON"));
}

TEST_CASE("the nearest word") {
  const std::vector<std::string> known = {"gate", "plan", "simulate", "report"};
  CHECK(wt::nearest("simluate", known) == "simulate");  // one swap
  CHECK(wt::nearest("Gate", known) == "gate");
  CHECK(wt::nearest("plam", known) == "plan");
  CHECK(wt::nearest("checkpoint", known).empty());
  CHECK(wt::nearest("", known).empty());
  CHECK(wt::did_you_mean("repotr", known) == "; did you mean 'report'?");
}
