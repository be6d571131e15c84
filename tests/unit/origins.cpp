// Who published a measurement: every source has an origin, and nothing of an origin speaks for its own rows.
#include "sim/measurements/origins.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "sim/fit/memory_fit.hpp"
#include "sim/measurements/csv.hpp"
#include "sim/validate/judge_memory.hpp"
#include "sim/validate/judge_runs.hpp"
#include "tests/fixtures/published_reference.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using Catch::Contains;

namespace {

/// Sources that a table names: none where it has no such column.
std::set<std::string> sources_of(const std::filesystem::path& table) {
  std::set<std::string> out;
  const std::vector<std::string> header = read_csv_header(table);
  for (const char* column : {"source", "source_id"})
    if (std::find(header.begin(), header.end(), column) != header.end()) {
      const CsvTable read = read_csv(table, {column}, OtherColumns::ignored);
      REQUIRE(read.broken.empty());
      for (const CsvRow& row : read.rows) out.insert(row.cells[read.at(column)]);
    }
  return out;
}

constexpr const char* kPlanted = "planted";

/// A run of experts over EFA, whose time rests on all kinds of benchmarks, as another origin's.
RunRow planted_run() {
  for (RunRow row : test::published().tables().runs)
    if (row.origin == "aws" && row.unusable.empty() && row.dispatcher == Dispatcher::deepep) {
      row.source = row.origin = kPlanted;
      row.step_s /= 3;
      return row;
    }
  FAIL("no run of experts over EFA");
  return {};
}

/// A sixth of the runs, so that fits are quick.
PublishedTables some_tables() {
  PublishedTables out = test::published().tables();
  std::vector<RunRow> runs;
  for (std::size_t i = 0; i < out.runs.size(); i += 6) runs.push_back(out.runs[i]);
  out.runs = std::move(runs);
  return out;
}

/// Adds copies of rows that take `times` as long.
template <typename Row, typename Change>
void plant(std::vector<Row>& rows, Change change) {
  std::vector<Row> copies = rows;
  for (Row& row : copies) {
    row.source = row.origin = kPlanted;
    change(row);
  }
  rows.insert(rows.end(), copies.begin(), copies.end());
}

double predicted_s(const RunRow& run, const PublishedTimes& published, LeftOutOfSteps left_out) {
  const Judged judged = judge_runs({run}, published, {.left_out = left_out}).front();
  INFO(judged.forecast.reason);
  REQUIRE(judged.forecast.value);
  return *judged.forecast.value;
}

}  // namespace

TEST_CASE("every source of every table of measurements has an origin, and no line of the registry is idle") {
  std::set<std::string> named;
  for (const auto& entry : std::filesystem::directory_iterator("configs/measurements"))
    if (entry.path().extension() == ".csv" && entry.path().filename() != "origins.csv")
      named.merge(sources_of(entry.path()));
  named.insert(kGroupedProfiles.begin(), kGroupedProfiles.end());
  CHECK(named.size() > 100);
  for (const std::string& source : named) {
    INFO(source);
    CHECK(Origins::published().knows(source));
  }
  CHECK(named == sources_of("configs/measurements/origins.csv"));
}

TEST_CASE("one project under several names is one origin") {
  const auto same = [](std::initializer_list<const char*> sources) {
    for (const char* source : sources) {
      INFO(source);
      CHECK(Origins::published().of(source) == Origins::published().of(*sources.begin()));
    }
  };
  same({"aws_megatron_bridge", "aws-samples/awsome-distributed-training micro-benchmarks/nccl-tests/README.md",
        "awslabs/awsome-distributed-ai micro-benchmarks/expert-parallelism/ep-backend-comparison/RESULTS-p5.md"});
  same({"nemo_2407", "megatron_bridge_2602", "dgxc_bench", "NVIDIA/dgxc-benchmarking nccl/README.md"});
  same({"megatron_sc21", "seqpar_tab5", "megatron_moe_recipes"});
  same({"NVIDIA GTC24 S62129 slide 35 (image in stas00/ml-engineering)",
        "NVIDIA GTC25 S72583 / GTC24 S62129 slides (images in stas00/ml-engineering)"});
  CHECK(Origins::published().of("dgxc_bench") != Origins::published().of("megatron_sc21"));
  CHECK(Origins::published().of("a table of one's own") == "a table of one's own");
}

TEST_CASE("no measurement stands in the tables under two origins") {
  for (const RunRow& row : test::published().tables().runs) {
    INFO(row.source << ", line " << row.line);
    CHECK(test::published().stack_fit().same_as(row.origin) == row.origin);
  }
}

TEST_CASE("a registry that says a source twice, or not whose it is, is refused") {
  const test::TempDirectory folder;
  const std::string file = folder / "origins.csv";
  const auto reading = [&](const std::string& lines) {
    std::ofstream(file) << "source,origin,why\n" << lines;
    return test::usage_error([&] { Origins{file}; });
  };
  CHECK_THAT(reading("a,x,so\na,y,so\n"), Contains("line 3") && Contains("source 'a' twice"));
  CHECK_THAT(reading("a,,so\n"), Contains("line 2: found no origin"));
  CHECK_THAT(reading("a,x,\n"), Contains("line 2: found no why"));
  CHECK_THAT(reading("a,x\n"), Contains("line 2") && Contains("too few"));
  std::ofstream(file) << "source,origin,why\na,x,so\n";
  CHECK(Origins(file).of("a") == "x");
}

TEST_CASE("a source whose own benchmarks are perfect gains nothing by them when it is left out") {
  const RunRow run = planted_run();
  PublishedTables tables = some_tables();
  const PublishedTimes bare(tables);
  tables.runs.push_back(run);
  plant(tables.kernels, [](KernelRow& row) { row.seconds /= 3; });
  plant(tables.collectives, [](CollectiveRow& row) { row.seconds /= 3; });
  plant(tables.row_exchanges, [](RowExchangeRow& row) { row.Bps *= 3; });
  const PublishedTimes planted(tables);
  const double unknown_s = predicted_s(run, bare, LeftOutOfSteps::origin);
  CHECK(predicted_s(run, planted, LeftOutOfSteps::origin) == Approx(unknown_s).epsilon(1e-9));
  CHECK(predicted_s(run, planted, LeftOutOfSteps::stack) ==
        Approx(predicted_s(run, bare, LeftOutOfSteps::stack)).epsilon(1e-9));
  // What was planted counts where nothing is left out.
  CHECK(predicted_s(run, planted, LeftOutOfSteps::nothing) < 0.9 * unknown_s);
  for (const bool collectives : {false, true}) {
    PublishedTables one = some_tables();
    if (collectives)
      plant(one.collectives, [](CollectiveRow& row) { row.seconds /= 3; });
    else
      plant(one.row_exchanges, [](RowExchangeRow& row) { row.Bps *= 3; });
    CHECK(predicted_s(run, PublishedTimes(one), LeftOutOfSteps::nothing) !=
          Approx(predicted_s(run, bare, LeftOutOfSteps::nothing)).epsilon(1e-3));
  }
}

TEST_CASE("nor by its own memory") {
  const PublishedTables& tables = test::published().tables();
  const std::vector<StackSpec>& stacks = test::published().stacks();
  PublishedTables planted = tables;
  plant(planted.memory_runs, [](RunRow& row) { row.memory_bytes *= 2; });
  plant(planted.outside, [](OutsideRow& row) { row.in_use_bytes += 8e9; });
  const RunRow& row = *std::find_if(planted.memory_runs.begin(), planted.memory_runs.end(), [](const RunRow& r) {
    return r.origin == kPlanted && r.unusable.empty() && r.memory_of == MemoryOf::peak_reserved;
  });
  const auto bytes = [&](const std::vector<RunRow>& reference) {
    return *judge_memory({row}, reference, stacks, "", LeftOut::origin).front().forecast.value;
  };
  CHECK(bytes(planted.memory_runs) == Approx(bytes(tables.memory_runs)).epsilon(1e-9));
  const StackSpec stack = read_stack("nanotron");
  const LiveMemory live{1e9, 2e9};
  const auto process = [&](const PublishedTables& from, const std::string& without) {
    return stack_memories(from, stacks, without).of(stack, 8).process(live, 0).bytes;
  };
  CHECK(process(planted, kPlanted) == Approx(process(tables, "")).epsilon(1e-9));
  CHECK(process(planted, "") > 1.1 * process(tables, ""));
}
