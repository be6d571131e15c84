// What stands behind `windtunnel validate`: constants are recovered from times made of them, nothing beats the
// hardware, and what cannot be known is not predicted.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/files/cluster.hpp"
#include "sim/cost/collectives/collective_estimator.hpp"
#include "sim/cost/kernels/item_times.hpp"
#include "sim/cost/kernels/memory_bound.hpp"
#include "sim/cost/kernels/wave_model.hpp"
#include "sim/fit/kernel_constants_fit.hpp"
#include "sim/measurements/csv.hpp"
#include "sim/validate/judge_collectives.hpp"
#include "sim/validate/judge_kernels.hpp"
#include "tests/fixtures/made_up_waves.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using test::h100;
using test::kWave;

namespace {

CollectiveRow ring(std::int64_t nodes, double bytes, const std::string& fabric = "IB 8x400G") {
  CollectiveRow row;
  row.source = row.origin = "made up " + std::to_string(nodes);
  row.gpu = "H100-SXM";
  row.interconnect = read_interconnect(nodes > 1 ? fabric : "NVSwitch", 8);
  row.kind = OpKind::all_gather;
  row.nodes = nodes;
  row.gpus = 8 * nodes;
  row.bytes = bytes;
  const double steps = nodes > 1 ? static_cast<double>(nodes - 1) : 1;
  const double transfer =
      bytes * bus_share(OpKind::all_gather, static_cast<double>(row.gpus)) / (0.8 * (nodes > 1 ? 400e9 : 450e9));
  row.seconds = (nodes > 1 ? 17e-6 : 0) + steps * 30e-6 + 2 * std::sqrt(steps * 10e-6 * transfer) + transfer;
  return row;
}

}  // namespace

TEST_CASE("a product of whole waves costs launch, ramp and its FLOPs") {
  WaveConstants c = kWave;
  c.memory_share = 1;
  c.blend = 20;
  // 8 x 33 tiles of 128 x 256 are two waves of 132.
  const Product p{1024, 8448, 8192};
  const double wave = 2.0 * 128 * 256 * 8192 / (0.8 * 989e12 / 132) + 0.5e-6;
  CHECK(wave_time_s(p, h100(), c) == Approx(4e-6 + 2 * wave).epsilon(1e-3));
}

TEST_CASE("one more row of tiles is a step, and no product is faster than FLOPs or bytes allow") {
  WaveConstants c = kWave;
  c.partial_wave = 0;
  c.tile_share = {1e-3, 1e-3, 1e-3, 0.8};  // one tile shape
  CHECK(wave_time_s({520, 8192, 8192}, h100(), c) > 1.5 * wave_time_s({512, 8192, 8192}, h100(), c));
  for (double m : {1., 8., 100., 512., 520., 4096., 1e5})
    for (double n : {64., 1000., 8192.})
      for (double k : {64., 4096., 30000.}) {
        const Product p{m, n, k};
        CHECK(wave_time_s(p, h100(), kWave) > std::max(p.flops() / 989e12, p.bytes() / 3.35e12));
      }
}

TEST_CASE("constants of the wave model predict shapes they were not fitted on") {
  std::vector<TimedProduct> seen;
  for (double n : {1024., 4096., 12288.})
    for (double k : {1024., 8192.})
      for (double m = 64; m <= 4096; m += 192) seen.push_back({{m, n, k}, wave_time_s({m, n, k}, h100(), kWave)});
  const WaveConstants fitted = fit_wave(seen, h100(), typical_wave());
  for (double m : {100., 700., 3000.})
    CHECK(wave_time_s({m, 6144, 5120}, h100(), fitted) ==
          Approx(wave_time_s({m, 6144, 5120}, h100(), kWave)).epsilon(0.03));
  CHECK_THROWS_AS(fit_wave({}, h100(), typical_wave()), Error);
}

TEST_CASE("a memory-bound kernel costs a row's pass when rows are few and its bytes when they are many") {
  const MemoryBoundConstants c = {1e-6, 0.5e-9, 1.1, 0.8};
  CHECK(memory_bound_time_s({1, 16384, 2 * 2 * 16384}, h100(), c) == Approx(1e-6 + 16384 * 0.5e-9).epsilon(1e-3));
  CHECK(memory_bound_time_s({65536, 4096, 1e9}, h100(), c) == Approx(1e-6 + 1e9 / (0.8 * 3.35e12)).epsilon(1e-3));
  std::vector<TimedRowKernel> seen;
  for (double n : {2048., 8192.})
    for (double m = 1; m <= 8192; m *= 2)
      seen.push_back({{m, n, 4 * m * n}, memory_bound_time_s({m, n, 4 * m * n}, h100(), c)});
  const MemoryBoundConstants fitted = fit_memory_bound(seen, h100());
  CHECK(memory_bound_time_s({3000, 5120, 4 * 3000 * 5120.}, h100(), fitted) ==
        Approx(memory_bound_time_s({3000, 5120, 4 * 3000 * 5120.}, h100(), c)).epsilon(0.03));
}

TEST_CASE("collectives of clusters left out are predicted from others of the same fabric") {
  std::vector<CollectiveRow> rows;
  for (std::int64_t nodes : {2, 4, 8, 16})
    for (double bytes = 1 << 20; bytes <= 4e9; bytes *= 4) rows.push_back(ring(nodes, bytes));
  for (const Judged& j : judge_collectives(rows, rows)) {
    INFO(j.name);
    REQUIRE(j.forecast.value);
    CHECK(*j.forecast.value == Approx(j.measured).epsilon(0.05));
    CHECK(j.forecast.low <= *j.forecast.value);
    CHECK(j.forecast.high >= *j.forecast.value);
  }
}

TEST_CASE("what is judged is what plans: with nothing left out, a row's prediction is its cluster's estimate") {
  const std::vector<CollectiveRow> reference = read_collective_rows("configs/measurements/collectives.csv");
  const CollectiveMachine machine = machine_of(read_cluster("hgx-h100"));
  for (const OpKind kind : {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_to_all})
    for (const std::int64_t nodes : {1, 2, 64}) {
      CollectiveRow row = ring(nodes, 1 << 28);
      row.kind = kind;
      const Judged judged = judge_collectives({row}, reference).front();
      const CollectiveEstimate estimate =
          CollectiveEstimator::published().estimate({kind, row.bytes, RankGroup::even(row.gpus, nodes), machine});
      const double planned =
          estimate.latency_s +
          wire_s({kind, row.bytes, {row.gpus, nodes}, machine}, estimate.algorithm) / estimate.efficiency;
      INFO(to_string(kind) << " over " << nodes);
      REQUIRE(judged.forecast.value);
      CHECK(*judged.forecast.value == Approx(planned).epsilon(1e-9));
      CHECK(judged.forecast.high / planned - 1 == Approx(estimate.relative_spread).epsilon(1e-9));
    }
}

TEST_CASE("so is a product's") {
  const std::vector<KernelRow> rows = read_kernel_rows("configs/measurements/kernel_times.csv");
  const PublishedKernelFit fit(usable_points(rows));
  const ItemTimes items(std::make_shared<KernelTimes>(fit.constants()));
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{4096, 5000, 3000}, {256, 11000, 4096}}) {
    const KernelRow row =
        test::timed_kernel("H100-SXM", "gemm", "bf16", as_double(m), as_double(n), as_double(k), 1e-4);
    const Judged judged = judge_kernels({row}, fit, usable_points(rows)).front();
    const WorkItem item = make_item(Kernel::gemm, Pass::forward, Precision::bf16, {as_double(m), 0}, {n, k});
    REQUIRE(judged.forecast.value);
    CHECK(*judged.forecast.value == Approx(items.item(item, 0, {}, h100()).products.wide_s).epsilon(1e-9));
  }
}

TEST_CASE("rows that are asked about speak for one another only where they are among the reference") {
  std::vector<CollectiveRow> rows;
  for (std::int64_t nodes : {2, 4, 8})
    for (double bytes = 1 << 27; bytes <= 4e9; bytes *= 2) rows.push_back(ring(nodes, bytes));
  const std::vector<CollectiveRow> others(rows.begin(), rows.begin() + 2);
  CHECK(judge_collectives(rows, others).back().forecast.reason.find("fewer than 3 measurements") != std::string::npos);
  CHECK(judge_collectives(rows, rows).back().forecast.value);
}

TEST_CASE("what cannot be known of a collective is a reason, not a number") {
  std::vector<CollectiveRow> rows;
  for (double bytes = 1 << 27; bytes <= 4e9; bytes *= 2) rows.push_back(ring(2, bytes)), rows.push_back(ring(4, bytes));
  rows.push_back(ring(8, 1 << 20, "EFA v3 16x200G"));
  rows.push_back(ring(8, 1 << 30, "a fabric without numbers"));
  rows.push_back(ring(8, 1 << 30));
  rows.back().kind.reset(), rows.back().collective = "scatter";
  rows.push_back(ring(8, 1 << 30));
  rows.back().gpu = "Imaginary X1";
  rows.push_back(ring(8, 1 << 30));
  rows.back().seconds = 0;
  const std::vector<Judged> judged = judge_collectives(rows, rows);
  const auto reason = [&](std::size_t from_end) { return judged[judged.size() - from_end].forecast.reason; };
  CHECK(reason(5).find("no other cluster over EFA v3") != std::string::npos);
  CHECK(reason(4).find("does not say how many adapters") != std::string::npos);
  CHECK(reason(3).find("no model of 'scatter'") != std::string::npos);
  CHECK(reason(2).find("no data sheet of 'Imaginary X1'") != std::string::npos);
  CHECK(reason(1).find("neither time nor bandwidth") != std::string::npos);
}

TEST_CASE("where nodes hold unlike numbers of ranks, the one with fewest decides") {
  CHECK(fewest_on_node(2, 12, 8) == 6);  // an even spread, or full nodes and a rest
  CHECK(fewest_on_node(3, 20, 8) == 4);
  CHECK(fewest_on_node(3, 8, 8) == 2);
  CHECK(fewest_on_node(4, 32, 8) == 8);
  const CollectiveMachine machine = machine_of("H100-SXM", read_interconnect("IB 8x400G", 8));
  const auto transfer_s = [&](OpKind kind, double bytes, std::int64_t fewest) {
    return link_load({kind, bytes, {12, 2, fewest}, machine}).transfer_s;
  };
  for (const OpKind kind : {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_to_all,
                            OpKind::broadcast, OpKind::send})
    for (double bytes : {1e6, 1e8, 1e10}) {
      INFO(to_string(kind));
      const double uneven_s = transfer_s(kind, bytes, 4);
      CHECK(uneven_s >= transfer_s(kind, bytes, 0));
      // What each node has to send and receive, through the adapters of the GPUs that take part, never takes longer.
      for (const double ranks : {4., 8.}) {
        const double adapters_Bps = 400e9 * ranks / 8, others = 12 - ranks;
        const double crossing = kind == OpKind::all_to_all ? bytes * ranks * others / 12
                                : kind == OpKind::all_gather || kind == OpKind::reduce_scatter ? bytes * others / 12
                                : kind == OpKind::send ? bytes * ranks  // through its last rank's own
                                                       : bytes;
        CHECK(uneven_s >= 0.999 * crossing / adapters_Bps);
      }
    }
  // A group of 12 on full nodes of 8 is that, not one of 16.
  CHECK(transfer_s(OpKind::all_gather, 1e9, 4) == Approx(1e9 * 11 / 12 / 200e9));
}

TEST_CASE("a send is timed by the link that it crosses, from what gathers say") {
  std::vector<CollectiveRow> rows;
  for (std::int64_t nodes : {1, 2, 4})
    for (double bytes = 1 << 26; bytes <= 4e9; bytes *= 2) rows.push_back(ring(nodes, bytes));
  for (std::int64_t nodes : {1, 2}) {
    CollectiveRow send = ring(nodes, 1 << 28);
    send.kind = OpKind::send, send.source = send.origin = "another";
    send.seconds = 1;
    rows.push_back(send);
  }
  const auto judged = judge_collectives(rows, rows);
  const double bytes = 1 << 28;
  for (std::size_t from_end : {1, 2}) {
    const Judged& j = judged[judged.size() - from_end];
    const bool many = from_end == 1;
    INFO(j.forecast.reason);
    REQUIRE(j.forecast.value);
    CHECK(j.regime == (many ? "sendrecv, many nodes, >= 64 MiB" : "sendrecv, one node, >= 64 MiB"));
    CHECK(*j.forecast.value > bytes / (many ? 50e9 : 450e9));  // one GPU's adapter; NVLink
    CHECK(*j.forecast.value < 2 * bytes / (many ? 50e9 : 450e9));
    CHECK(j.forecast.evidence == only(Evidence::derived));
  }
  CHECK(bus_share(OpKind::send, 8) == 1);
}

TEST_CASE("a kernel with another data sheet or type is abstained from, one of another GPU is derived") {
  std::vector<KernelRow> rows;
  for (double n : {1024., 2048., 3072., 4096., 6144., 8192.})
    for (double m = 64; m <= 2048; m += 128) {
      rows.push_back(
          test::timed_kernel("H100-SXM", "gemm", "fp16", m, n, 4096, wave_time_s({m, n, 4096}, h100(), kWave)));
    }
  const std::size_t seen = rows.size();
  rows.push_back(test::timed_kernel("H200-SXM", "gemm", "bf16", 512, 5120, 4096, 1e-4));
  rows.push_back(test::timed_kernel("Imaginary X1", "gemm", "fp16", 512, 5120, 4096, 1e-4));
  rows.push_back(test::timed_kernel("A100-SXM", "gemm", "fp8", 512, 5120, 4096, 1e-4));
  rows.push_back(test::timed_kernel("H100-SXM", "softmax", "fp16", 512, 5120, 0, 1e-4));
  const std::vector<Judged> judged = judge_kernels(rows, PublishedKernelFit(usable_points(rows)), usable_points(rows));
  for (std::size_t i = 0; i < seen; ++i) CHECK(*judged[i].forecast.value == Approx(judged[i].measured).epsilon(0.1));
  CHECK(judged[seen].forecast.evidence == only(Evidence::derived));
  CHECK(judged[seen + 1].forecast.reason.find("no data sheet") != std::string::npos);
  CHECK(judged[seen + 2].forecast.reason.find("no rate of A100") != std::string::npos);
  CHECK(judged[seen + 3].forecast.reason.find("too few measurements of kernels that pass") != std::string::npos);
}

TEST_CASE("a GPU's part is told by its name, and a card is not a module") {
  const std::vector<std::pair<const char*, const char*>> names = {{"H100 80GB HBM3", "H100-SXM"},
                                                                  {"NVIDIA H100 PCIe", "H100-PCIe"},
                                                                  {"H100-NVL", "H100-NVL"},
                                                                  {"H100 SXM ~94-95GB HBM2e lower TDP", "H100-SXM-96G"},
                                                                  {"H100-SXM-96 GB", "H100-SXM-96G"},
                                                                  {"H100 PCIe 80GB HBM2e", "H100-PCIe"},
                                                                  {"GH200 96GB", "GH200"},
                                                                  {"H100-SXM (NVLink)", "H100-SXM"},
                                                                  {"GH200 480GB", "GH200"},
                                                                  {"H200", "H200-SXM"},
                                                                  {"NVIDIA H20", "H20"},
                                                                  {"A100-PCIE-40GB", "A100-40G-PCIe"},
                                                                  {"A100 80GB PCIe", "A100-80G-PCIe"},
                                                                  {"A100-SXM4-40 GB", "A100-40G-SXM"},
                                                                  {"A100-80G (Selene)", "A100-80G-SXM"},
                                                                  {"A800", "A800-SXM"},
                                                                  {"GB300", "GB300"},
                                                                  {"HGX B300", "B300"},
                                                                  {"GB200 NVL72", "GB200"},
                                                                  {"NVIDIA GB300", "GB300"},
                                                                  {"NVIDIA B300 SXM6 AC", "B300"},
                                                                  {"B200-SXM-180GB", "B200"},
                                                                  {"B200 750 W", "B200-750W"},
                                                                  {"B200-SXM-180GB-750W", "B200-750W"},
                                                                  {"B200 700W", "B200-700W"},
                                                                  {"H800 SXM5", "H800-SXM"},
                                                                  {"A800-80GB", "A800-SXM"},
                                                                  {"GH200-144GB", "GH200-144G"},
                                                                  {"GH200-96GB", "GH200"},
                                                                  {"AMD Instinct MI300X", "MI300X"},
                                                                  {"MI325X", "MI325X"},
                                                                  {"MI355X-288GB", "MI355X"},
                                                                  {"NVIDIA L40S", "L40S"},
                                                                  {"NVIDIA A10G", "A10G"},
                                                                  {"A10", "A10"},
                                                                  {"GeForce RTX 4090", "RTX 4090"},
                                                                  {"RTX 6000 Ada", "RTX 6000 Ada"},
                                                                  {"RTX A6000", "RTX A6000"},
                                                                  {"DGX A100 640GB", "A100-80G-SXM"},
                                                                  {"DGX A100 640 GB", "A100-80G-SXM"},
                                                                  {"DGX A100 320GB", "A100-40G-SXM"},
                                                                  {"A100 40 GB PCIe", "A100-40G-PCIe"},
                                                                  {"H200 NVL", "H200-NVL"},
                                                                  {"TITAN RTX", "TITAN RTX"}};
  for (const auto& [said, part] : names) {
    INFO(said);
    REQUIRE(data_sheet(said));
    CHECK(data_sheet(said)->name == part);
  }
  for (const char* other : {"MI250X", "TPU v5p", "A1000", "RTX A4000", "H2000", "", "2 RTX-3090+2 Titan-RTX"})
    CHECK_FALSE(data_sheet(other));
  CHECK(relative_rate(*data_sheet("L40S"), "fp8") == 2.);
  CHECK_FALSE(relative_rate(*data_sheet("A100"), "fp8"));
  CHECK(data_sheet("A100")->nvlink());
  CHECK_FALSE(data_sheet("A100 PCIe")->nvlink());
  CHECK_FALSE(data_sheet("H200 NVL")->nvlink());  // bridges of four cards at most: no switch that reduces
  CHECK(relative_rate(*data_sheet("MI300X"), "fp8") == 2.);
  CHECK(relative_rate(*data_sheet("GB200"), "nvfp4") == 4.);
  CHECK(relative_rate(*data_sheet("GB300"), "nvfp4") == 6.);
  CHECK(relative_rate(*data_sheet("B200"), "mxfp8") == 2.);
  CHECK(relative_rate(*data_sheet("RTX 3090 Ti"), "fp32") == 0.5);
  CHECK(relative_rate(*data_sheet("H100"), "fp8_blockwise") == 2.);
  for (const char* format : {"mxfp8", "nvfp4"}) CHECK_FALSE(relative_rate(*data_sheet("H100"), format));
  for (const char* format : {"fp8_blockwise", "nvfp4"}) CHECK_FALSE(relative_rate(*data_sheet("MI355X"), format));
  CHECK(relative_rate(*data_sheet("MI300X"), "tf32") == 0.5);
  CHECK_FALSE(relative_rate(*data_sheet("MI355X"), "tf32"));
}

TEST_CASE("GPUs without a switch reach of their links those to the group's others") {
  const auto transfer_s = [](const std::string& gpu, std::int64_t domain, OpKind kind, std::int64_t ranks) {
    const CollectiveMachine machine = machine_of(gpu, read_interconnect("", domain));
    return link_load({kind, 1e9, {ranks, 1}, machine}).transfer_s;
  };
  CHECK(transfer_s("MI300X", 8, OpKind::all_gather, 8) == Approx(7.0 / 8 * 1e9 / 448e9));
  CHECK(transfer_s("MI300X", 8, OpKind::all_gather, 2) == Approx(1.0 / 2 * 1e9 / 64e9));
  CHECK(transfer_s("MI300X", 8, OpKind::all_to_all, 8) == Approx(7.0 / 8 * 1e9 / 448e9));
  CHECK(transfer_s("MI300X", 8, OpKind::send, 2) == Approx(1e9 / 64e9));
  CHECK(transfer_s("GH200", 4, OpKind::all_gather, 4) == Approx(3.0 / 4 * 1e9 / 450e9));
  CHECK(transfer_s("GH200", 4, OpKind::all_gather, 2) == Approx(1.0 / 2 * 1e9 / 150e9));
  CHECK(transfer_s("GH200", 32, OpKind::all_gather, 2) == Approx(1.0 / 2 * 1e9 / 450e9));  // NVL32 has a switch
  CHECK(transfer_s("H100", 8, OpKind::all_gather, 2) == Approx(1.0 / 2 * 1e9 / 450e9));
}

TEST_CASE("inside a rack everything goes over NVLink, and between racks trees come to use few adapters") {
  const CollectiveMachine rack = machine_of(read_cluster("gb200-nvl72"));
  const auto load = [&](OpKind kind, std::int64_t ranks, std::int64_t stride) {
    return link_load({kind, 1e9, RankGroup::strided(ranks, stride, rack.nvlink_domain), rack});
  };
  for (const OpKind kind : {OpKind::all_to_all, OpKind::all_gather, OpKind::all_reduce})
    for (const std::int64_t ranks : {8, 64, 72}) {
      INFO(to_string(kind) << " among " << ranks);
      CHECK(load(kind, ranks, 1).link.starts_with("NVLink5"));
      CHECK(load(kind, ranks, 1).transfer_s <= 1e9 / 900e9 * 1.0001);
    }
  CHECK(load(OpKind::all_reduce, 8, 1).steps == 1);
  CHECK(load(OpKind::all_reduce, 72, 1).steps == 9);
  CHECK(load(OpKind::all_reduce, 1440, 1).steps == Approx(9 * std::log2(20.0)));
  CHECK(load(OpKind::all_reduce, 20, 72).steps == Approx(std::log2(20.0)));  // one GPU of each rack
  CHECK(load(OpKind::all_to_all, 72, 1).steps == 1);
  CHECK(load(OpKind::all_to_all, 144, 1).link == "IB");
  CHECK(load(OpKind::all_to_all, 144, 1).transfer_s == Approx(0.5 * 1e9 / 50e9));
  CHECK(load(OpKind::all_reduce, 1440, 1).transfer_s == Approx(2.0 * 1439 / 1440 * 1e9 / (9 * 50e9)));
  CHECK(load(OpKind::all_gather, 1440, 1).transfer_s == Approx(1439.0 / 1440 * 1e9 / 900e9));
}

TEST_CASE("cards without NVLink are a kind of link of their own") {
  const auto link = [](const std::string& gpu, OpKind kind, std::int64_t ranks) {
    const CollectiveMachine machine = machine_of(gpu, read_interconnect("", 8));
    return link_load({kind, 1e9, {ranks, 1}, machine}).link;
  };
  CHECK(link("H100-SXM", OpKind::all_gather, 4) == "NVLink4 ring");
  CHECK(link("H100-SXM", OpKind::all_reduce, 8) == "NVLink4 SHARP");
  CHECK(link("H100 PCIe", OpKind::all_reduce, 8) == "PCIe");
  CHECK(link("H200 NVL", OpKind::all_reduce, 8) == "PCIe");
}

TEST_CASE("tables of another kind are refused, one line that is not as it should be says so") {
  const test::TempDirectory folder;
  const auto file = folder.path() / "t.csv";
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  const auto failure = [&] { return test::usage_error([&] { read_kernel_rows(file); }); };
  CHECK(failure().find("cannot be read") != std::string::npos);
  write("");
  CHECK(failure().find("found an empty file") != std::string::npos);
  const std::string header = "gpu,op,m,n,k,dtype,median_us,std_us,source\n", good = "H100,gemm,1,1,1,fp16,1,0,x\n";
  write(header);
  CHECK(failure().find("found no rows") != std::string::npos);
  write("gpu,op,m,n,k,dtype,median_ms,std_us,source\n" + good);
  CHECK(failure().find("column 'median_us' missing; did you mean 'median_ms'?") != std::string::npos);
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"H100,gemm,1,1,1,fp16,-3,0,x", "line 3: column 'median_us': found '-3', needs a number from 0 to 1e+15"},
      {"H100,gemm,1,1,1,fp16,0,0,x", "needs a time above 0"},
      {"H100,gemm,1,1,1,fp16,,0,x", "column 'median_us': found nothing"},
      {"H100,gemm,1,1,1", "too few or too many cells"},
      {"H100,gemm,one,1,1,fp16,1,0,x", "column 'm': found 'one'"},
      {"H100,gemm,1,1,,fp16,1,0,x", "column 'k': found nothing"},
      {"H100,,1,1,1,fp16,1,0,x", "column 'op': found nothing"},
      {"H100,gemm,1e300,1,1,fp16,1,0,x", "column 'm': found '1e300'"},
      {"H100,gemm,1e15,1e15,1e15,fp16,1,0,x", "column 'm': found '1e15', needs a whole number from 1 to 1e+07"},
      {"H100,gemm,1,1.5,1,fp16,1,0,x", "column 'n': found '1.5', needs a whole number"},
      {"H100,gemm,1,1,1,fp16,1,0," + std::string(200000, '1'), "one of more than 2000 characters"}};
  for (const auto& [line, reason] : wrong) {
    write(header + good + line + "\n" + good);
    const auto rows = read_kernel_rows(file);
    REQUIRE(rows.size() == 3);
    INFO(rows[1].unusable);
    CHECK(rows[1].unusable.find(reason) != std::string::npos);
    CHECK((rows[0].unusable.empty() && rows[2].unusable.empty() && rows[1].line == 3));
    const auto judged = judge_kernels(rows, PublishedKernelFit(usable_points(rows)), usable_points(rows));
    CHECK(judged[1].forecast.reason == rows[1].unusable);
  }
  write("note,median_us,m,n,op,gpu,dtype\nwarm,1,2,3,rmsnorm,\"H100, SXM\",fp16\n");  // other order, others, without k
  CHECK((read_kernel_rows(file).at(0).n == 3 && read_kernel_rows(file).at(0).gpu == "H100, SXM"));
  write(
      "source,kernel,gpu,shape,precision,value,unit,read_or_recalled\n"
      "s,dense GEMM best,H100,M=4224 N=2048 "
      "K=8192,bf16,780.2,TFLOP/s,read\ns,RMSNorm,H100,4096x1024,bf16,1380,GB/s,read\n"
      "s,\"dense GEMM, warm\",H100,search best,bf16,813,TFLOP/s,read\ns,a, b,H100,x,bf16,1,TFLOP/s,read\n"
      "s,dense GEMM,H100,900000000x1x1,bf16,813,TFLOP/s,read\n");
  const auto rates = read_kernel_rows(file);
  CHECK(rates.at(0).seconds == Approx(2 * 4224. * 2048 * 8192 / 780.2e12));
  CHECK((rates.at(1).unusable.empty() && rates.at(1).op == "rmsnorm" && rates.at(1).seconds > 0));
  CHECK(rates.at(2).unusable == "shape does not say m, n and k of at most 1e7");
  CHECK(rates.at(4).unusable == "shape does not say m, n and k of at most 1e7");
  CHECK(rates.at(3).line == 5);
  CHECK(rates.at(3).unusable.find("too few or too many cells") != std::string::npos);
}

TEST_CASE("collectives: lines, columns and names as tables have them") {
  const test::TempDirectory folder;
  const auto file = folder.path() / "t.csv";
  std::ofstream(file) << "gpus,nodes,collective,gpu,busbw_GBps,by\n2,4,all_reduce,H100,1,me\n"
                         "8,1,AllReduce,H100,400,me\n8,1,all_gather_perf,H100,,me\n8,,All-to-All,H100,300,me\n8,1,x\n"
                         "16,1.7,all_reduce,H100,300,me\n15.5,1,all_reduce,H100,300,me\n";
  const auto rows = read_collective_rows(file);
  REQUIRE(rows.size() == 7);
  CHECK(rows[0].unusable.find("found 4 nodes for 2 GPUs") != std::string::npos);
  CHECK((rows[1].unusable.empty() && rows[1].kind == OpKind::all_reduce && rows[1].seconds > 0));
  CHECK((rows[2].unusable.empty() && rows[2].kind == OpKind::all_gather && rows[2].seconds == 0));
  CHECK(rows[3].unusable.find("column 'nodes': found nothing") != std::string::npos);
  CHECK(rows[4].unusable == kBrokenLine);
  CHECK(rows[5].unusable.find("column 'nodes': found '1.7', needs a whole number") != std::string::npos);
  CHECK(rows[6].unusable.find("column 'gpus': found '15.5', needs a whole number") != std::string::npos);
  const auto judged = judge_collectives(rows, rows);
  REQUIRE(judged.size() == 7);
  for (const Judged& j : judged) CHECK_FALSE(j.forecast.reason.empty());  // a single usable one: nothing to fit on
}
