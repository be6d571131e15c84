// Traces of one rank and of several: what the time of a step is made of, and who waits for whom.
#include <fmt/core.h>
#include <sqlite3.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <random>

#include "bench/formats/traced_ranks.hpp"
#include "bench/formats/traced_step.hpp"
#include "bench/formats/unpacked.hpp"
#include "tests/fixtures/gzip_file.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;
using nlohmann::json;

namespace {

json kernel(const std::string& name, double start_us, double us) {
  return {{"ph", "X"}, {"cat", "kernel"}, {"name", name}, {"pid", 0},
          {"tid", 7},  {"ts", start_us},  {"dur", us},    {"args", {{"device", 0}, {"stream", 7}}}};
}

json reduce(double start_us, double us, std::optional<int> number, const std::string& ranks = "[0, 1, 2]",
            const std::string& what = "all_reduce") {
  json out = kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", start_us, us);
  out["args"]["Collective name"] = what, out["args"]["Process Group Name"] = "3";
  out["args"]["Process Group Ranks"] = ranks;
  if (number) out["args"]["Seq"] = *number;
  return out;
}

json mark(int step) {
  return {{"ph", "X"},
          {"cat", "user_annotation"},
          {"name", "ProfilerStep#" + std::to_string(step)},
          {"ts", 5},
          {"dur", 200}};
}

/// Two steps: it computes for `us`, then all reduce; clocks of ranks are far apart.
json rank_trace(int rank, double us, double all_us = 130, std::optional<int> first = 5) {
  const double clock = 1e6 * rank;
  json events{mark(7), mark(8)};
  for (int step = 0; step < 2; ++step) {
    events.push_back(kernel("nvjet_gemm", clock + step * all_us, us));
    events.push_back(reduce(clock + step * all_us + us, all_us - us, first ? std::optional(*first + step) : first));
  }
  return {{"traceEvents", events}, {"distributedInfo", {{"rank", rank}, {"world_size", 3}}}};
}

TracedRanks ranks_of(const std::vector<json>& documents) {
  std::vector<GpuTrace> traces;
  std::vector<std::string> files;
  for (const json& document : documents) {
    files.push_back("trace" + std::to_string(files.size()) + ".json");
    traces.push_back(gpu_trace(document, files.back()));
  }
  return traced_ranks(traces, files);
}

}  // namespace

TEST_CASE("a traced step: what runs at once counts once, and communication is exposed where nothing computes") {
  json gather = kernel("ncclDevKernel_AllGather_RING_LL", 50, 40);
  gather["args"] = {{"Process Group Description", "mesh_shard"}, {"Collective name", "all_gather"}};
  json copy = kernel("Memcpy HtoD (Pinned -> Device)", 85, 15);
  copy["cat"] = "gpu_memcpy";
  const json mark{{"ph", "X"}, {"cat", "user_annotation"}, {"name", "ProfilerStep#7"}, {"ts", 5}, {"dur", 200}};
  const TracedStep step = traced_step(gpu_trace(
      {{"traceEvents", {kernel("nvjet_gemm", 10, 60), gather, copy, kernel("flash_fwd", 130, 10), mark}}}, "t.json"));
  CHECK(step.steps == 1);
  CHECK(step.span_s == Approx(130e-6));
  CHECK(step.compute_s == Approx(70e-6));
  CHECK(step.collectives_s == Approx(40e-6));
  CHECK(step.exposed_s == Approx(20e-6));
  CHECK(step.hidden() == Approx(0.5));
  CHECK(step.copies_s == Approx(10e-6));
  CHECK(step.idle_s == Approx(30e-6));
  CHECK(step.exposed_by_group.at("mesh_shard, all_gather") == Approx(20e-6));
  CHECK(step.class_s[static_cast<std::size_t>(KernelClass::gemm)] == Approx(60e-6));
}

TEST_CASE("the parts of a traced step are its whole, however kernels overlap") {
  std::mt19937 draw(7);
  for (int trial = 0; trial < 50; ++trial) {
    json events = json::array();
    double first = 1e9, last = 0;
    for (int i = 0; i < 40; ++i) {
      const double begin = draw() % 1000, length = 1 + draw() % 60;
      json event = kernel(i % 3 == 0   ? "ncclDevKernel_AllReduce"
                          : i % 3 == 1 ? "nvjet_gemm"
                                       : "Memcpy DtoD",
                          begin, length);
      if (i % 3 == 2) event["cat"] = "gpu_memcpy";
      events.push_back(event);
      first = std::min(first, begin), last = std::max(last, begin + length);
    }
    const TracedStep step = traced_step(gpu_trace({{"traceEvents", events}}, "t.json"));
    CHECK(step.span_s == Approx(1e-6 * (last - first)));
    CHECK(step.compute_s + step.exposed_s + step.copies_s + step.idle_s == Approx(step.span_s));
    CHECK(step.exposed_s <= step.collectives_s + 1e-12);
  }
}

TEST_CASE("a slow rank computes longest, comes last, and the others wait for it") {
  for (const std::optional<int> first : {std::optional(5), std::optional<int>()}) {  // with numbers, and counted
    const TracedRanks r =
        ranks_of({rank_trace(2, 60, 130, first), rank_trace(0, 100, 130, first), rank_trace(1, 70, 130, first)});
    CHECK(r.collectives == 2);
    REQUIRE(r.ranks.size() == 3);
    CHECK((r.ranks[0].rank == 0 && r.ranks[2].rank == 2 && r.slow().rank == 0));
    CHECK(r.ranks[0].compute_s == Approx(200e-6));
    CHECK(r.ranks[0].wait_s == Approx(0).margin(1e-12));
    CHECK(r.ranks[2].exposed_s == Approx(140e-6));
    CHECK(r.ranks[2].wait_s == Approx(80e-6));  // 70 us a collective, and the slow rank's takes 30
    CHECK(r.ranks[1].wait_s == Approx(60e-6));
    CHECK(r.ranks[0].caused == Approx(1));
    CHECK(r.ranks[1].caused == Approx(0).margin(1e-9));
    CHECK(r.behind_s == Approx(200e-6 - 130e-6));
    CHECK(r.others_wait_s == Approx(70e-6));
  }
}

TEST_CASE("waiting behind computation costs nothing; send and receive are no waiting") {
  json hidden = rank_trace(2, 60);
  hidden["traceEvents"].push_back(kernel("flash_fwd", 2e6, 260));
  const TracedRanks r = ranks_of({rank_trace(0, 100), hidden});
  CHECK(r.ranks[1].wait_s == Approx(0).margin(1e-9));
  json sends = rank_trace(0, 100), receives = rank_trace(1, 60);
  sends["traceEvents"].push_back(reduce(300, 1, 90, "[0, 1, 2]", "send"));
  receives["traceEvents"].push_back(reduce(1e6 + 300, 900, 90, "[0, 1, 2]", "send"));
  CHECK(ranks_of({sends, receives}).collectives == 2);
}

TEST_CASE("collectives that cannot be told apart are left out; ranks of a group may be a list") {
  json twice = rank_trace(1, 60);
  twice["traceEvents"].push_back(reduce(1e6 + 500, 90, 5));
  CHECK(ranks_of({rank_trace(0, 100), twice}).collectives == 1);
  json mixed = rank_trace(1, 60);
  mixed["traceEvents"].push_back(reduce(1e6 + 500, 90, std::nullopt));
  CHECK_THAT(usage_error([&] { ranks_of({rank_trace(0, 100), mixed}); }), Contains("no collective that another"));
  std::vector<json> lists{rank_trace(0, 100), rank_trace(1, 60)}, without = lists;
  for (json& document : lists)
    for (json& event : document["traceEvents"])
      if (event["args"].contains("Process Group Ranks")) event["args"]["Process Group Ranks"] = {0, 1, 2};
  CHECK(ranks_of(lists).collectives == 2);
  for (json& document : without)
    for (json& event : document["traceEvents"])
      if (event.contains("args") && event["args"].is_object()) event["args"].erase("Process Group Ranks");
  CHECK_THAT(usage_error([&] { ranks_of(without); }), Contains("no collective that another"));
}

TEST_CASE("a collective is called by what can be printed of its group, and by its own name if that is a word") {
  const auto group = [](const std::string& description, const std::string& name, const std::string& what) {
    json event = kernel("ncclDevKernel_AllGather_RING_LL", 0, 10);
    event["args"]["Process Group Description"] = description, event["args"]["Process Group Name"] = name;
    event["args"]["Collective name"] = what;
    return gpu_trace({{"traceEvents", {event}}}, "t.json").work.at(0).group;
  };
  CHECK(group("mesh\x1b_tp", "3", "all_gather") == "mesh_tp, all_gather");
  CHECK(group("\x1b\n", "3", "all_gather") == "3, all_gather");
  CHECK(group("\n", "", "Some Text") == "AllGather");
  CHECK(group("tp", "3", "Some Text") == "tp");
}

TEST_CASE("traces that are not of the same steps of one job are refused") {
  const auto refused = [](std::vector<json> documents, const std::string& why) {
    CHECK_THAT(usage_error([&] { ranks_of(documents); }), Contains(why));
  };
  refused({rank_trace(0, 60), rank_trace(0, 70)}, "also that of trace0.json");
  json other = rank_trace(1, 60);
  other["distributedInfo"]["world_size"] = 8;
  refused({rank_trace(0, 60), other}, "found a job of 8 ranks, and trace0.json is of 3");
  other = rank_trace(1, 60);
  other.erase("distributedInfo");
  refused({rank_trace(0, 60), other}, "found no rank");
  other = rank_trace(1, 60);
  other["traceEvents"].push_back(mark(9));
  refused({rank_trace(0, 60), other}, "found the steps 7, 8, 9, and trace0.json has 7, 8");
  refused({rank_trace(0, 60), rank_trace(1, 60, 130, 905)}, "needs traces of the same steps");
  other = rank_trace(1, 60, 130, std::nullopt);
  other["traceEvents"].push_back(reduce(1e6 - 9, 5, std::nullopt));  // which one of three is the others' first?
  refused({rank_trace(0, 60, 130, std::nullopt), other}, "with as many of its collectives in each");
  other = rank_trace(1, 60);
  for (json& event : other["traceEvents"])
    if (event["args"].contains("Process Group Ranks")) event["args"]["Process Group Ranks"] = "[1, 3]";
  refused({rank_trace(0, 60), other}, "no collective that another rank's trace has");
}

TEST_CASE("a trace is read plain and packed; events of the host are dropped; damage and size are refused") {
  const TempDirectory folder;
  json document = rank_trace(1, 60);
  document["traceEvents"].push_back({{"ph", "X"}, {"cat", "cpu_op"}, {"name", "aten::mm"}, {"args", {{"deep", {1}}}}});
  document["traceEvents"].push_back({{"ph", "M"}, {"name", "process_name"}});
  write_bytes(folder / "t.json", document.dump());
  write_gzip(folder / "t.json.gz", document.dump());
  for (const char* name : {"t.json", "t.json.gz"}) {
    const GpuTrace trace = read_gpu_trace(folder / name);
    CHECK((trace.work.size() == 4 && trace.marks.size() == 2 && trace.rank == 1 && trace.ranks == 3));
  }
  const std::string packed = read_bytes(folder / "t.json.gz");
  const auto refused = [&](const std::string& bytes, const std::string& why) {
    write_bytes(folder / "bad", bytes);
    CHECK_THAT(usage_error([&] { read_gpu_trace(folder / "bad"); }), Contains(why));
  };
  refused(packed.substr(0, packed.size() / 2), "damaged or cut");
  std::string damaged = packed;
  damaged[packed.size() / 2] ^= 0x55;
  refused(damaged, "damaged or cut");
  refused(document.dump().substr(0, 400), "or cut");
  refused(std::string(300, '['), "levels");
  std::string nested = R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "args": {)", wide = "{";
  for (int i = 0; i < 200; ++i) nested += fmt::format("\"{}\": {{}}, ", i), wide += fmt::format("\"{}\": {{}}, ", i);
  refused(nested + R"("a": 1}}]})", "more than 100 objects");
  refused(wide + R"("traceEvents": []})", "more than 100 objects");
  refused("", "or cut");
  CHECK_THAT(usage_error([&] { read_gpu_trace(folder / "none.json"); }), Contains("cannot be read"));
  write_gzip(folder / "bomb.gz", std::string(5 << 20, ' '));
  CHECK_THAT(usage_error([&] { read_unpacked(folder / "bomb.gz", "a trace", 2 << 20); }), Contains("more than 2 MiB"));
}

namespace {

/// A database with these statements, as Nsight Systems names its tables.
void write_database(const std::filesystem::path& file, const std::string& statements) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(file.c_str(), &db) == SQLITE_OK);
  CHECK(sqlite3_exec(db, statements.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

const std::string kNsight = R"(
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'nvjet_hsh_128x256'), (2, 'ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage)'),
  (3, 'iteration 12'), (4, 'forward'), (5, 'secret');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, shortName INT, demangledName INT);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10000, 70000, 0, 7, 1, 1), (50000, 90000, 0, 20, 2, 2),
  (130000, 140000, 0, 7, 1, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (85000, 100000, 0);
CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT);
INSERT INTO NVTX_EVENTS VALUES (1, 2, 59, NULL, 3), (1, 2, 59, 'ProfilerStep#13', NULL), (1, 2, 59, NULL, 4),
  (1, NULL, 34, 'step 99', NULL);
)";

}  // namespace

TEST_CASE("Nsight Systems' export gives the same step as the profiler's trace") {
  const TempDirectory folder;
  const auto file = folder / "a report, 5 %?.sqlite";
  write_database(file, kNsight);
  const GpuTrace trace = read_gpu_trace(file);
  CHECK(trace.marks == std::set<std::int64_t>{12, 13});
  CHECK_FALSE(trace.rank);
  const TracedStep step = traced_step(trace);
  CHECK(step.steps == 2);
  CHECK(step.span_s == Approx(130e-6));
  CHECK(step.compute_s == Approx(70e-6));
  CHECK(step.exposed_s == Approx(20e-6));
  CHECK(step.copies_s == Approx(10e-6));
  CHECK(step.idle_s == Approx(30e-6));
  CHECK(step.exposed_by_group.at("AllGather") == Approx(20e-6));
  CHECK(step.class_s[static_cast<std::size_t>(KernelClass::gemm)] == Approx(70e-6));
}

TEST_CASE("an export that is none, damaged, or of more than one GPU is refused") {
  const TempDirectory folder;
  int files = 0;
  const auto refused = [&](const std::string& statements, const std::string& why) {
    const auto file = folder / std::to_string(++files);
    write_database(file, statements);
    CHECK_THAT(usage_error([&] { read_gpu_trace(file); }), Contains(why) && !Contains("secret"));
  };
  refused("CREATE TABLE t (a INT);", "no table CUPTI_ACTIVITY_KIND_KERNEL");
  refused(kNsight + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 1, 7, 1, 5);", "a second GPU");
  refused(kNsight + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (3, 2, 0, 7, 1, 5);", "ends before it begins");
  refused(kNsight + "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT);", "CUDA graphs");
  refused("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (a INT); ", "other columns");
  refused(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT AS (start + 1), deviceId INT, demangledName INT);",
      "generated columns");
  refused("CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_KERNEL USING fts5(start, end, deviceId, demangledName);",
          "a virtual table");
  refused(R"(CREATE TABLE t (a INT); CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT * FROM t;)", "no table CUPTI");
  write_database(folder / "whole", kNsight);
  const std::string all = read_bytes(folder / "whole");
  write_bytes(folder / "cut", all.substr(0, all.size() / 2));
  CHECK_THAT(usage_error([&] { read_gpu_trace(folder / "cut"); }), Contains("damaged"));
  write_bytes(folder / "a.nsys-rep", "x");
  CHECK_THAT(usage_error([&] { read_gpu_trace(folder / "a.nsys-rep"); }), Contains("nsys export --type sqlite"));
}
