// Kernels by published rates: what is read from words, what shapes cost, and what a library is known by.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "configs/base/error.hpp"
#include "sim/cost/kernels/attention_times.hpp"
#include "sim/cost/kernels/libraries.hpp"
#include "sim/measurements/kernel_rates.hpp"
#include "sim/measurements/row_ops.hpp"
#include "sim/validate/judge_kernels.hpp"
#include "tests/fixtures/made_up_waves.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using test::h100;

namespace {

KernelRow read(const std::string& kernel, const std::string& shape, double value = 500,
               const std::string& unit = "TFLOP/s", const std::string& precision = "bf16") {
  KernelRow row;
  row.gpu = "H100-SXM";
  read_rate({"made up", kernel, shape, precision, unit, value}, row);
  return row;
}

KernelRow attention(double heads, double seq, double width, bool causal, const std::string& pass = "forward") {
  KernelRow row;
  row.gpu = "H100-SXM", row.op = "attention_" + pass, row.dtype = "bf16";
  row.groups = heads, row.m = row.k = seq, row.n = width, row.causal = causal;
  return row;
}

}  // namespace

TEST_CASE("in a table of times only what is known to be bound by memory, or has no k, is taken for that") {
  const test::TempDirectory folder;
  const auto file = folder.path() / "t.csv";
  std::string text = "gpu,op,m,n,k,dtype,median_us\n";
  const std::vector<std::string> ops = {"attention", "grouped_gemm", "adamw", "rmsnorm", "SiLU_and_mul", "layer_norm"};
  for (const std::string& op : ops)
    for (const int n : {1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192})
      text += "H100," + op + ",512," + std::to_string(n) + ",128,fp16," + std::to_string(n / 100.) + "\n";
  std::ofstream(file) << text << "H100,adamw,512,2048,0,fp16,30\nH100,flash_attn,512,2048,0,fp16,30\n";
  const auto judged = judge_kernels(read_kernel_rows(file), PublishedKernelFit(usable_points(read_kernel_rows(file))),
                                    usable_points(read_kernel_rows(file)));
  REQUIRE(judged.size() == 50);
  for (std::size_t i = 0; i < 24; ++i) {
    INFO(judged[i].name);
    CHECK_FALSE(judged[i].forecast.value);
    CHECK(judged[i].forecast.reason.find("no model of '" + ops[i / 8] + "'") != std::string::npos);
  }
  for (std::size_t i = 24; i < 48; ++i) CHECK(judged[i].forecast.value);
  CHECK(judged[48].forecast.value);  // of an op with too few rows of its own, by those of all
  CHECK(judged[48].regime == "bound by memory, op never measured");
  CHECK(judged[49].forecast.reason.find("no model of 'flash_attn'") != std::string::npos);
}

TEST_CASE("kernels bound by memory are known by their names, however spelled, and by what they move") {
  const std::vector<std::tuple<const char*, const char*, double>> names = {{"RMSNorm forward", "rmsnorm", 2},
                                                                           {"rms_norm", "rmsnorm", 2},
                                                                           {"fused_add_rms_norm", "add_rmsnorm", 4},
                                                                           {"LayerNorm", "layernorm", 2},
                                                                           {"silu_and_mul", "swiglu", 3},
                                                                           {"SwiGLU act", "swiglu", 3},
                                                                           {"silu", "silu", 2},
                                                                           {"add", "residual_add", 3},
                                                                           {"softmax", "softmax", 2},
                                                                           {"RMSNorm backward", "rmsnorm_backward", 3},
                                                                           {"swiglu bwd", "swiglu_backward", 5}};
  for (const auto& [said, name, streams] : names) {
    INFO(said);
    REQUIRE(row_op(said));
    CHECK(row_op(said)->name == name);
    CHECK(row_op(said)->streams == streams);
  }
  for (const char* other : {"attention softmax", "linear gelu", "moe silu", "adamw", "addmm", "cross-entropy", ""})
    CHECK_FALSE(row_op(other));
}

TEST_CASE("a product's shape is read in several spellings") {
  for (const char* shape : {"M=512 N=4096 K=7168", "m=512, n=4096, k=7168", "512x4096x7168", "(512, 4096, 7168)",
                            "512 x 4096 x 7168", "M512 N4096 K7168", "m: 512 n: 4096 k: 7k"}) {
    INFO(shape);
    const KernelRow row = read("torch.matmul", shape);
    CHECK(row.unusable.empty());
    CHECK((row.op == "gemm" && row.m == 512 && row.n == 4096 && row.k == 7168));
    CHECK(row.seconds == Approx(2. * 512 * 4096 * 7168 / 500e12));
  }
  CHECK(read("dense GEMM attn_out Llama-2-7B", "M=64 N=4096 K=512").op == "gemm");
  // The same measurement as a rate of bytes: operands of one byte, a result of two.
  const KernelRow bytes = read("dense GEMM achieved memory traffic", "M=64 N=2112 K=7168", 1688, "GB/s", "fp8");
  const KernelRow flops = read("dense GEMM", "M=64 N=2112 K=7168", 206, "TFLOP/s", "fp8");
  CHECK(bytes.seconds == Approx(flops.seconds).epsilon(0.005));
}

TEST_CASE("what a rate does not say is a reason") {
  const auto why = [](const KernelRow& row) { return row.unusable; };
  CHECK(why(read("dense GEMM", "sizes of a script")).find("shape does not say m, n and k") == 0);
  CHECK(why(read("dense GEMM", "900000000x1x1")).find("shape does not say m, n and k") == 0);
  CHECK(why(read("grouped GEMM", "groups=4 N=4096 K=7168")).find("shape does not say groups") == 0);
  CHECK(why(read("attention forward FA3", "best of paper")).find("shape does not say batch, heads") == 0);
  CHECK(why(read("attention forward FA3", "B=8 H=16 S=8192 D=128", 3, "ms")).find("causal") != std::string::npos);
  CHECK(why(read("attention fwd+bwd", "B=8 H=16 S=8192 D=128 causal=1")).find("together") != std::string::npos);
  CHECK(why(read("attention", "B=8 H=16 S=8192 D=128 causal=1", 3, "GB/s")).find("bound by FLOPs") !=
        std::string::npos);
  CHECK(why(read("fused router top-k", "8192 tokens E=2304 K=36", 900, "GB/s")).find("no model of") == 0);
  CHECK(why(read("torch grouped fwd", "E=32 D=6144x2048", 1.5, "s (relative only)")).find("is no time") !=
        std::string::npos);
  CHECK(why(read("dMoE fwd", "tokens=4096 d=2048", 3.4, "ms (std 3.3)")).find("is no time") != std::string::npos);
  CHECK(why(read("RMSNorm", "large")).find("shape does not say rows") == 0);
  CHECK_THROWS_AS(read("dense GEMM", "64x64x64", 0), Error);
  // A rate of attention hardly depends on the mask, as its FLOPs are counted accordingly: assumed, not refused.
  CHECK(
      (why(read("attention", "b=4 s=8192 h=16 d=128")).empty() && read("attention", "b=4 s=8192 h=16 d=128").assumed));
}

TEST_CASE("groups, experts and heads are read from published shapes") {
  const KernelRow masked = read("grouped GEMM masked layout", "groups=4 M/group=256 N=4096 K=7168");
  CHECK((masked.groups == 4 && masked.m == 256 && masked.n == 4096 && masked.k == 7168 && !masked.assumed));
  const KernelRow loop = read("cuBLAS loop per expert", "E=128 K=2048 N=1536 tokens=65536 routing=uniform");
  CHECK((loop.op == "grouped_gemm" && loop.groups == 128 && loop.m == 512 && loop.assumed));
  CHECK((loop.implementation == "te" &&
         read("torch._grouped_mm (CUTLASS sm90)", "E=1 M=1 N=1 K=1").implementation == "torch"));
  const KernelRow layer = read("whole MoE layer backward (SonicMoE)", "T=32768 d=4096 n=512 E=128 K=8");
  CHECK((layer.op == "moe_backward" && layer.implementation == "SonicMoE"));
  CHECK((layer.groups == 128 && layer.m == 2048 && layer.n == 512 && layer.k == 4096));
  CHECK(layer.seconds == Approx(12. * 32768 * 8 * 4096 * 512 / 500e12));
  const KernelRow flash = read("attention backward FA3", "B=2 H=16 S=8k D=128 causal=True");
  CHECK((flash.op == "attention_backward" && flash.implementation == "FlashAttention-3" && flash.causal));
  CHECK((flash.groups == 32 && flash.m == 8192 && flash.k == 8192 && flash.n == 128));
  CHECK_FALSE(read("attention, non-causal", "B=2 H=16 S=8192 D=128").causal);
  const KernelRow norm = read("RMSNorm forward (Liger Triton)", "4096x8192", 2636, "GB/s");
  CHECK((norm.op == "rmsnorm" && norm.implementation == "Liger Triton" && norm.m == 4096 && norm.n == 8192));
  CHECK(norm.seconds == Approx(2 * 2. * 4096 * 8192 / 2636e9));
}

TEST_CASE("kernels that no plan asks for are not judged") {
  const auto reason = [](const KernelRow& row) { return kernel_point(row).reason; };
  CHECK(reason(read("whole MoE layer forward (X)", "T=32768 d=4096 n=1024 E=64 K=4")).find("apart") !=
        std::string::npos);
  CHECK(reason(read("RMSNorm forward (Liger Triton)", "4096x8192", 2636, "GB/s")).find("Liger Triton") !=
        std::string::npos);
  CHECK(reason(read("RMSNorm forward", "4096x8192", 2636, "GB/s")).empty());
}

TEST_CASE("attention is never faster than its FLOPs, nears them with length and width, and a mask halves it") {
  const auto share = [](const KernelRow& row) {
    return published_flops(row) / h100().flops / attention_time_s(row, 1, h100());
  };
  for (double seq : {128., 512., 4096., 65536.})
    for (double width : {64., 128., 256.})
      for (bool causal : {false, true}) {
        const KernelRow row = attention(64, seq, width, causal);
        CHECK(share(row) < 1);
        CHECK(share(attention(64, 2 * seq, width, causal)) > share(row));
        CHECK(share(attention(64, seq, 2 * width, causal)) > share(row));
        CHECK(attention_time_s(attention(64, seq, width, causal, "backward"), 1, h100()) ==
              Approx(2.5 * attention_time_s(row, 1, h100())));
      }
  CHECK(attention_time_s(attention(64, 65536, 128, true), 1, h100()) ==
        Approx(0.5 * attention_time_s(attention(64, 65536, 128, false), 1, h100())).epsilon(0.01));
  // One tile of rows keeps one processor busy: as many heads as processors take no longer.
  CHECK(attention_time_s(attention(1, 128, 128, false), 1, h100()) ==
        Approx(attention_time_s(attention(132, 128, 128, false), 1, h100())));
}

TEST_CASE("a library's factor comes from rows on this GPU before others of the generation") {
  const auto row = [](const char* library, const char* gpu, const char* origin, double factor) {
    return LibraryRow{"attention_forward", library, gpu, origin, std::log(factor)};
  };
  const auto kernel = [](const char* library, const DataSheet& gpu) {
    return LibraryKernel{"attention_forward", library, gpu};
  };
  const DataSheet h100 = *data_sheet("H100-SXM"), h800 = *data_sheet("H800");
  std::vector<LibraryRow> rows = {row("A", "H100-SXM", "g2", 2), row("A", "H100-SXM", "g2", 2)};
  const auto factor = [&](const LibraryKernel& of, bool unknown = false) {
    return Libraries(rows).factor(of, unknown);
  };
  CHECK(std::exp(factor(kernel("A", h100))->log_factor) == Approx(2));
  CHECK(factor(kernel("A", h100))->known == Libraries::Known::on_this_gpu);
  CHECK(factor(kernel("A", h800))->known == Libraries::Known::on_this_generation);
  CHECK_FALSE(factor(kernel("B", h100)));  // one library says nothing of another
  rows.push_back(row("C", "H100-SXM", "g5", 1.6)), rows.push_back(row("D", "H100-SXM", "g6", 2.2));
  REQUIRE(factor(kernel("B", h100)));
  CHECK(factor(kernel("B", h100))->known == Libraries::Known::never_measured);
  CHECK(std::exp(factor(kernel("B", h100))->log_factor) == Approx(2));  // medians 1.6, 2, 2.2
  CHECK_FALSE(factor(kernel("A", h100), true));                         // without A two are left
  rows.push_back(row("E", "H100-SXM", "g7", 9));
  CHECK_FALSE(factor(kernel("B", h100)));  // too different to say anything
  DataSheet slow = h100;
  slow.name = "another", slow.flops /= 4;
  CHECK_FALSE(factor(kernel("A", slow)));  // beside tensor cores a quarter as fast the rest weighs less
  DataSheet blackwell = h100;
  blackwell.generation = 10;
  CHECK_FALSE(factor(kernel("A", blackwell)));
}

TEST_CASE("rates of a library are predicted from its other sources") {
  std::vector<KernelRow> rows;
  for (const auto& [source, factor] : {std::pair{"one", 1.4}, {"two", 1.41}, {"three", 1.39}})
    for (double seq : {1024., 4096., 16384.}) {
      KernelRow row = attention(32, seq, 128, seq > 2000);
      row.origin = source, row.implementation = "FlashAttention-3";
      row.seconds = factor * attention_time_s(row, 1, h100());
      rows.push_back(row);
    }
  rows.push_back(rows[0]);
  rows.back().implementation = "a library nobody measured";
  const auto judged = judge_kernels(rows, PublishedKernelFit(usable_points(rows)), usable_points(rows));
  for (std::size_t i = 0; i < 9; ++i) {
    REQUIRE(judged[i].forecast.value);
    CHECK(*judged[i].forecast.value == Approx(judged[i].measured).epsilon(0.02));
    CHECK(judged[i].regime == "attention_forward, library measured");
  }
  CHECK(judged[9].forecast.reason.find("other libraries too few") != std::string::npos);
}
