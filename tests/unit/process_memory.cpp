// What a process takes of its GPU: its allocator's part, and what out-of-memory messages say of the rest.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <tuple>
#include <vector>

#include "sim/cost/memory/dispatcher_memory.hpp"
#include "sim/fit/memory_fit.hpp"
#include "sim/validate/judge_memory.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;

namespace {

constexpr double kGiB = 1 << 30;

}  // namespace

TEST_CASE("memory outside of the allocator: a stack's own sources and the mean of all, in logarithms") {
  const auto row = [](const char* source, const char* framework, std::int64_t gpus, double outside_GiB) {
    OutsideRow r;
    r.origin = source, r.framework = framework, r.gpus = gpus;
    r.reserved_bytes = 60 * kGiB, r.in_use_bytes = (60 + outside_GiB) * kGiB;
    return r;
  };
  const std::vector<StackSpec> stacks = read_stacks();
  StackSpec another;
  another.name = "another";
  const StackSpec titan = read_stack("torchtitan"), nano = read_stack("nanotron");
  const double groups = OutsideMemory::outside_relative(nano, 8), nodes = OutsideMemory::outside_relative(nano, 64);
  const std::vector<OutsideRow> rows{row("a", "torchtitan", 8, 1), row("b", "torchtitan", 8, 1),
                                     row("c", "nanotron", 64, 8 * nodes), row("d", "torchtitan", 1, 0.5)};
  const OutsideMemory model = outside_memory(rows, stacks);
  CHECK(model.of_stack(another, 8).bytes == Approx(2 * kGiB));             // (1 x 1 x 8)^(1/3)
  CHECK(model.of_stack(titan, 8).bytes == Approx(std::cbrt(2.0) * kGiB));  // (1 x 1 x 2)^(1/3)
  CHECK(model.of_stack(nano, 8).bytes == Approx(2 * groups * kGiB));       // one source says too little
  CHECK(model.of_stack(titan, 1).bytes == Approx(0.5 * kGiB));
  CHECK(model.without("c").of_stack(nano, 8).bytes == Approx(groups * kGiB));
  const MemoryForecast f = model.of_stack(titan, 8);
  CHECK(f.low < f.bytes);
  CHECK(f.bytes < f.high);
  CHECK(f.evidence[static_cast<std::size_t>(Evidence::published)] == 1);
  CHECK(model.of_stack(another, 8).evidence[static_cast<std::size_t>(Evidence::derived)] == 1);
  CHECK(OutsideMemory().of_stack(nano, 8).evidence[static_cast<std::size_t>(Evidence::assumed)] == 1);

  const auto judged = judge_outside(rows, rows, stacks);
  REQUIRE(judged.size() == 4);
  CHECK(*judged[2].forecast.value == Approx(nodes * kGiB));
  CHECK(judged[3].regime == "one GPU alone");
}

TEST_CASE("NCCL's buffers by formula: one communicator of data parallelism, three of Megatron's groups") {
  const StackSpec fsdp, megatron = read_stack("megatron-core");
  const double MiB = 1 << 20, context = 0.6 * kGiB;
  CHECK(outside_by_formula(fsdp, 1) == Approx(context));
  CHECK(outside_by_formula(fsdp, 8) == Approx(context + (24 * (12 + 6) + 256) * MiB));
  CHECK(outside_by_formula(fsdp, 16) - outside_by_formula(fsdp, 8) == Approx(2 * 9.2 * 24 * MiB));
  CHECK(outside_by_formula(megatron, 8) - outside_by_formula(fsdp, 8) ==
        Approx((24 * 12 + 256 + 24 * 8 + 2 * 32 * 12) * MiB));
}

TEST_CASE("DeepEP's buffers for a width of 7168, by ranks that share experts") {
  ModelSpec model;
  model.d_model = 7168, model.experts = 256;
  Layout layout;
  layout.dispatcher = Dispatcher::deepep;
  const double MiB = 1 << 20;
  for (const auto& [ranks, nvlink, network] :
       {std::tuple{std::int64_t{8}, 320, 0},
        {std::int64_t{16}, 360, 512},
        {std::int64_t{64}, 360, 512},
        {std::int64_t{128}, 700, 1024}}) {  // NVSHMEM needs 80, 320 and 641 MiB of its heap
    layout.expert = ranks;
    CHECK(std::abs(dispatcher_bytes(model, layout) / MiB - (nvlink + network + 32)) < 1);
  }
  layout.dispatcher = Dispatcher::alltoall;
  CHECK(dispatcher_bytes(model, layout) == 0);
}

TEST_CASE("a process takes what its allocator reserves and what is outside, with independent errors") {
  const MemoryForecast sum = together({30, 27, 35, only(Evidence::derived)}, {10, 6, 22, only(Evidence::published)});
  CHECK(sum.bytes == 40);
  CHECK(sum.low == Approx(35));   // 3 and 4
  CHECK(sum.high == Approx(53));  // 5 and 12
  CHECK(sum.evidence[static_cast<std::size_t>(Evidence::published)] == Approx(0.25));
}

TEST_CASE("quantiles and probabilities of memory are those of Student's t with two degrees of freedom") {
  const MemoryForecast f{60, 55, 70, {}};
  CHECK(f.quantile(0.1) == Approx(55));
  CHECK(f.quantile(0.5) == Approx(60));
  CHECK(f.quantile(0.9) == Approx(70));
  CHECK(f.quantile(0.95) == Approx(60 + 10 * 2.919986 / 1.885618));  // tables of t
  CHECK(f.quantile(0.01) == Approx(60 - 5 * 6.964557 / 1.885618));
  CHECK(f.exceeds(60) == Approx(0.5));
  CHECK(f.exceeds(70) == Approx(0.1));
  CHECK(f.exceeds(55) == Approx(0.9));
  double before = 1;
  for (double limit = 30; limit < 120; limit += 1) {
    CHECK(f.exceeds(limit) < before);
    before = f.exceeds(limit);
  }
  for (const double p : {0.001, 0.05, 0.3, 0.6, 0.99}) CHECK(f.exceeds(f.quantile(1 - p)) == Approx(p));
  const MemoryForecast exact{60, 60, 60, {}};
  CHECK(exact.quantile(0.95) == 60);
  CHECK(exact.exceeds(60) == 0);
  CHECK(exact.exceeds(59.9) == 1);
}

TEST_CASE("published memory is above its quantiles as often as they say, each run without its own model") {
  const PublishedTables tables = read_published_tables("configs/measurements");
  std::size_t rows = 0, above90 = 0, above95 = 0, above99 = 0;
  for (const Judged& j : judge_memory(tables.memory_runs, tables.memory_runs, read_stacks())) {
    if (j.regime != "peak reserved" || !j.forecast.value) continue;
    const MemoryForecast f{*j.forecast.value, j.forecast.low, j.forecast.high, {}};
    ++rows;
    above90 += j.measured > f.high ? 1 : 0;
    above95 += j.measured > f.quantile(0.95) ? 1 : 0;
    above99 += j.measured > f.quantile(0.99) ? 1 : 0;
  }
  CAPTURE(rows, above90, above95, above99);
  CHECK(rows > 250);
  CHECK(static_cast<double>(above90) < 0.13 * static_cast<double>(rows));
  CHECK(static_cast<double>(above95) < 0.07 * static_cast<double>(rows));
  CHECK(static_cast<double>(above95) > 0.015 * static_cast<double>(rows));  // nor is it far too careful
  CHECK(static_cast<double>(above99) < 0.02 * static_cast<double>(rows));
}

TEST_CASE("out-of-memory messages: what contradicts itself is not used") {
  const test::TempDirectory folder;
  const std::filesystem::path file = folder.path() / "rows.csv";
  std::ofstream(file) << "source,framework,version,gpu,n_gpus,parallelism,capacity_gib,in_use_gib,allocated_gib,"
                         "reserved_unallocated_gib,notes\n"
                         "s,f,,H100,8,,79,70,60,8,\n"
                         "s,f,,H100,8,,79,70,60,11,\n"
                         "s,f,,H100,8,,69,70,60,8,\n"
                         ",f,,H100,8,,79,70,60,8,\n"
                         "s,f,,H100,0,,79,70,60,8,\n"
                         "s,f,,H100,8,,79,,60,8,\n";
  const auto rows = read_outside_rows(file);
  REQUIRE(rows.size() == 6);
  CHECK(rows[0].unusable.empty());
  CHECK(rows[0].outside_bytes() == 2 * kGiB);
  const std::vector<const char*> reasons{
      "", "no more than its allocator", "more than the GPU has", "no source", "n_gpus", "in_use_gib"};
  for (std::size_t i = 1; i < rows.size(); ++i) CHECK_THAT(rows[i].unusable, Catch::Contains(reasons[i]));
}
