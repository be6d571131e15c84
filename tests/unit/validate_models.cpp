// What stands behind `windtunnel validate`: constants are recovered from times made of them, nothing beats the
// hardware, and what cannot be known is not predicted.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "configs/spec/error.hpp"
#include "sim/validate/collective_model.hpp"
#include "sim/validate/collectives.hpp"
#include "sim/validate/csv.hpp"
#include "sim/validate/fabric.hpp"
#include "sim/validate/kernels.hpp"
#include "sim/validate/memory_bound.hpp"
#include "sim/validate/wave_model.hpp"
#include "tests/support/temp_directory.hpp"
#include "tests/support/usage_error.hpp"

using namespace wt;

namespace {

const DataSheet& h100() {
  static const DataSheet sheet = *data_sheet("H100-SXM");
  return sheet;
}

const WaveConstants kWave = {4e-6, 0.5e-6, 0.9, 0.6, {0.45, 0.6, 0.7, 0.8}, 2e-6, 3};

CollectiveRow ring(std::int64_t nodes, double bytes, const std::string& fabric = "IB 8x400G") {
  CollectiveRow row;
  row.source = "made up " + std::to_string(nodes);
  row.gpu = "H100-SXM";
  row.fabric = nodes > 1 ? fabric : "NVSwitch";
  row.collective = "all_gather";
  row.nodes = nodes;
  row.gpus = 8 * nodes;
  row.bytes = bytes;
  const double steps = nodes > 1 ? static_cast<double>(nodes - 1) : 1;
  const double transfer = bytes * bus_share("all_gather", row.gpus) / (0.8 * (nodes > 1 ? 400e9 : 450e9));
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
  for (const Judged& j : judge_collectives(rows, {})) {
    INFO(j.name);
    REQUIRE(j.forecast.value);
    CHECK(*j.forecast.value == Approx(j.measured).epsilon(0.05));
    CHECK(j.forecast.low <= *j.forecast.value);
    CHECK(j.forecast.high >= *j.forecast.value);
  }
}

TEST_CASE("what cannot be known of a collective is a reason, not a number") {
  std::vector<CollectiveRow> rows;
  for (double bytes = 1 << 27; bytes <= 4e9; bytes *= 2) rows.push_back(ring(2, bytes)), rows.push_back(ring(4, bytes));
  rows.push_back(ring(8, 1 << 20, "EFA v3 16x200G"));
  rows.push_back(ring(8, 1 << 30, "a fabric without numbers"));
  rows.push_back(ring(8, 1 << 30));
  rows.back().collective = "broadcast";
  rows.push_back(ring(8, 1 << 30));
  rows.back().gpu = "Imaginary X1";
  rows.push_back(ring(8, 1 << 30));
  rows.back().seconds = 0;
  const std::vector<Judged> judged = judge_collectives(rows, {});
  const auto reason = [&](std::size_t from_end) { return judged[judged.size() - from_end].forecast.reason; };
  CHECK(reason(5).find("no other cluster over EFA v3") != std::string::npos);
  CHECK(reason(4).find("does not say how many adapters") != std::string::npos);
  CHECK(reason(3).find("no model of 'broadcast'") != std::string::npos);
  CHECK(reason(2).find("no data sheet of 'Imaginary X1'") != std::string::npos);
  CHECK(reason(1).find("neither time nor bandwidth") != std::string::npos);
}

TEST_CASE("fabrics are read from their description") {
  CollectiveRow row = ring(2, 1e9, "EFA v2 32x100G (p5)");
  CHECK(fabric_of(row)->transport == "EFA v2");
  CHECK(fabric_of(row)->node_Bps == 400e9);
  row.fabric = "GCP A3 Mega TCPXO 8x200G";
  CHECK(fabric_of(row)->family == "TCPX");
  CHECK(fabric_of(row)->node_Bps == 200e9);
  row.fabric = "IB NDR 8x400G CX7";
  CHECK(fabric_of(row)->family == "IB");
  row.fabric = "Ethernet";
  CHECK_FALSE(fabric_of(row));
}

TEST_CASE("a kernel with another data sheet or type is abstained from, one of another GPU is derived") {
  std::vector<KernelRow> rows;
  for (double n : {1024., 2048., 3072., 4096., 6144., 8192.})
    for (double m = 64; m <= 2048; m += 128) {
      KernelRow row{0, "H100-SXM", "gemm", "fp16", "made up", m, n, 4096, wave_time_s({m, n, 4096}, h100(), kWave)};
      rows.push_back(row);
    }
  const std::size_t seen = rows.size();
  rows.push_back({0, "H200-SXM", "gemm", "bf16", "made up", 512, 5120, 4096, 1e-4});
  rows.push_back({0, "Imaginary X1", "gemm", "fp16", "made up", 512, 5120, 4096, 1e-4});
  rows.push_back({0, "A100-SXM", "gemm", "fp8", "made up", 512, 5120, 4096, 1e-4});
  rows.push_back({0, "H100-SXM", "softmax", "fp16", "made up", 512, 5120, 0, 1e-4});
  const std::vector<Judged> judged = judge_kernels(rows, {});
  for (std::size_t i = 0; i < seen; ++i)
    CHECK(*judged[i].forecast.value == Approx(judged[i].measured).epsilon(0.1));
  CHECK(judged[seen].forecast.evidence == only(Evidence::derived));
  CHECK(judged[seen + 1].forecast.reason.find("no data sheet") != std::string::npos);
  CHECK(judged[seen + 2].forecast.reason.find("no tensor-core rate") != std::string::npos);
  CHECK(judged[seen + 3].forecast.reason.find("fewer than 5 measurements of softmax") != std::string::npos);
}

TEST_CASE("tables that are not what they should be are refused with file, line and column") {
  const test::TempDirectory folder;
  const auto file = folder.path() / "t.csv";
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  const auto failure = [&] { return test::usage_error([&] { read_kernel_rows(file); }); };
  const std::string header = "gpu,op,m,n,k,dtype,median_us,std_us,source\n";
  CHECK(failure().find("cannot be read") != std::string::npos);
  write("");
  CHECK(failure().find("found an empty file") != std::string::npos);
  write(header);
  CHECK(failure().find("found no rows") != std::string::npos);
  write("gpu,op,m,n,k,dtype,median_ms,std_us,source\nH100,gemm,1,1,1,fp16,1,0,x\n");
  CHECK(failure().find("'median_ms'; did you mean 'median_us'?") != std::string::npos);
  write("gpu,op,m,n,k,dtype,median_us,source\nH100,gemm,1,1,1,fp16,1,x\n");
  CHECK(failure().find("column 'std_us' missing") != std::string::npos);
  write(header + "H100,gemm,1,1,1,fp16,-3,0,x\n");
  CHECK(failure().find("line 2: column 'median_us': found '-3', needs a number from 0 to 1e+15") != std::string::npos);
  write(header + "H100,gemm,1,1,1,fp16,0,0,x\n");
  CHECK(failure().find("needs a time above 0") != std::string::npos);
  write(header + "H100,gemm,1,1,1,fp16,1,0,x\nH100,gemm,1,1,1\n");
  CHECK(failure().find("line 3: found too few or too many cells") != std::string::npos);
  write(header + "H100,gemm,one,1,1,fp16,1,0,x\n");
  CHECK(failure().find("column 'm': found 'one'") != std::string::npos);
  write(header + "H100,gemm,1,1,,fp16,1,0,x\n");
  CHECK(failure().find("column 'k': found nothing") != std::string::npos);
  write(header + "H100,gemm,1e300,1,1,fp16,1,0,x\n");
  CHECK(failure().find("column 'm': found '1e300'") != std::string::npos);
  write(header + "H100,gemm,1,1,1,fp16,1,0," + std::string(200000, '1') + "\n");
  CHECK(failure().find("line 2: found a cell of 200000 characters") != std::string::npos);
  write(header + "\"H100, SXM\",gemm,1,1,1,fp16,1,0,\"a \"\"quoted\"\" source\"\n");
  CHECK(read_kernel_rows(file).at(0).source == "a \"quoted\" source");
  write(
      "source,kernel,gpu,shape,precision,value,unit,read_or_recalled\n"
      "s,dense GEMM best,H100,M=4224 N=2048 "
      "K=8192,bf16,780.2,TFLOP/s,read\ns,RMSNorm,H100,4096x1024,bf16,1380,GB/s,read\n"
      "s,\"dense GEMM, warm\",H100,search best,bf16,813,TFLOP/s,read\ns,a, b,H100,x,bf16,1,TFLOP/s,read\n");
  const auto rates = read_kernel_rows(file);
  CHECK(rates.at(0).seconds == Approx(2 * 4224. * 2048 * 8192 / 780.2e12));
  CHECK(rates.at(1).unusable == "not the rate of a dense GEMM");
  CHECK(rates.at(2).unusable == "shape does not say m, n and k");
  CHECK(rates.at(3).line == 5);
  CHECK(rates.at(3).unusable.find("too few or too many cells") != std::string::npos);
  write(
      "source,gpu,nodes,gpus,fabric,collective,bytes,time_us,algbw_GBps,busbw_GBps,note\ns,H100,4,2,f,all_reduce,1,1,,,"
      "\n");
  CHECK(test::usage_error([&] { read_collective_rows(file); }).find("found 4 nodes for 2 GPUs") != std::string::npos);
}
