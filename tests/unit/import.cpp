// What other tools print becomes profiles: nccl-tests and traces of PyTorch's profiler. The texts are ours, in their
// formats.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "bench/formats/kineto.hpp"
#include "bench/formats/nccl_tests.hpp"
#include "configs/base/error.hpp"
#include "sim/cost/calibrate/calibrate.hpp"

using namespace wt;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

/// Two nodes of two GPUs; 1 MiB in 100 us and 64 MiB in 1 ms out of place.
const std::string kTable =
    R"(# nThread 1 nGpus 1 minBytes 0 maxBytes 67108864 step: 64(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid   1001 on node-a device  0 [0x19] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   1002 on node-a device  1 [0x3b] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid   2001 on node-b device  0 [0x19] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid   2002 on node-b device  1 [0x3b] NVIDIA H100 80GB HBM3
NCCL version 2.21.5+cuda12.4
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           0             0     float     sum      -1     0.25    0.00    0.00      0     0.24    0.00    0.00      0
[1,0]<stdout>:     1048576        262144     float     sum      -1    100.0   10.49   15.73      0     99.0   10.59   15.89      0
    67108864      16777216     float     sum      -1   1000.0   67.11  100.66    N/A    990.0   67.79  101.68    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 58.4
#
# Collective test concluded: all_reduce_perf
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

Profile from_nccl_tests(const std::string& text, const std::string& origin) {
  return profile_of(read_nccl_tests(text, origin), origin);
}

json kernel(const std::string& name, double start_us, double us, int external_id = 0) {
  return {{"ph", "X"},    {"cat", "kernel"},
          {"name", name}, {"pid", 0},
          {"tid", 7},     {"ts", start_us},
          {"dur", us},    {"args", {{"device", 0}, {"stream", 7}, {"correlation", 1}, {"External id", external_id}}}};
}
json mm(int external_id, std::vector<std::vector<int>> dims, const std::string& name = "aten::mm") {
  json types = json::array();
  for (std::size_t i = 0; i < dims.size(); ++i) types.push_back("c10::BFloat16");
  return {{"ph", "X"},    {"cat", "cpu_op"},
          {"name", name}, {"ts", 0},
          {"dur", 5},     {"args", {{"External id", external_id}, {"Input Dims", dims}, {"Input type", types}}}};
}
json trace(std::vector<json> events) {
  return {{"schemaVersion", 1},
          {"deviceProperties", {{{"id", 0}, {"name", "NVIDIA H100 80GB HBM3"}, {"numSms", 132}}}},
          {"traceEvents", events}};
}

}  // namespace

TEST_CASE("a table of nccl-tests gives a measurement a size, over the ranks and nodes of its list") {
  REQUIRE(is_nccl_tests(kTable));
  const Profile profile = from_nccl_tests(kTable, "t.txt");
  CHECK(profile.fingerprint.at("device") == "NVIDIA H100 80GB HBM3");
  CHECK(profile.fingerprint.at("nccl") == "2.21.5");
  CHECK(profile.fingerprint.at("gpus_per_node") == "2");
  REQUIRE(profile.measurements.size() == 2);  // the size of 0 says nothing
  const Measurement& m = profile.measurements[0];
  CHECK(m.name() == "all_reduce/bytes=1048576,nodes=2,ranks=4");
  CHECK(m.median() == Approx(100e-6));
  CHECK(m.counters.at("in_place_s") == Approx(99e-6));
  CHECK(m.evidence.kind == Evidence::measured);
  CHECK_NOTHROW(to_json(profile));
}

TEST_CASE("the same size again is a further sample; older tests without a root read, too") {
  const std::string again = kTable + kTable;
  CHECK(from_nccl_tests(again, "t").measurements[1].samples.size() == 2);
  CHECK(from_nccl_tests(again, "t").measurements[1].shape.at("ranks") == 4);
  CHECK(from_nccl_tests(with(kTable, "sum      -1", "sum"), "t").measurements.size() == 2);
  std::string exchanged = with(kTable, "all_reduce_perf", "alltoall_perf");  // bus bandwidth is (n-1)/n of the other
  for (const auto& [whole, half] :
       {std::pair("15.73", " 7.87"), {"15.89", " 7.94"}, {"100.66", " 50.33"}, {"101.68", " 50.84"}})
    exchanged = with(exchanged, whole, half);
  const Profile exchange = from_nccl_tests(exchanged, "t");
  CHECK(exchange.measurements[0].kernel == "all_to_all");
}

TEST_CASE("ranks that each see one GPU are told apart by their bus ids") {
  const Profile profile = from_nccl_tests(with(kTable, "device  1 [0x3b]", "device  0 [0x3b]"), "t");
  CHECK(profile.fingerprint.at("gpus_per_node") == "2");
  CHECK(profile.measurements[0].shape.at("ranks") == 4);
  CHECK(profile.measurements[0].shape.at("nodes") == 2);
  const std::string one_gpu = with(kTable, "device  1 [0x3b]", "device  0 [0x19]");
  CHECK_THROWS_WITH(from_nccl_tests(one_gpu, "t"), Contains("a second rank on device 0 of host node-a, bus id 0x19"));
}

TEST_CASE("calibration takes an imported table, with the cluster's link speeds") {
  const std::string one_node =
      with(with(kTable, "node-b device  0", "node-a device  2"), "node-b device  1", "node-a device  3");
  Profile profile = from_nccl_tests(one_node, "t");
  profile.fingerprint["nvlink_Bps"] = "450e9";
  const MachineModel model = calibrate({profile}).model;
  const CollectiveEstimate estimate = model.collective(OpKind::all_reduce, 67108864, 4, 1);
  CHECK(estimate.latency_s + 67108864 * 1.5 / 450e9 / estimate.efficiency == Approx(1e-3).epsilon(1e-6));
  CHECK(estimate.evidence == Evidence::measured);
}

TEST_CASE("what is no whole, right table is refused with its line") {
  const auto refused = [](const std::string& from, const std::string& to, const std::string& why) {
    INFO(from);
    CHECK_THROWS_WITH(from_nccl_tests(with(kTable, from, to), "t.txt"), Contains("t.txt") && Contains(why));
  };
  refused("all_reduce_perf", "", "no name of a test");
  refused("all_reduce_perf", "all_reduce_perf all_gather_perf", "one test a file");
  refused("#  Rank", "#  Rang", "no list of devices");
  refused("node-b device  1 [0x3b] NVIDIA H100", "node-b device  1 [0x3b] NVIDIA A100", "one kind of GPU");
  refused("   100.0   10.49   15.73      0", "   100.0   10.49   15.73      3", "3 wrong results");
  refused("   100.0   10.49   15.73", "   100.0   20.49   30.74", "where size / time is 10.5");
  refused("   100.0   10.49   15.73", "   100.0   10.49   18.73", "differs from row to row");
  refused("   100.0   10.49", "   0.0   10.49", "microseconds and GB/s");
  refused("   100.0   10.49", "   fast   10.49", "t.txt:14");
  refused("99.0   10.59   15.89      0", "99.0   10.59", "words behind the element type");
  refused("float", "fl", "no row");
  refused("node-b", "node-a", "a second rank on device 0 of host node-a");
  refused("#  Rank  3", "#  Rank  2", "rank 2 behind 3 ranks");
  for (const char* number : {"1", "2", "3"}) {
    const std::string rank = std::string("#  Rank  ") + number;
    INFO(number);
    CHECK_THROWS_WITH(from_nccl_tests(with(kTable, rank, "#  Rank  0"), "t"),
                      Contains("ranks 0, 1, 2, ... of one run"));
  }
  const std::string slower = with(with(kTable, "1000.0   67.11", "4000.0   16.78"), "100.66", "25.16");
  CHECK_THROWS_WITH(from_nccl_tests(kTable + slower, "t"), Contains("runs of 1e+03 and 4e+03 us for 67108864 bytes"));
  for (const char* label : {"[1,0]<stdout>:", "[node-a] ", "[2026-11-26 10:00:00] ", "node-a: ", "0: "}) {
    std::string labelled = label;
    for (const char letter : kTable) labelled += letter == '\n' ? std::string("\n") + label : std::string(1, letter);
    INFO(label);
    CHECK(is_nccl_tests(labelled));
    CHECK(from_nccl_tests(labelled, "t").measurements.size() == 2);
  }
  CHECK(!is_nccl_tests(R"([{"algbw": 1, "busbw": 2}])"));
  CHECK(!is_nccl_tests("hello"));
  CHECK(!is_nccl_tests(R"({"algbw": 1, "busbw": 2})"));
}

TEST_CASE("kernels are told by their names") {
  const std::vector<std::pair<std::string, KernelClass>> names{
      {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", KernelClass::collective},
      {"void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>(Flash_fwd_params)", KernelClass::attention},
      {"fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)", KernelClass::attention},
      {"ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", KernelClass::gemm},
      {"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT", KernelClass::gemm},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", KernelClass::gemm},
      {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>",
       KernelClass::optimizer},
      {"void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<Policy900>", KernelClass::sorting},
      {"void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<c10::BFloat16>>", KernelClass::memory_bound},
      {"triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_3", KernelClass::memory_bound},
      {"my_secret_kernel", KernelClass::unknown}};
  for (const auto& [name, kind] : names) {
    INFO(name);
    CHECK(to_string(kernel_class(name)) == to_string(kind));
  }
}

TEST_CASE("a trace's time is cut into classes, unknown kernels with their share, and products get their shapes") {
  json copy = kernel("Memcpy HtoD (Pinned -> Device)", 400, 10);
  copy["cat"] = "gpu_memcpy";
  json launch = kernel("cudaLaunchKernel", 0, 1);
  launch["cat"] = "cuda_runtime";
  const KinetoTrace t =
      from_kineto(trace({mm(3, {{512, 256}, {256, 1024}}), mm(4, {{1024}, {512, 256}, {256, 1024}}, "aten::addmm"),
                         launch, kernel("nvjet_tst", 100, 50, 3), kernel("cublasLt::splitKreduce_kernel", 150, 10, 3),
                         kernel("nvjet_tst", 200, 70, 4), kernel("ncclDevKernel_AllGather_RING_LL", 100, 200),
                         kernel("my_secret_kernel", 300, 60), copy}),
                  "t.json");
  CHECK(t.kernel_s == Approx(400e-6));
  CHECK(t.span_s == Approx(310e-6));
  CHECK(t.share(KernelClass::collective) == Approx(0.5));
  CHECK(t.share(KernelClass::gemm) == Approx(130.0 / 400));
  CHECK(t.share(KernelClass::unknown) == Approx(0.15));
  CHECK(t.share(KernelClass::transfer) == Approx(0.025));
  double sum = 0;
  for (double s : t.class_s) sum += s;
  CHECK(sum == Approx(t.kernel_s));
  CHECK(t.profile.fingerprint.at("device") == "NVIDIA H100 80GB HBM3");
  CHECK(t.profile.fingerprint.at("multiprocessors") == "132");
  const Measurement& gemm = t.profile.measurements.back();
  CHECK(gemm.name() == "gemm/forward/bf16/k=256,n=1024,rows=512/device");
  REQUIRE(gemm.samples.size() == 2);
  CHECK(gemm.samples[0] == Approx(60e-6));  // a product and its reduction are one
  CHECK(gemm.samples[1] == Approx(70e-6));
  CHECK_NOTHROW(profile_from_json(to_json(t.profile), "back"));
  CHECK(calibrate({t.profile}).model.data().table.size() == 1);
}

TEST_CASE("traces that say nothing of a GPU, or not enough, are refused with their event") {
  const auto refused = [](const json& document, const std::string& why) {
    CHECK_THROWS_WITH(from_kineto(document, "t.json"), Contains("t.json") && Contains(why));
  };
  refused(json::object(), "traceEvents");
  refused({{"traceEvents", 3}}, "traceEvents");
  refused(trace({}), "no event of category kernel");
  refused(trace({mm(1, {{1, 1}, {1, 1}})}), "ProfilerActivity.CUDA");
  json event = kernel("k", 0, 1);
  event["dur"] = -1;
  refused(trace({event}), "/traceEvents/0/dur");
  event["dur"] = "long";
  refused(trace({event}), "/traceEvents/0/dur");
  event.erase("dur");
  refused(trace({event}), "dur");
  json other = kernel("k", 0, 1);
  other["args"]["device"] = 1;
  refused(trace({kernel("k", 0, 1), other}), "second device");
  CHECK(!is_chrome_trace(json::array()));
  // Odd but harmless: shapes that do not fit, no arguments, no device properties.
  json bare = kernel("gemm", 0, 1, 9);
  CHECK(from_kineto({{"traceEvents", {mm(9, {{2, 3}, {4, 5}}), bare}}}, "t").profile.measurements.size() == 1);
  bare.erase("args");
  CHECK(from_kineto({{"traceEvents", {bare}}}, "t").kernels.size() == 1);
}
