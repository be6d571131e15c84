// The host's launch time: how many launches, how long they take, and what a GPU's work takes beside them.
#include "sim/cost/host/host_time.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "configs/files/stack.hpp"

using namespace wt;

namespace {

constexpr HostConstants kHost = {60e-6, 80e-6, 2e-3, 0.4, 3};

double issued(double gpu_s, double launch_s) { return issued_time_s(gpu_s, launch_s, kHost); }

}  // namespace

double launching(const Launches& launches, bool waits = true, CudaGraphs graphs = CudaGraphs::none,
                 bool fused = false) {
  return launch_time_s(launches, {waits, fused}, graphs, kHost);
}

TEST_CASE("launching takes a constant a kernel, a routing of rows and a blocking collective") {
  CHECK(launching({1000, 0, 0, 0}) == Approx(60e-3));
  CHECK(launching({1000, 0, 0, 250}) == Approx(60e-3 + 20e-3));
  CHECK(launching({1000, 3, 0, 250}) == Approx(60e-3 + 6e-3 + 20e-3));
  CHECK(launching({}) == 0);
}

TEST_CASE("rows are routed with less of the host where it does not wait for them, and in CUDA graphs with none") {
  const Launches moe{100, 1, 0, 10}, back{100, 0, 1, 10};
  CHECK(launching(moe) - launching(moe, false) == Approx(0.6 * 2e-3));
  CHECK(launching(back) == launching(moe, false));  // the way back knows the numbers of rows
  CHECK(launching(moe) - launching(moe, true, CudaGraphs::none, true) == Approx(0.4 * 2e-3 * (1 - 3.0 / 22)));
  CHECK(launching(moe, true, CudaGraphs::partial) == launching({100, 0, 0, 10}));
  CHECK(launching(moe, true, CudaGraphs::full) == 0);
}

TEST_CASE("the host waits where a stack says, and never with HybridEP") {
  using D = Dispatcher;
  for (const D each : {D::alltoall, D::deepep, D::uccl}) {
    CHECK(waits_for_rows(SyncPoints::experts, 1, each, false));
    CHECK(waits_for_rows(SyncPoints::experts, 8, each, false));
    CHECK_FALSE(waits_for_rows(SyncPoints::exchange, 1, each, false));
    CHECK(waits_for_rows(SyncPoints::exchange, 8, each, false));
    CHECK_FALSE(waits_for_rows(SyncPoints::none, 8, each, false));
  }
  CHECK_FALSE(waits_for_rows(SyncPoints::experts, 8, D::hybridep, false));
  CHECK_FALSE(waits_for_rows(SyncPoints::experts, 8, D::alltoall, true));
}

TEST_CASE("a backward pass is launched as two kernels, and a router counts as a routing") {
  const auto work = [](Kernel kernel, Pass pass) {
    Launches launches;
    launches.add({make_item(kernel, pass, Precision::bf16, {64, 0}, {64, 64})}, 3);
    return launches;
  };
  CHECK(work(Kernel::gemm, Pass::forward).kernels == 3);
  CHECK(work(Kernel::gemm, Pass::backward).kernels == 6);
  CHECK(work(Kernel::gemm, Pass::forward).routings == 0);
  CHECK(work(Kernel::router, Pass::forward).routings == 3);
  CHECK(work(Kernel::router, Pass::backward).routings_back == 3);
}

TEST_CASE("of a host far slower its time counts, of one far faster the GPU's") {
  CHECK(issued(1, 1e4) == Approx(1e4).epsilon(1e-9));
  CHECK(issued(1, 1e-4) == Approx(1).epsilon(1e-9));
  CHECK(issued(1, 0) == 1);
  CHECK(issued(0, 1) == 1);
  CHECK(issued(0, 0) == 0);
}

TEST_CASE("between the two it is the root of the sum of their powers, at most their sum") {
  CHECK(issued(2, 2) == Approx(2 * std::cbrt(2)));
  CHECK(issued(1, 2) == Approx(std::cbrt(9)));
  CHECK(issued_time_s(1, 2, {.power = 1}) == Approx(3));    // nothing overlaps
  CHECK(issued_time_s(1, 2, {.power = 200}) == Approx(2));  // the shorter is hidden
}

TEST_CASE("more work of the GPU or more launches never take less") {
  for (const double power : {1.0, 1.5, 3.0, 20.0})
    for (double one = 1e-4; one < 1e4; one *= 1.7) {
      double before = 0;
      for (double other = 1e-4; other < 1e4; other *= 1.7) {
        const double seconds = issued_time_s(one, other, {.power = power});
        CHECK(seconds >= std::max(one, other));
        CHECK(seconds <= (one + other) * (1 + 1e-12));
        // The same either way round: growing with one, it grows with both.
        CHECK(seconds == issued_time_s(other, one, {.power = power}));
        CHECK(seconds >= before);
        before = seconds;
      }
    }
}
