// Every CUDA kernel against its CPU twin on the same numbers, and against itself: two runs give the same bits. Built
// only with WT_CUDA; without a GPU every case says so and ctest reports the test as skipped (SKIP_REGULAR_EXPRESSION).
#include <cuda_runtime.h>

#include <catch2/catch.hpp>
#include <functional>

#include "kernels/kernels.h"
#include "tests/fixtures/kernel_arrays.hpp"
#include "tests/fixtures/kernel_reference.hpp"
#include "tests/fixtures/no_gpu.hpp"

using namespace wt::kernel_test;
using wt::test::no_gpu;
namespace reference = wt::reference;

namespace {

enum class Kind { fp32, bf16, int64, fp64, bytes };

struct Array {
  Kind kind;
  std::vector<unsigned char> bytes;
};

Array activations(WtDtype dtype, const Doubles& values) {
  return {dtype == WT_FP32 ? Kind::fp32 : Kind::bf16, pack(dtype, values)};
}
Array fp32(const Doubles& values) { return activations(WT_FP32, values); }
Array int64s(const std::vector<int64_t>& values) {
  Array array{Kind::int64, std::vector<unsigned char>(values.size() * 8)};
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

using Pointers = std::vector<void*>;
using Call = std::function<WtStatus(WtStream, const Pointers&)>;

std::vector<Array> on_cpu(std::vector<Array> arrays, const Call& call) {
  Pointers pointers;
  for (Array& array : arrays) pointers.push_back(array.bytes.data());
  INFO(wt_kernel_error());
  REQUIRE(call({-1, nullptr}, pointers) == WT_OK);
  return arrays;
}

std::vector<Array> on_gpu(std::vector<Array> arrays, const Call& call) {
  Pointers pointers;
  for (Array& array : arrays) {
    void* device = nullptr;
    REQUIRE(cudaMalloc(&device, array.bytes.size() + 1) == cudaSuccess);
    REQUIRE(cudaMemcpy(device, array.bytes.data(), array.bytes.size(), cudaMemcpyHostToDevice) == cudaSuccess);
    pointers.push_back(device);
  }
  const WtStatus status = call({0, nullptr}, pointers);
  INFO(wt_kernel_error());
  REQUIRE(status == WT_OK);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  for (size_t i = 0; i < arrays.size(); ++i) {
    const size_t size = arrays[i].bytes.size();
    REQUIRE(cudaMemcpy(arrays[i].bytes.data(), pointers[i], size, cudaMemcpyDeviceToHost) == cudaSuccess);
    cudaFree(pointers[i]);
  }
  return arrays;
}

/// Runs the call on both, compares every array (integers exactly), and returns what the CPU left.
std::vector<Array> compare(const std::vector<Array>& arrays, const Call& call, double scale = 1) {
  const auto expected = on_cpu(arrays, call), found = on_gpu(arrays, call), again = on_gpu(arrays, call);
  for (size_t i = 0; i < arrays.size(); ++i) {
    CAPTURE(i);
    CHECK(found[i].bytes == again[i].bytes);
    if (arrays[i].kind == Kind::int64) {
      CHECK(found[i].bytes == expected[i].bytes);
    } else if (arrays[i].kind == Kind::bytes) {  // codes: one apart where a value lies between two
      for (size_t b = 0; b < found[i].bytes.size(); ++b)
        CHECK(std::abs(found[i].bytes[b] - expected[i].bytes[b]) % 255 <= 1);
    } else if (arrays[i].kind == Kind::fp64) {
      for (size_t at = 0; at < found[i].bytes.size(); at += 8) {
        double a = 0, b = 1;
        std::memcpy(&a, &found[i].bytes[at], 8);
        std::memcpy(&b, &expected[i].bytes[at], 8);
        CHECK(a == Approx(b).epsilon(scale * 1e-6));
      }
    } else {
      // Both sides round to bf16: values that straddle a boundary differ by a whole unit, 2^-7.
      const WtDtype dtype = arrays[i].kind == Kind::fp32 ? WT_FP32 : WT_BF16;
      CHECK(distance(unpack(dtype, found[i].bytes), unpack(dtype, expected[i].bytes)) < 2 * scale * tolerance(dtype));
    }
  }
  return expected;
}

}  // namespace

TEST_CASE("CUDA: rmsnorm") {
  if (no_gpu()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  // Rows of single values and of 16 bytes, more of them than blocks that sum the gain's gradient, and a row beyond what
  // shared memory holds.
  const auto [T, D] = GENERATE(
      table<int64_t, int64_t>({{1, 7}, {700, 7}, {1, 520}, {700, 520}, {300, 4096}, {540, 13000}, {2, 13001}}));
  std::mt19937_64 random{1};
  const Array x = activations(dtype, draw(random, dtype, T * D)), gain = activations(dtype, draw(random, dtype, D));
  const auto forward =
      compare({x, gain, x, fp32(Doubles(size_t(T)))}, [&, T = T, D = D](WtStream stream, const Pointers& p) {
        return wt_rmsnorm_forward(stream, dtype, p[0], p[1], 1e-5f, T, D, p[2], static_cast<float*>(p[3]));
      });
  const Array dy = activations(dtype, draw(random, dtype, T * D));
  const std::vector<Array> arrays = {dy, x, gain, forward[3], x, fp32(Doubles(size_t(D), 1))};
  const Call backward = [&, T = T, D = D](WtStream stream, const Pointers& p) {
    return wt_rmsnorm_backward(stream, dtype, p[0], p[1], p[2], static_cast<float*>(p[3]), T, D, p[4],
                               static_cast<float*>(p[5]));
  };
  compare(arrays, backward, 4);  // sums over 700 rows in another order
}

TEST_CASE("CUDA: rope") {
  if (no_gpu()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const int64_t B = 2, S = 65, H = 4, KV = 2, hd = GENERATE(40, 64), n = B * S * hd;
  std::mt19937_64 random{2};
  std::vector<float> cosines(size_t(S * hd / 2)), sines = cosines;
  const Doubles frequencies = reference::rope_frequencies(hd, 1e4);
  REQUIRE(wt_rope_table(S, hd, frequencies.data(), 1, cosines.data(), sines.data()) == WT_OK);
  const Array qkv = activations(dtype, draw(random, dtype, n * (H + 2 * KV)));
  const Array q = activations(dtype, draw(random, dtype, n * H)), k = activations(dtype, draw(random, dtype, n * KV));
  const std::vector<Array> arrays = {qkv, fp32(doubles(cosines)), fp32(doubles(sines)), q, k, k};
  compare(arrays, [&](WtStream stream, const Pointers& p) {
    return wt_rope_split_forward(stream, dtype, p[0], static_cast<float*>(p[1]), static_cast<float*>(p[2]), B, S, H, KV,
                                 hd, p[3], p[4], p[5]);
  });
  compare(arrays, [&](WtStream stream, const Pointers& p) {
    return wt_rope_split_backward(stream, dtype, p[3], p[4], p[5], static_cast<float*>(p[1]), static_cast<float*>(p[2]),
                                  B, S, H, KV, hd, p[0]);
  });
}

TEST_CASE("CUDA: router, sort, permute, combine") {
  if (no_gpu()) return;
  struct Shape {
    int64_t T, E, k, D;
  };
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  // Rows of single values, of 16 bytes, and of more of them than a block has threads.
  const auto [T, E, k, D] = GENERATE(Shape{1500, 16, 4, 130}, Shape{1500, 16, 4, 136}, Shape{1, 3, 1, 130},
                                     Shape{70, 65, 2, 2560}, Shape{40, 5, 5, 2056}, Shape{0, 4, 2, 130});
  const bool one_takes_all = GENERATE(false, true);
  const int64_t N = T * k;
  std::mt19937_64 random{3};
  Doubles logits = draw(random, WT_FP32, T * E, 2);
  for (int64_t t = 0; one_takes_all && t < T; ++t) logits[size_t(t * E + 2)] = 50;
  const auto f = [](void* p) { return static_cast<float*>(p); };
  const auto ints = [](void* p) { return static_cast<int64_t*>(p); };
  const Array row_ints = int64s(std::vector<int64_t>(size_t(N))), expert_ints = int64s(std::vector<int64_t>(size_t(E)));
  const Array row_floats = fp32(Doubles(size_t(N)));

  const WtRouterSpec spec{T, E, k, std::max<int64_t>(1, T), WT_SOFTMAX, 1, 1, 1, true, 1, false};
  const auto routed = compare({fp32(logits), fp32(logits), row_floats, row_ints}, [&](WtStream stream,
                                                                                      const Pointers& p) {
    return wt_router_forward(stream, spec, f(p[0]), nullptr, ints(p[3]), f(p[1]), f(p[2]), nullptr, nullptr, nullptr);
  });
  const Array weights = routed[2], index = routed[3];

  std::vector<int64_t> slots(static_cast<size_t>(E));
  for (int64_t e = 0; e < E; ++e) slots[size_t(e)] = E - 1 - e;
  const auto sorted =
      compare({index, int64s(slots), row_ints, row_ints, expert_ints}, [&, E = E](WtStream stream, const Pointers& p) {
        return wt_sort_by_expert(stream, ints(p[0]), ints(p[1]), N, E, ints(p[2]), ints(p[3]), ints(p[4]));
      });
  const Array order = sorted[2], inverse = sorted[3];
  const Array x = activations(dtype, draw(random, dtype, T * D)), rows = activations(dtype, draw(random, dtype, N * D));
  compare({x, order, rows}, [&, T = T, k = k, D = D](WtStream stream, const Pointers& p) {
    return wt_permute_forward(stream, dtype, p[0], ints(p[1]), T, k, D, p[2]);
  });
  compare({rows, order, rows}, [&, D = D](WtStream stream, const Pointers& p) {
    return wt_gather_rows(stream, dtype, p[0], ints(p[1]), N, N, D, p[2]);
  });
  const int accumulate = GENERATE(0, 1);
  compare({rows, inverse, x}, [&, T = T, k = k, D = D](WtStream stream, const Pointers& p) {
    return wt_permute_backward(stream, dtype, p[0], ints(p[1]), T, k, D, accumulate, p[2]);
  });
  compare({rows, inverse, weights, x, x}, [&, T = T, k = k, D = D](WtStream stream, const Pointers& p) {
    return wt_combine_forward(stream, dtype, p[0], ints(p[1]), f(p[2]), accumulate ? p[3] : nullptr, T, k, D, p[4]);
  });
  compare(
      {x, rows, inverse, weights, rows, row_floats},
      [&, T = T, k = k, D = D](WtStream stream, const Pointers& p) {
        return wt_combine_backward(stream, dtype, p[0], p[1], ints(p[2]), f(p[3]), T, k, D, p[4], f(p[5]));
      },
      D > 130 ? 16 : 4);  // a dot of so many terms, which may cancel
}

TEST_CASE("CUDA: router variants, their sums and gradients") {
  if (no_gpu()) return;
  struct Variant {
    int64_t T, E, k, sequence, groups, top_groups;
  };
  const auto [T, E, k, sequence, groups, top_groups] =
      GENERATE(Variant{1500, 16, 4, 500, 1, 1}, Variant{70, 65, 2, 7, 13, 3}, Variant{1, 3, 1, 1, 1, 1},
               Variant{64, 256, 8, 64, 8, 4}, Variant{40, 5, 5, 1, 5, 5}, Variant{9, 512, 40, 3, 8, 4},
               Variant{6, 1000, 6, 2, 500, 9}, Variant{100, 64, 8, 50, 8, 3}, Variant{70, 24, 9, 35, 4, 3});
  const WtRouterScore score = GENERATE(WT_SOFTMAX, WT_SIGMOID);
  const int normalize = GENERATE(0, 1), group_best = GENERATE(1, 2);
  const std::string rows = GENERATE("random", "equal", "one takes all", "NaN");
  const int64_t S = T / sequence;
  std::mt19937_64 random{8};
  Doubles logits = draw(random, WT_FP32, T * E, 2);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = std::round(64 * logits[i]) / 64;  // equal, or apart by more than the two sides' rounding
    if (rows == "equal") logits[i] = 0.5;
    if (rows == "one takes all" && int64_t(i) % E == E - 1) logits[i] = 50;
  }
  const auto f = [](void* p) { return static_cast<float*>(p); };
  const auto ints = [](void* p) { return static_cast<int64_t*>(p); };
  const auto fp64 = [](int64_t n) { return Array{Kind::fp64, std::vector<unsigned char>(size_t(n) * 8)}; };
  const Array row_ints = int64s(std::vector<int64_t>(size_t(T * k))), row_floats = fp32(Doubles(size_t(T * k)));
  const Array expert_ints = int64s(std::vector<int64_t>(size_t(S * E)));
  const WtRouterSpec spec{T, E, k, sequence, score, groups, top_groups, group_best, normalize, 2.5f, false};
  const Array bias = fp32(rows == "equal" ? Doubles(size_t(E)) : draw(random, WT_FP32, E, 0.1));
  const Call forward = [&](WtStream stream, const Pointers& p) {
    return wt_router_forward(stream, spec, f(p[0]), f(p[1]), ints(p[2]), f(p[3]), f(p[4]), ints(p[5]),
                             static_cast<double*>(p[6]), static_cast<double*>(p[7]));
  };
  if (rows == "NaN") {  // no distance to compare: the choice alone
    Array nan = fp32(logits);
    const float value = NAN;
    std::memcpy(&nan.bytes[size_t(T / 2 * E) * 4], &value, 4);
    const std::vector<Array> arrays = {nan,        bias,        row_ints,    fp32(logits),
                                       row_floats, expert_ints, fp64(S * E), fp64(S)};
    const auto expected = on_cpu(arrays, forward), found = on_gpu(arrays, forward);
    CHECK(found[2].bytes == expected[2].bytes);
    CHECK(found[5].bytes == expected[5].bytes);
    CHECK(std::isnan(unpack(WT_FP32, found[4].bytes)[size_t(T / 2 * k)]));
    return;
  }
  const auto routed =
      compare({fp32(logits), bias, row_ints, fp32(logits), row_floats, expert_ints, fp64(S * E), fp64(S)}, forward, 4);
  const Array dweights = fp32(draw(random, WT_FP32, T * k)), dshares = fp32(draw(random, WT_FP32, S * E));
  const Call backward = [&](WtStream stream, const Pointers& p) {
    return wt_router_backward(stream, spec, f(p[0]), f(p[1]), ints(p[2]), f(p[3]), f(p[4]), 0.1f, f(p[5]));
  };
  compare({dweights, routed[3], routed[2], dshares, fp32(logits), fp32(logits)}, backward, 4);
}

TEST_CASE("CUDA: the router by given choices, with groups and no bias, with none of its sums") {
  if (no_gpu()) return;
  const auto [T, E, k, groups] = GENERATE(
      table<int64_t, int64_t, int64_t, int64_t>({{1500, 16, 4, 4}, {70, 65, 2, 13}, {1, 3, 1, 1}, {33, 40, 11, 5}}));
  const WtRouterScore score = GENERATE(WT_SOFTMAX, WT_SIGMOID);
  const bool given = GENERATE(false, true), sums = GENERATE(false, true);
  std::mt19937_64 random{11};
  Doubles logits = draw(random, WT_FP32, T * E, 2);
  for (double& value : logits) value = std::round(64 * value) / 64;
  std::vector<int64_t> choices(size_t(T * k));
  for (int64_t t = 0; t < T; ++t)
    for (int64_t c = 0; c < k; ++c) choices[size_t(t * k + c)] = (7 * t + c) % E;
  const auto f = [](void* p) { return static_cast<float*>(p); };
  const auto ints = [](void* p) { return static_cast<int64_t*>(p); };
  const auto fp64s = [](void* p) { return static_cast<double*>(p); };
  const WtRouterSpec spec{T, E, k, T, score, groups, std::min<int64_t>(2, groups), 1, 1, 1, given};
  const Array row_floats = fp32(Doubles(size_t(T * k))), expert_ints = int64s(std::vector<int64_t>(size_t(E)));
  const Array shares{Kind::fp64, std::vector<unsigned char>(size_t(E) * 8)},
      square{Kind::fp64, std::vector<unsigned char>(8)};
  const auto routed = compare(
      {fp32(logits), int64s(choices), fp32(logits), row_floats, expert_ints, shares, square},
      [&](WtStream stream, const Pointers& p) {
        return wt_router_forward(stream, spec, f(p[0]), nullptr, ints(p[1]), f(p[2]), f(p[3]),
                                 sums ? ints(p[4]) : nullptr, sums ? fp64s(p[5]) : nullptr,
                                 sums ? fp64s(p[6]) : nullptr);
      },
      4);
  if (given) CHECK(routed[1].bytes == int64s(choices).bytes);
  compare(
      {fp32(draw(random, WT_FP32, T * k)), routed[2], routed[1], fp32(logits)},
      [&](WtStream stream, const Pointers& p) {
        return wt_router_backward(stream, spec, f(p[0]), f(p[1]), ints(p[2]), nullptr, nullptr, 0, f(p[3]));
      },
      4);
}

TEST_CASE("CUDA: a router of more than 1024 experts is refused") {
  if (no_gpu()) return;
  const WtRouterSpec spec{1, 1025, 1, 1, WT_SOFTMAX, 1, 1, 1, true, 1, false};
  float* memory = nullptr;
  REQUIRE(cudaMalloc(&memory, 4 * 4096) == cudaSuccess);
  CHECK(wt_router_forward({0, nullptr}, spec, memory, nullptr, reinterpret_cast<int64_t*>(memory), memory, memory,
                          nullptr, nullptr, nullptr) != WT_OK);
  CHECK(std::string(wt_kernel_error()).find("1024") != std::string::npos);
  cudaFree(memory);
}

TEST_CASE("CUDA: swiglu, cross-entropy, adamw") {
  if (no_gpu()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const int64_t R = 33, F = GENERATE(71, 72, 9000);
  std::mt19937_64 random{4};
  const Array gate_up = activations(dtype, draw(random, dtype, R * 2 * F, 3));
  const Array act = activations(dtype, draw(random, dtype, R * F));
  compare({gate_up, act},
          [&](WtStream stream, const Pointers& p) { return wt_swiglu_forward(stream, dtype, p[0], R, F, p[1]); });
  compare({act, gate_up, gate_up}, [&](WtStream stream, const Pointers& p) {
    return wt_swiglu_backward(stream, dtype, p[0], p[1], R, F, p[2]);
  });
  const Array loss{Kind::fp64, std::vector<unsigned char>(8)};
  std::vector<int64_t> target(size_t(R), 2 * F - 1);
  target[3] = -100;
  compare({gate_up, int64s(target), loss}, [&](WtStream stream, const Pointers& p) {
    return wt_cross_entropy_forward_backward(stream, dtype, p[0], static_cast<int64_t*>(p[1]), R, 2 * F, 0.5f,
                                             static_cast<double*>(p[2]));
  });
  const int64_t n = 1000 + F % 2;
  const Array p = fp32(draw(random, WT_FP32, n)), zero = fp32(Doubles(size_t(n))), g = fp32(draw(random, WT_FP32, n));
  compare({p, zero, zero, g}, [&](WtStream stream, const Pointers& at) {
    const auto f = [&](size_t i) { return static_cast<float*>(at[i]); };
    return wt_adamw(stream, f(0), f(1), f(2), f(3), n, 1e-2, 0.9, 0.95, 1e-8, 0.1, 3, 0.5f);
  });
}

TEST_CASE("CUDA: block quantisation") {
  if (no_gpu()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const WtBlockFormat format = GENERATE(WT_INT8, WT_FP8);
  const int64_t T = GENERATE(1, 90), D = GENERATE(3, 128, 300, 1024), blocks = (D + 127) / 128;
  std::mt19937_64 random{5};
  Doubles values = draw(random, dtype, T * D, 3);
  std::fill(values.begin(), values.begin() + std::min<int64_t>(D, 128), 0.0);
  const Array x = activations(dtype, values), q{Kind::bytes, std::vector<unsigned char>(size_t(T * D))};
  const auto f = [](void* p) { return static_cast<float*>(p); };
  const auto packed = compare({x, q, fp32(Doubles(size_t(T * blocks)))}, [&](WtStream stream, const Pointers& p) {
    return wt_quantize_blocks(stream, dtype, format, p[0], T, D, p[1], f(p[2]));
  });
  compare({packed[1], packed[2], x}, [&](WtStream stream, const Pointers& p) {
    return wt_dequantize_blocks(stream, dtype, format, p[0], f(p[1]), T, D, p[2]);
  });
}

TEST_CASE("CUDA: a device that is not the current one is refused") {
  if (no_gpu()) return;
  float x[2] = {}, y[1] = {};
  CHECK(wt_swiglu_forward({99, nullptr}, WT_FP32, x, 1, 1, y) == WT_INVALID_ARGUMENT);
}
