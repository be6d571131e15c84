// Items of the kernel suite on a CUDA device beside the same items on the CPU. Built only with WT_CUDA; without a GPU
// the cases that need one say so and ctest reports the test as skipped (SKIP_REGULAR_EXPRESSION).
#include <cuda_runtime.h>

#include <catch2/catch.hpp>

#include "bench/suites/aims.hpp"
#include "bench/suites/item_runner.hpp"
#include "bench/suites/stopwatch.hpp"
#include "configs/base/error.hpp"
#include "tests/fixtures/no_gpu.hpp"
#include "trainer/device/device.hpp"
#include "trainer/model/functions.hpp"
#include "trainer/pch.hpp"

#undef CHECK  // LibTorch's logging takes the name
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

using namespace wt;
using test::no_gpu;

namespace {

Tensors results_on(at::Device device, const WorkItem& item) {
  const RunSpec run;
  NormalPool normal(5, device);
  ItemRunner runner(item, run, normal);
  CHECK(runner.check() >= 0);  // against fp64
  runner.prepare();
  Tensors out;
  for (const at::Tensor& output : runner.call()) out.push_back(output.detach().to(at::kCPU));
  return out;
}

void check_same(const WorkItem& item) {
  const at::Device device = open_device("cuda");  // before LibTorch is used at all: it looks for its CUDA part once
  const Tensors cpu = results_on(at::kCPU, item), cuda = results_on(device, item);
  REQUIRE(cpu.size() == cuda.size());
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    const double largest = cpu[i].abs().max().item<double>();
    CHECK((cpu[i] - cuda[i]).abs().max().item<double>() <= 2 * largest_allowed_error(item.precision) * largest);
  }
}

}  // namespace

TEST_CASE("SwiGLU backward on the device is what the CPU computes") {
  if (no_gpu()) return;
  check_same(make_item(Kernel::swiglu, Pass::backward, Precision::fp32, {64, 0}, {48}));
}

TEST_CASE("a product on the device is what the CPU computes") {
  if (no_gpu()) return;
  check_same(make_item(Kernel::gemm, Pass::forward, Precision::fp32, {64, 0}, {32, 48}));
}

TEST_CASE("CUDA events see work that was issued") {
  if (no_gpu()) return;
  const at::Device device = open_device("cuda");
  const at::Tensor x = at::ones({1 << 24}, at::TensorOptions().device(device));
  const auto stopwatch = make_stopwatch(device);
  stopwatch->cover(1e-2);
  stopwatch->start();
  x.sum();
  const double seconds = stopwatch->stop();
  CHECK(seconds > 0);
}

TEST_CASE("kernels refuse inputs on two devices") {
  if (no_gpu()) return;
  at::Tensor logits = at::zeros({4, 8}, at::TensorOptions().device(open_device("cuda")));
  CHECK_THROWS_WITH(cross_entropy_in_place(logits, at::zeros({4}, at::kLong), 1.0, at::zeros({}, at::kDouble)),
                    Catch::Contains("allowed is one device") && Catch::Contains("cuda:0"));
}

TEST_CASE("a device that is not there is a runtime error that says what to use") {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return;
  CHECK_THROWS_WITH(open_device("cuda"), Catch::Contains("no CUDA device") && Catch::Contains("device cpu"));
}

TEST_CASE("copies, a launch and what the aims are of give the right results") {
  if (no_gpu()) return;
  const at::Device device = open_device("cuda");
  NormalPool normal(5, device);
  std::vector<BenchCase> cases = machine_cases(device, false);
  for (BenchCase& c : kernel_aims(device, true).cases) cases.push_back(std::move(c));
  for (const BenchCase& what : cases) {
    INFO(what.row.name());
    CHECK_NOTHROW(ItemRunner(what, normal).check());
  }
  Measurement launch = cases[0].row;
  for (const BenchCase& what : cases)
    if (what.also) what.also(launch);
  CHECK(launch.counters.at("issue_s") > 0);
}
