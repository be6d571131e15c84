// windtunnel import as a user meets it: which kind a file is, what is written, and what is refused.
#include <catch2/catch.hpp>

#include "configs/files/profile.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/windtunnel.hpp"

using Catch::Matchers::Contains;
using namespace wt::test;

namespace {

Ended run(const std::string& arguments) { return windtunnel("import " + arguments); }

const std::string kTable =
    "#  Rank  0 Group  0 Pid   1 on a device  0 [0x19] NVIDIA H100 80GB HBM3\n"
    "#  Rank  1 Group  0 Pid   2 on b device  0 [0x19] NVIDIA H100 80GB HBM3\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "     1048576        262144     float    none      -1    100.0   10.49    5.24      0     99.0   10.59    5.30     "
    " 0\n"
    "# Collective test concluded: all_gather_perf\n";
const std::string kTrace =
    R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllGather", "ts": 1, "dur": 30},)"
    R"({"ph": "X", "cat": "kernel", "name": "home_made", "ts": 1, "dur": 10}]})";
const std::string kNvbench =
    R"({"devices": [{"id": 0, "name": "NVIDIA H200"}], "benchmarks": [{"name": "copy", "states": [)"
    R"({"device": 0, "axis_values": [{"name": "rows", "type": "int64", "value": "64"}], "is_skipped": false, "summaries": [)"
    R"({"tag": "nv/cold/time/gpu/mean", "data": [{"name": "value", "type": "float64", "value": "2e-05"}]}]},)"
    R"({"device": 0, "axis_values": null, "summaries": null, "is_skipped": true, "skip_reason": "Too large."}]}]})";

}  // namespace

TEST_CASE("import tells tables, nvbench and traces apart and writes their profiles") {
  const wt::test::TempDirectory folder;
  const std::string in = (folder / "in").string(), out = (folder / "out.json").string();
  wt::test::write_bytes(in, kTable);
  const Ended table = run(in + " --cluster aws-p5 -o " + out);
  INFO(table.said);
  CHECK(table.status == 0);
  CHECK_THAT(table.said,
             Contains("1 size of all_gather over 2 NVIDIA H100 80GB HBM3 on 2 nodes") && !Contains("hosts"));
  const wt::Profile profile = wt::read_profile(out);
  CHECK(profile.fingerprint.at("nic_Bps") == "5e+10");
  CHECK(profile.fingerprint.at("nvlink_Bps") == "4.5e+11");

  wt::test::write_bytes(in, kTrace);
  const Ended trace = run(in + " -o " + out);
  INFO(trace.said);
  CHECK(trace.status == 0);
  CHECK_THAT(trace.said, Contains("25.0 % of it in kernels of unknown kind") && Contains("home_made"));
  CHECK(wt::read_profile(out).measurements.size() == 2);
  CHECK_THAT(run(in + " --json").said, Contains("\"unknown\""));

  wt::test::write_bytes(in, kNvbench);
  const Ended nvbench = run(in + " -o " + out);
  INFO(nvbench.said);
  CHECK(nvbench.status == 0);
  CHECK_THAT(nvbench.said, Contains("1 measurement of nvbench on NVIDIA H200") && Contains("Too large.") &&
                               Contains("--jsonbin keeps every"));
  CHECK(wt::read_profile(out).measurements.at(0).name() == "copy/rows=64/device");
}

TEST_CASE("import says whether the bus bandwidth of nccl-tests is usual, and flags supply what a log lacks") {
  const std::string logs = "tests/data/nccl_tests/";
  for (const char* file : {"mpi_suffix.txt", "per_iteration.json"}) {
    const Ended ended = run(logs + file + " --cluster hgx-h100");
    INFO(ended.said);
    CHECK(ended.status == 0);
    CHECK_THAT(ended.said, Contains("4 sizes of all_reduce over 16 NVIDIA H100 80GB HBM3 on 2 nodes") &&
                               Contains("for this fabric; the model expects") &&
                               Contains("published on similar fabrics"));
  }
  CHECK_THAT(run(logs + "rack.txt").said, Contains("on 1 node of NVLink (18 hosts)") && Contains("racks of 72 GPUs"));
  CHECK_THAT(run(logs + "split_by_rail.txt").said, Contains("in one of 8 groups at once"));
  const Ended excerpt = run(logs + "excerpt.txt --test all_reduce --gpus 8 --cluster hgx-h100");
  INFO(excerpt.said);
  CHECK(excerpt.status == 0);
  const Ended alone = run(logs + "excerpt.txt --test all_reduce --gpus 8");
  CHECK(alone.status == 2);
  CHECK_THAT(alone.said, Contains("--gpus 8: found no --cluster"));
}

TEST_CASE("import refuses what is neither, and says what it is") {
  const wt::test::TempDirectory folder;
  const std::string in = (folder / "in").string();
  const auto refused = [&](const std::string& bytes, const std::string& why, const std::string& further = "") {
    wt::test::write_bytes(in, bytes);
    const Ended ended = run(in + further);
    INFO(ended.said);
    CHECK(ended.status == 2);
    CHECK_THAT(ended.said, Contains(why));
  };
  refused("", "found none of the three");
  refused("hello\n", "broken JSON");
  refused("{\"traceEvents\": [", "broken JSON");
  refused("[]", "other JSON");
  refused(R"({"devices": [], "benchmarks": []})", "/benchmarks: found no state");
  refused("{\"schema\": \"windtunnel.profile/1\"}", "a file of our own");
  refused("\x1f\x8b\x08", "gunzip");
  refused("{\"traceEvents\": []}", "ProfilerActivity.CUDA");
  refused(kTable, "a host whose ranks share cores", " --cluster local-2core");
  refused(kTable, "neither a file nor a preset", " --cluster no-such-cluster");
  CHECK(run((folder / "missing").string()).status == 2);
}
