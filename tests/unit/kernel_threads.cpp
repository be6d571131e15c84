// CPU kernels over several threads: the bits do not depend on their number.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <memory>

#include "kernels/kernels.h"
#include "tests/support/kernel_arrays.hpp"

using namespace wt::kernel_test;

namespace {

const WtStream kCpu{-1, nullptr};
using Bytes = std::vector<unsigned char>;

/// What `run` leaves in `size` bytes, with so many threads.
Bytes with_threads(int threads, size_t size, const std::function<WtStatus(unsigned char*)>& run) {
  REQUIRE(wt_kernel_set_threads(threads) == WT_OK);
  Bytes out(size);
  REQUIRE(run(out.data()) == WT_OK);
  REQUIRE(wt_kernel_set_threads(1) == WT_OK);
  return out;
}

}  // namespace

TEST_CASE("threads: every kernel gives the same bits with one, two, three and eight") {
  // Six MiB and more move, so that three threads and more start; 1021 rows are not a multiple of any of them.
  const int64_t T = 1021, D = 1000, k = 2, N = T * k;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const size_t width = dtype == WT_FP32 ? 4 : 2, bytes = size_t(N * D) * width;
  std::mt19937_64 random{1};
  const auto x = pack(dtype, draw(random, dtype, N * D)), y = pack(dtype, draw(random, dtype, N * D));
  std::vector<int64_t> order(size_t(N), 0), inverse(size_t(N), 0), experts(size_t(N), 0);
  for (int64_t& e : experts) e = int64_t(random() % 16);
  REQUIRE(wt_sort_by_expert(kCpu, experts.data(), nullptr, N, 16, order.data(), inverse.data(), nullptr) == WT_OK);
  const auto weights = floats(draw(random, WT_FP32, N));
  std::vector<float> scale(size_t(N * 8)), beside(scale.size());
  Bytes codes(size_t(N * D));
  REQUIRE(wt_quantize_blocks(kCpu, dtype, WT_FP8, x.data(), N, D, codes.data(), scale.data()) == WT_OK);

  const std::vector<std::function<WtStatus(unsigned char*)>> kernels = {
      [&](unsigned char* out) { return wt_permute_forward(kCpu, dtype, x.data(), order.data(), T, k, D, out); },
      [&](unsigned char* out) { return wt_permute_backward(kCpu, dtype, x.data(), inverse.data(), T, k, D, 0, out); },
      [&](unsigned char* out) { return wt_gather_rows(kCpu, dtype, x.data(), order.data(), N, N, D, out); },
      [&](unsigned char* out) {
        return wt_combine_forward(kCpu, dtype, x.data(), inverse.data(), weights.data(), y.data(), T, k, D, out);
      },
      [&](unsigned char* out) {
        return wt_combine_backward(kCpu, dtype, y.data(), x.data(), inverse.data(), weights.data(), T, k, D, out, beside.data());
      },
      [&](unsigned char* out) { return wt_swiglu_forward(kCpu, dtype, x.data(), N, D / 2, out); },
      [&](unsigned char* out) { return wt_swiglu_backward(kCpu, dtype, y.data(), x.data(), N, D / 2, out); },
      [&](unsigned char* out) { return wt_quantize_blocks(kCpu, dtype, WT_INT8, x.data(), N, D, out, scale.data()); },
      [&](unsigned char* out) { return wt_dequantize_blocks(kCpu, dtype, WT_FP8, codes.data(), scale.data(), N, D, out); },
      [&](unsigned char* out) { return wt_rmsnorm_forward(kCpu, dtype, x.data(), y.data(), 1e-5f, N, D, out, beside.data()); },
  };
  const size_t which = GENERATE(range(size_t{0}, size_t{10}));
  CAPTURE(which);
  const Bytes one = with_threads(1, bytes, kernels.at(which));
  for (const int threads : {2, 3, 8}) CHECK(with_threads(threads, bytes, kernels.at(which)) == one);
}

TEST_CASE("threads: the router, its sums included") {
  const int64_t T = 1500, E = 96, k = 4;
  const WtRouterSpec spec{T, E, k, 100, GENERATE(WT_SOFTMAX, WT_SIGMOID), 8, 3, 2, true, 2.5f, false};
  std::mt19937_64 random{2};
  const auto logits = floats(draw(random, WT_FP32, T * E)), dweights = floats(draw(random, WT_FP32, T * k));
  const auto dshares = floats(draw(random, WT_FP32, T / 100 * E));
  const auto run = [&](int threads) {
    std::vector<float> scores(size_t(T * E)), weights(size_t(T * k)), dlogits(size_t(T * E));
    std::vector<int64_t> index(size_t(T * k)), counts(size_t(T / 100 * E));
    std::vector<double> shares(counts.size()), squares(size_t(T / 100));
    REQUIRE(wt_kernel_set_threads(threads) == WT_OK);
    REQUIRE(wt_router_forward(kCpu, spec, logits.data(), nullptr, index.data(), scores.data(), weights.data(), counts.data(),
                              shares.data(), squares.data()) == WT_OK);
    REQUIRE(wt_router_backward(kCpu, spec, dweights.data(), scores.data(), index.data(), dshares.data(), logits.data(), 0.1f,
                               dlogits.data()) == WT_OK);
    REQUIRE(wt_kernel_set_threads(1) == WT_OK);
    return std::make_tuple(scores, weights, dlogits, index, counts, shares, squares);
  };
  const auto one = run(1);
  for (const int threads : {2, 3, 8}) CHECK((run(threads) == one));
}

TEST_CASE("threads: none is refused") {
  CHECK(wt_kernel_set_threads(0) == WT_INVALID_ARGUMENT);
  CHECK_THAT(wt_kernel_error(), Catch::Contains("1 or more"));
}

TEST_CASE("outputs too large for the caches have the bits of their parts") {
  if (wt_kernel_set_isa(GENERATE("avx512", "avx2", "baseline")) != WT_OK) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const int64_t D = 1024, T = dtype == WT_FP32 ? 9000 : 17000, width = dtype == WT_FP32 ? 4 : 2;  // 33 MiB and more
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  const auto lines = [](int64_t bytes) {
    return std::unique_ptr<unsigned char, Free>(static_cast<unsigned char*>(std::aligned_alloc(64, size_t(bytes))));
  };
  const auto x = lines(T * D * width), whole = lines(T * D * width), part = lines(T * D * width), gain = lines(D * width);
  std::mt19937_64 random{3};
  const auto values = pack(dtype, draw(random, dtype, 7 * D));
  for (int64_t t = 0; t < T; ++t) std::memcpy(x.get() + t * D * width, &values[size_t(t % 7 * D * width)], size_t(D * width));
  std::memcpy(gain.get(), values.data(), size_t(D * width));
  std::vector<int64_t> index(size_t(T), 0);
  for (int64_t t = 0; t < T; ++t) index[size_t(t)] = (t * 5 + 3) % T;
  std::vector<float> rstd(size_t(T), 0);
  const int64_t half = T / 2;

  REQUIRE(wt_rmsnorm_forward(kCpu, dtype, x.get(), gain.get(), 1e-5f, T, D, whole.get(), rstd.data()) == WT_OK);
  for (const int64_t from : {int64_t{0}, half})
    REQUIRE(wt_rmsnorm_forward(kCpu, dtype, x.get() + from * D * width, gain.get(), 1e-5f, from == 0 ? half : T - half, D,
                               part.get() + from * D * width, rstd.data()) == WT_OK);
  CHECK(std::memcmp(whole.get(), part.get(), size_t(T * D * width)) == 0);
  REQUIRE(wt_gather_rows(kCpu, dtype, x.get(), index.data(), T, T, D, whole.get()) == WT_OK);
  for (const int64_t from : {int64_t{0}, half})
    REQUIRE(wt_gather_rows(kCpu, dtype, x.get(), &index[size_t(from)], T, from == 0 ? half : T - half, D,
                           part.get() + from * D * width) == WT_OK);
  CHECK(std::memcmp(whole.get(), part.get(), size_t(T * D * width)) == 0);
}
