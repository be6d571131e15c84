#include <catch2/catch.hpp>

#include "bench/formats/google_benchmark.hpp"
#include "bench/formats/merge_profiles.hpp"
#include "bench/formats/rate.hpp"
#include "configs/base/error.hpp"
#include "configs/machine/fingerprint.hpp"

using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

// As Debian's Google Benchmark 1.7.1 writes it, shortened.
json google_document() {
  return json::parse(R"({
    "context": {"date": "2026-01-01T00:00:00+00:00", "host_name": "h", "executable": "./b", "num_cpus": 2,
      "mhz_per_cpu": 2100, "cpu_scaling_enabled": false, "caches": [], "load_avg": [1.0], "library_build_type": "debug",
      "device": "cpu"},
    "benchmarks": [
      {"name": "BM_copy/bytes:64/8/manual_time", "family_index": 0, "per_family_instance_index": 0,
       "run_name": "BM_copy/bytes:64/8/manual_time", "run_type": "iteration", "repetitions": 2, "repetition_index": 0,
       "threads": 1, "iterations": 10, "real_time": 2.0, "cpu_time": 4.0, "time_unit": "us", "rate": 10.0},
      {"name": "BM_copy/bytes:64/8/manual_time", "family_index": 0, "per_family_instance_index": 0,
       "run_name": "BM_copy/bytes:64/8/manual_time", "run_type": "iteration", "repetitions": 2, "repetition_index": 1,
       "threads": 1, "iterations": 10, "real_time": 3.0, "cpu_time": 6.0, "time_unit": "us", "rate": 30.0},
      {"name": "BM_copy/bytes:64/8/manual_time_mean", "family_index": 0, "per_family_instance_index": 0,
       "run_name": "BM_copy/bytes:64/8/manual_time", "run_type": "aggregate", "repetitions": 2, "threads": 1,
       "aggregate_name": "mean", "aggregate_unit": "time", "iterations": 2, "real_time": 2.5, "cpu_time": 5.0,
       "time_unit": "us", "rate": 20.0}]})");
}

wt::Profile one(const std::string& date, std::vector<double> samples) {
  wt::Measurement m;
  m.kernel = std::string("k");
  m.samples = std::move(samples);
  m.counters = {{"cpu_s", m.samples[0]}};
  m.evidence = {wt::Evidence::measured, fmt::format("run {}", date)};
  return {{{"device", "cpu"}, {"commit", "a"}, {"date", date}}, {m}};
}

}  // namespace

TEST_CASE("Google Benchmark's CPU times are samples where they are asked for") {
  const auto clock = wt::GoogleBenchmarkClock::cpu;
  const wt::Measurement m = wt::from_google_benchmark(google_document(), "b.json", clock).measurements.at(0);
  CHECK(m.name() == "BM_copy/8/bytes=64/thread_cpu");
  CHECK(m.samples == std::vector<double>{4e-6, 6e-6});
  CHECK(wt::google_benchmark_names(google_document(), "b.json", clock).count(m.name()) == 1);
}

TEST_CASE("Google Benchmark's iteration rows become samples in seconds") {
  const wt::Profile profile = wt::from_google_benchmark(google_document(), "b.json");
  REQUIRE(profile.measurements.size() == 1);
  const wt::Measurement& m = profile.measurements[0];
  CHECK(m.name() == "BM_copy/8/bytes=64/device");
  REQUIRE(m.samples.size() == 2);
  CHECK(m.samples[0] == Approx(2e-6));
  CHECK(m.samples[1] == Approx(3e-6));
  CHECK(m.counters.at("rate") == Approx(20));
  CHECK(m.counters.at("cpu_s") == Approx(5e-6));
  CHECK(profile.fingerprint.at("device") == "cpu");
  CHECK(profile.fingerprint.at("cpu_scaling") == "off");
  CHECK(profile.fingerprint.count("library_build_type") == 0);
  CHECK_NOTHROW(wt::profile_from_json(wt::to_json(profile), "round trip"));
}

TEST_CASE("a benchmark that reports an error has failed, and one that was skipped is not there") {
  json document = google_document();
  json other = document["benchmarks"][0];
  other["run_name"] = "BM_fill/8";
  document["benchmarks"].push_back(other);
  const std::size_t whole = wt::from_google_benchmark(document, "b.json").measurements.size();
  json& row = document["benchmarks"][1];
  row["error_occurred"] = true;
  row["error_message"] = "no GPU";
  row.erase("real_time");
  const wt::Profile broken = wt::from_google_benchmark(document, "b.json");
  CHECK(broken.measurements.size() == whole - 1);
  REQUIRE(broken.failures.size() == 1);
  CHECK(broken.failures[0].name == "BM_copy/8/bytes=64/device");  // also where another repetition ran
  CHECK(broken.failures[0].error == "no GPU");

  document = google_document();
  document["benchmarks"].push_back(other);
  document["benchmarks"].back()["skipped"] = true;
  document["benchmarks"].back()["error_occurred"] = false;
  const wt::Profile skipped = wt::from_google_benchmark(document, "b.json");
  CHECK(skipped.measurements.size() == whole - 1);
  CHECK(skipped.failures.empty());
}

TEST_CASE("Google Benchmark: other caches are another machine") {
  json document = google_document();
  const json cache = {{"level", 3}, {"type", "Unified"}, {"size", 33554432}, {"num_sharing", 16}};
  document["context"]["caches"] = {cache};
  const wt::Fingerprint small = wt::from_google_benchmark(document, "b.json").fingerprint;
  CHECK(small.at("caches") == "L3 Unified 33554432 B");
  document["context"]["caches"][0]["size"] = 268435456;
  CHECK(wt::differences(small, wt::from_google_benchmark(document, "b.json").fingerprint, {}).size() == 1);
}

TEST_CASE("Google Benchmark: unknown units, aggregates only, and names that collide") {
  json document = google_document();
  document["benchmarks"][0]["time_unit"] = "min";
  CHECK_THROWS_WITH(wt::from_google_benchmark(document, "b.json"), Contains("/benchmarks/0/time_unit: found 'min'"));
  document = google_document();
  document["benchmarks"].erase(1);
  document["benchmarks"].erase(0);
  CHECK_THROWS_WITH(wt::from_google_benchmark(document, "b.json"), Contains("no iteration rows"));
  document = google_document();
  document["benchmarks"][1]["run_name"] = "BM_copy/bytes:64/8/iterations:3/manual_time";
  CHECK_THROWS_WITH(wt::from_google_benchmark(document, "b.json"), Contains("the same measurement as"));
}

TEST_CASE("merging appends samples and keeps what tells the runs apart") {
  const wt::Profile all = wt::merge({one("d1", {1, 2}), one("d2", {4}), one("d1", {7})});
  REQUIRE(all.measurements.size() == 1);
  CHECK(all.measurements[0].samples == std::vector<double>{1, 2, 4, 7});
  CHECK(all.measurements[0].counters.at("cpu_s") == Approx((2 * 1 + 4 + 7) / 4.0));
  CHECK(all.measurements[0].evidence.source == "run d1 + run d2");
  CHECK(all.fingerprint.at("date") == "d1 + d2");
}

TEST_CASE("a merged profile's digest has those of all its parts") {
  const wt::Profile a = one("d1", {1}), b = one("d2", {2}), c = one("d3", {4}), ab = wt::merge({a, b});
  CHECK(wt::digest(a).size() == 16);
  CHECK(wt::merge({a}).fingerprint.count(wt::kMergedFrom) == 0);
  for (const wt::Profile& part : {a, b, c, ab}) CHECK_THAT(wt::digest(wt::merge({ab, c})), Contains(wt::digest(part)));
  CHECK_THAT(wt::digest(ab), !Contains(wt::digest(c)));
}

TEST_CASE("merging keeps the largest error, the lowest clock, and every reason of throttling once") {
  wt::Profile a = one("d1", {1, 2}), b = one("d2", {4});
  a.measurements[0].counters = {{"max_rel_error", 0.1}, {"min_sm_clock_MHz", 1000}};
  b.measurements[0].counters = {{"max_rel_error", 0.3}, {"min_sm_clock_MHz", 1200}};
  a.measurements[0].throttled = {"hw_slowdown"};
  b.measurements[0].throttled = {"hw_thermal", "hw_slowdown"};
  const wt::Measurement all = wt::merge({a, b}).measurements[0];
  CHECK(all.counters.at("max_rel_error") == 0.3);
  CHECK(all.counters.at("min_sm_clock_MHz") == 1000);
  CHECK(all.throttled == std::vector<std::string>{"hw_slowdown", "hw_thermal"});
}

TEST_CASE("merging refuses other machines, other commits, other units, and nothing") {
  wt::Profile other = one("d2", {1});
  other.fingerprint["device"] = std::string("gpu");
  CHECK_THROWS_WITH(wt::merge({one("d1", {1}), other}), Contains("profile 1 and profile 2 (device: 'cpu' and 'gpu')"));
  other = one("d2", {1});
  other.fingerprint["commit"] = std::string("b");
  CHECK_THROWS_WITH(wt::merge({one("d1", {1}), other}), Contains("commit: 'a' and 'b'"));
  other = one("d2", {1});
  other.measurements[0].unit = std::string("us");
  CHECK_THROWS_WITH(wt::merge({one("d1", {1}), other}), Contains("k/forward"));
  CHECK_THROWS_AS(wt::merge({}), wt::Error);
}

TEST_CASE("this machine tells what it is") {
  const wt::Fingerprint facts = wt::host_facts();
  for (const char* key : {"host", "cpu_model", "cores", "memory_GiB", "kernel", "compiler", "date"}) {
    INFO(key);
    CHECK(facts.count(key) == 1);
  }
  CHECK(std::stoi(facts.at("cores")) >= 1);
  CHECK(facts.at("date").size() == 20);
  CHECK(wt::differences(facts, wt::host_facts()).empty());
}

TEST_CASE("run facts are not compared, ignored keys neither") {
  const wt::Fingerprint a = {{"host", "x"}, {"run.port", "1"}, {"cuda", "12"}}, b = {{"host", "y"}, {"cuda", "13"}};
  REQUIRE(wt::differences(a, b).size() == 1);
  CHECK(wt::to_string(wt::differences(a, b)) == "cuda: '12' and '13'");
  CHECK(wt::differences(a, b, {"cuda"}).empty());
}

TEST_CASE("rates are of products in FLOP/s and of the rest in B/s; spread is half the middle 80 % over the median") {
  wt::Measurement m;
  m.kernel = "gemm", m.shape = {{"rows", 10}, {"n", 20}, {"k", 30}};
  m.samples = {1e-6, 2e-6, 3e-6};
  CHECK(wt::rate(m)->value == Approx(12000 / 2e-6));  // 2 rows n k
  m.counters = {{"flops", 4000}, {"bytes", 9}};
  CHECK(wt::to_string(*wt::rate(m)) == "2.0 GFLOP/s");
  m.kernel = "swiglu";
  CHECK(wt::rate(m)->value == Approx(9 / 2e-6));
  m.shape["bytes"] = 8000;  // a copy's size; what it moved is counted
  CHECK(wt::rate(m)->value == Approx(9 / 2e-6));
  m.counters.clear();
  CHECK(wt::to_string(*wt::rate(m)) == "4.00 GB/s");
  CHECK(wt::spread(m) == Approx(0.5));
  m.unit = "tokens/s";
  CHECK_FALSE(wt::rate(m));
  m.unit = "s", m.samples = {0};
  CHECK_FALSE(wt::rate(m));
  CHECK(wt::spread(m) == 0);
  m.samples = {100, 6, 4, 5, 5, 5, 5, 5, 5, 0.1};  // of ten, the outermost do not count
  CHECK(wt::spread(m) == Approx(0.5 * (6 - 4) / 5));
}
