// The grouped GEMM for sm_90a on a GPU against double precision: every form, both tile widths, tails of every size and
// every routing; outputs poisoned and fenced, two runs bit for bit. A hang inside the kernel becomes an error
// (barrier_wait).
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "kernels/kernels.h"
#include "tests/fixtures/grouped_reference.hpp"
#include "tests/fixtures/no_gpu.hpp"

using namespace wt::kernel_test;
using wt::test::no_gpu;

namespace {

/// Device memory with a fence of 4 KiB on both sides, all bytes 0xff (a bf16 NaN) at first.
class Fenced {
 public:
  explicit Fenced(const std::vector<unsigned char>& content) : Fenced(content.size()) {
    if (size_ > 0) REQUIRE(cudaMemcpy(data(), content.data(), size_, cudaMemcpyHostToDevice) == cudaSuccess);
  }
  explicit Fenced(size_t size) : size_(size) {
    REQUIRE(cudaMalloc(&memory_, size_ + 2 * kFence) == cudaSuccess);
    REQUIRE(cudaMemset(memory_, 0xff, size_ + 2 * kFence) == cudaSuccess);
  }
  ~Fenced() { cudaFree(memory_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  unsigned char* data() const { return static_cast<unsigned char*>(memory_) + kFence; }
  /// The content; requires the fences untouched.
  std::vector<unsigned char> read() const {
    std::vector<unsigned char> all(size_ + 2 * kFence);
    REQUIRE(cudaMemcpy(all.data(), memory_, all.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
    const auto untouched = [](unsigned char byte) { return byte == 0xff; };
    CHECK(std::all_of(all.begin(), all.begin() + kFence, untouched));
    CHECK(std::all_of(all.end() - kFence, all.end(), untouched));
    return {all.begin() + kFence, all.end() - kFence};
  }

 private:
  static constexpr int kFence = 4096;
  size_t size_;
  void* memory_ = nullptr;
};

using Product = decltype(&wt_grouped_gemm_forward);

void check(Product product, const Grouped& g, const Doubles& a, const Doubles& b, const Doubles& expected) {
  const Fenced on_a(pack(WT_BF16, a)), on_b(pack(WT_BF16, b)), ends([&] {
    std::vector<unsigned char> bytes(g.ends.size() * 4);
    std::memcpy(bytes.data(), g.ends.data(), bytes.size());
    return bytes;
  }());
  std::vector<unsigned char> first;
  for (int run = 0; run < 2; ++run) {
    const Fenced out(expected.size() * 2);
    const WtStatus status =
        product({0, nullptr}, WT_BF16, on_a.data(), on_b.data(), reinterpret_cast<const int32_t*>(ends.data()),
                g.rows(), g.groups(), g.n, g.k, out.data());
    INFO(wt_kernel_error());
    REQUIRE(status == WT_OK);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    const auto found = out.read();
    CHECK(error_of_sums(unpack(WT_BF16, found), expected) < tolerance(WT_BF16));
    if (run == 0) first = found;
    CHECK(std::equal(found.begin(), found.end(), first.begin(), first.end()));
  }
}

void check_all(const Grouped& g) {
  CAPTURE(g.ends, g.n, g.k);
  check(wt_grouped_gemm_forward, g, g.x, g.weight, g.forward());
  check(wt_grouped_gemm_backward_rows, g, g.dy, g.weight, g.backward_rows());
  check(wt_grouped_gemm_backward_weight, g, g.dy, g.x, g.backward_weight());
}

bool hopper() {
  int major = 0, minor = 0;
  REQUIRE(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess);
  REQUIRE(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0) == cudaSuccess);
  return major == 9 && minor == 0;
}

}  // namespace

TEST_CASE("CUDA: grouped GEMM of tails and extreme routings") {
  if (no_gpu() || !hopper()) return;
  const Routing routing =
      GENERATE(Routing::random, Routing::one_takes_all, Routing::one_row, Routing::nobody, Routing::skewed);
  const int64_t groups = GENERATE(1, 7), n = GENERATE(8, 200, 512), k = GENERATE(8, 136);
  std::mt19937_64 random{uint64_t(groups * 1000 + n + k)};
  check_all(draw_grouped(WT_BF16, ends_of(routing, groups, 90, random), n, k, random));
}

TEST_CASE("CUDA: grouped GEMM of as many tiles as blocks do in several turns, wide and narrow") {
  if (no_gpu() || !hopper()) return;
  const auto [groups, rows_each, n, k] =
      GENERATE(std::array<int64_t, 4>{300, 20, 520, 264}, std::array<int64_t, 4>{1024, 2, 64, 128},
               std::array<int64_t, 4>{16, 150, 1032, 648}, std::array<int64_t, 4>{2, 3000, 256, 512});
  std::mt19937_64 random{uint64_t(groups)};
  check_all(draw_grouped(WT_BF16, ends_of(Routing::random, groups, rows_each, random), n, k, random));
}

TEST_CASE("CUDA: a group's infinities stay in its own gradient") {
  if (no_gpu() || !hopper()) return;
  std::mt19937_64 random{5};
  Grouped g = draw_grouped(WT_BF16, {70, 75, 75, 200}, 64, 64, random);
  const Doubles clean = g.backward_weight();
  for (size_t i = 70 * 64; i < 75 * 64; ++i) g.x[i] = g.dy[i] = INFINITY;
  const Fenced x(pack(WT_BF16, g.x)), dy(pack(WT_BF16, g.dy)), out(clean.size() * 2);
  const Fenced ends([&] {
    std::vector<unsigned char> bytes(16);
    std::memcpy(bytes.data(), g.ends.data(), 16);
    return bytes;
  }());
  REQUIRE(wt_grouped_gemm_backward_weight({0, nullptr}, WT_BF16, dy.data(), x.data(),
                                          reinterpret_cast<const int32_t*>(ends.data()), 200, 4, 64, 64,
                                          out.data()) == WT_OK);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  const Doubles found = unpack(WT_BF16, out.read());
  const auto part = [](const Doubles& all, size_t from, size_t to) {
    return Doubles(all.begin() + from * 4096, all.begin() + to * 4096);
  };
  CHECK(error_of_sums(part(found, 0, 1), part(clean, 0, 1)) < tolerance(WT_BF16));
  CHECK(error_of_sums(part(found, 2, 4), part(clean, 2, 4)) < tolerance(WT_BF16));
}

TEST_CASE("CUDA: grouped GEMM says what it has no kernel for") {
  if (no_gpu()) return;
  const Fenced memory(size_t{1 << 16}), out(size_t{1 << 16});
  const auto status = [&](WtDtype dtype, int64_t n, size_t offset) {
    return wt_grouped_gemm_forward({0, nullptr}, dtype, memory.data() + offset, memory.data(),
                                   reinterpret_cast<const int32_t*>(memory.data()), 8, 2, n, 8, out.data());
  };
  CHECK(status(WT_FP32, 8, 0) == WT_UNSUPPORTED);
  CHECK(status(WT_BF16, 12, 0) == WT_UNSUPPORTED);
  CHECK(status(WT_BF16, 8, 8) == WT_UNSUPPORTED);
  if (!hopper()) CHECK(status(WT_BF16, 8, 0) == WT_UNSUPPORTED);
}
