// nvbench's JSON becomes a profile. The document is ours, in the layout of version 1 of its format.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "bench/formats/google_benchmark.hpp"
#include "bench/formats/kineto.hpp"
#include "bench/formats/nvbench.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

json summary(const std::string& tag, const json& value, const std::string& type = "float64") {
  return {{"tag", tag},
          {"name", "N"},
          {"description", "D"},
          {"data", {{{"name", "value"}, {"type", type}, {"value", value}}}}};
}
json sample_file(const std::string& name, const std::string& size) {
  return {{"tag", "nv/json/bin:nv/cold/sample_times"},
          {"data",
           {{{"name", "filename"}, {"type", "string"}, {"value", name}},
            {{"name", "size"}, {"type", "int64"}, {"value", size}}}}};
}
json state(const std::string& type, const std::string& rows, json summaries) {
  return {
      {"name", "Device=0 T=" + type + " rows=" + rows},
      {"device", 0},
      {"type_config_index", 0},
      {"axis_values",
       {{{"name", "T"}, {"type", "string"}, {"value", type}}, {{"name", "rows"}, {"type", "int64"}, {"value", rows}}}},
      {"summaries", std::move(summaries)},
      {"is_skipped", false}};
}
json document() {
  json skipped = state("F64", "64", nullptr);
  skipped["is_skipped"] = true, skipped["skip_reason"] = "No F64 here.";
  const json mean = {summary("nv/cold/sample_size", "120", "int64"), summary("nv/cold/time/gpu/mean", "2e-05"),
                     summary("nv/cold/time/gpu/stdev/relative", "0.004"),
                     summary("nv/cold/sm_clock_rate/mean", "1.98e9"),
                     summary("nv/cold/bw/global/bytes_per_second", "3.1e12")};
  const json kept = {sample_file("result.json-bin/0.bin", "3"), summary("nv/cold/time/gpu/mean", "2e-05"),
                     summary("nv/cold/time/gpu/stdev/relative", nullptr)};
  return {{"meta",
           {{"argv", {"./copy", "--json", "result.json"}},
            {"version",
             {{"json", {{"major", 1}, {"minor", 0}, {"patch", 0}, {"string", "1.0.0"}}},
              {"nvbench", {{"string", "0.1.0"}}}}}}},
          {"devices",
           {{{"id", 0},
             {"name", "NVIDIA H200"},
             {"sm_version", 900},
             {"number_of_sms", 132},
             {"sm_default_clock_rate", 1980000000},
             {"global_memory_size", 150109880320},
             {"l2_cache_size", 62914560},
             {"ecc_state", true}}}},
          {"benchmarks",
           {{{"name", "copy"},
             {"index", 0},
             {"devices", {0}},
             {"axes", nullptr},
             {"states", {state("F32", "64", mean), state("F32", "128", kept), skipped}}}}}};
}

/// Written as nvbench writes it: the JSON, and beside it the folder of samples.
struct Written {
  test::TempDirectory folder;
  std::filesystem::path file = folder / "result.json";
  Written() {
    std::filesystem::create_directory(folder / "result.json-bin");
    put({1e-5F, 2e-5F, 4e-5F});
  }
  void put(const std::vector<float>& seconds) const {
    std::string bytes(seconds.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), seconds.data(), bytes.size());
    test::write_bytes(folder / "result.json-bin" / "0.bin", bytes);
  }
};

std::string error_of(const json& bad) {
  const Written written;
  return test::usage_error([&] { from_nvbench(bad, written.file); });
}
std::string error_with(const std::string& pointer, const json& value) {
  json bad = document();
  bad[json::json_pointer(pointer)] = value;
  return error_of(bad);
}

}  // namespace

TEST_CASE("a state of nvbench is a measurement: every sample, or the mean where no more was kept") {
  const Written written;
  REQUIRE(is_nvbench(document()));
  const NvbenchResult result = from_nvbench(document(), written.file);
  REQUIRE(result.profile.measurements.size() == 2);
  const Measurement &mean = result.profile.measurements[0], &kept = result.profile.measurements[1];
  CHECK(mean.name() == "copy/T=F32/rows=64/device");
  CHECK(mean.samples == std::vector<double>{2e-5});
  CHECK(mean.counters ==
        std::map<std::string, double>{
            {"cold_samples", 120}, {"relative_stdev", 0.004}, {"mean_sm_clock_MHz", 1980}, {"bytes_per_s", 3.1e12}});
  CHECK_THAT(mean.evidence.source, Contains("mean of 120 cold samples"));
  CHECK(kept.name() == "copy/T=F32/rows=128/device");
  REQUIRE(kept.samples.size() == 3);
  CHECK(kept.samples[2] == Approx(4e-5));
  CHECK(kept.counters.count("relative_stdev") == 0);  // null is nvbench's infinity
  REQUIRE(result.skipped.size() == 1);
  CHECK(result.skipped[0] == std::pair<std::string, std::string>{"copy/T=F64/rows=64/device", "No F64 here."});
  const std::map<std::string, std::string> facts = {{"device", "NVIDIA H200"},
                                                    {"compute_capability", "9.0"},
                                                    {"multiprocessors", "132"},
                                                    {"device_memory_GiB", "140"},
                                                    {"l2_MiB", "60"},
                                                    {"default_clock_MHz", "1980"},
                                                    {"ecc", "on"},
                                                    {"nvbench", "0.1.0"},
                                                    {"host", "asynchronous"},
                                                    {"source", "nvbench"}};
  CHECK(result.profile.fingerprint == facts);
  CHECK_NOTHROW(profile_from_json(to_json(result.profile), "round trip"));
}

TEST_CASE("nvbench: older files have no meta, numbers as numbers, and samples relative to where it ran") {
  const Written written;
  json old = document();
  old.erase("meta");
  old["benchmarks"][0]["states"][0]["axis_values"][1]["value"] = 64;
  old["benchmarks"][0]["states"][1]["summaries"][0] =
      sample_file((written.folder.path().filename() / "result.json-bin" / "0.bin").string(), "3");
  CHECK(from_nvbench(old, written.file).profile.measurements[1].samples.size() == 3);
}

TEST_CASE("nvbench: bad files are refused with their place") {
  CHECK_THAT(error_with("/meta/version/json/major", 2),
             Contains("/meta/version/json/major: found version 2, allowed 1"));
  CHECK_THAT(error_with("/benchmarks/0/states/1/device", 1),
             Contains("/benchmarks/0/states/1/device: found devices 0 and 1"));
  CHECK_THAT(error_with("/devices/0/id", 3), Contains("no device 0"));
  CHECK_THAT(error_with("/benchmarks/0/states/0/summaries/1/data/0/value", "soon"),
             Contains("/summaries/1/data/0/value: found 'soon'"));
  CHECK_THAT(error_with("/benchmarks/0/states/0/summaries/1/data/0/value", "nan"), Contains("found 'nan'"));
  CHECK_THAT(error_with("/benchmarks/0/states/0/summaries/1/data/0/value", "-1"), Contains("seconds >= 0"));
  CHECK_THAT(error_with("/benchmarks/0/states/0/summaries/1/tag", "nv/cpu_only"), Contains("no cold time"));
  CHECK_THAT(error_with("/benchmarks/0/states/0/axis_values/1/value", "6x"),
             Contains("found '6x', allowed a whole number"));
  CHECK_THAT(error_with("/benchmarks/0/states/1/axis_values/1/value", "64"),
             Contains("a second state of 'copy/T=F32/rows=64/device'"));
  CHECK_THAT(error_with("/benchmarks/0/states/1/summaries/0/data/1/value", "4"),
             Contains("12 bytes can be read") && Contains("4 samples"));
  CHECK_THAT(error_with("/benchmarks/0/states/1/summaries/0/data/1/value", "-3"), Contains("-3 samples"));
  CHECK_THAT(error_with("/benchmarks/0/states/1/summaries/0/data/0/value", "gone.bin"),
             Contains("0 bytes can be read"));
  CHECK_THAT(error_with("/benchmarks/0/states/0", 7), Contains("/benchmarks/0/states/0"));
  CHECK_THAT(error_with("/benchmarks", json::array()), Contains("no state"));
  json skipped = document();
  skipped["benchmarks"][0]["states"] = json::array({document()["benchmarks"][0]["states"][2]});
  CHECK_THAT(error_of(skipped), Contains("skipped states alone: No F64 here."));

  const Written written;
  written.put({1e-5F, -1.0F, 1e-5F});
  CHECK_THAT(test::usage_error([&] { from_nvbench(document(), written.file); }), Contains("a sample of -1 s"));
  written.put({1e-5F, std::nanf(""), 1e-5F});
  CHECK_THAT(test::usage_error([&] { from_nvbench(document(), written.file); }), Contains("seconds >= 0"));
}

TEST_CASE("nvbench's JSON is told from Google Benchmark's and from a trace") {
  CHECK_FALSE(is_google_benchmark(document()));
  CHECK_FALSE(is_chrome_trace(document()));
  CHECK_FALSE(is_nvbench(json{{"context", json::object()}, {"benchmarks", json::array()}}));
  CHECK_FALSE(is_nvbench(json::array()));
}
