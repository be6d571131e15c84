// CPU kernels that work row by row, each against its double-precision reference at shapes of the caller's: fixed ones
// in tests/unit/kernels.cpp, random ones in tests/unit/kernel_random.cpp.
#pragma once
#include <catch2/catch.hpp>

#include "tests/support/kernel_arrays.hpp"
#include "tests/support/kernel_reference.hpp"

namespace wt::kernel_test {

inline constexpr WtStream kCpu{-1, nullptr};
inline WtStream checked =
    kCpu;  ///< where the checks run kernels; a device would have to reach the checks' own arrays, as the executor does

/// Runs the case once for each instruction set that this machine has; false where it has not. Once in all on CUDA.
inline bool use_isa() {
  const std::string isa = GENERATE("avx512", "avx2", "baseline");
  return (checked.device < 0 || isa == "baseline") && wt_kernel_set_isa(isa.c_str()) == WT_OK;
}

inline Doubles row_of(const Doubles& x, int64_t row, int64_t rows) {
  const int64_t width = int64_t(x.size()) / rows;
  return {x.begin() + row * width, x.begin() + (row + 1) * width};
}

/// Rows to take finite differences of, which cost the square of a row's width: all of a few, else three with both ends.
inline std::vector<int64_t> some_rows(int64_t rows, std::mt19937_64& random) {
  if (rows > 4) return {0, int64_t(random() % uint64_t(rows)), rows - 1};
  std::vector<int64_t> all(size_t(rows), 0);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

inline void check_rmsnorm(WtDtype dtype, int64_t T, int64_t D, std::mt19937_64& random) {
  const Doubles x = draw(random, dtype, T * D), gain = draw(random, dtype, D), dy = draw(random, dtype, T * D);
  const auto px = pack(dtype, x), pgain = pack(dtype, gain), pdy = pack(dtype, dy);
  auto py = px, pdx = px;
  std::vector<float> rstd(static_cast<size_t>(T)), dgain(size_t(D), 0.5f);
  REQUIRE(wt_rmsnorm_forward(checked, dtype, px.data(), pgain.data(), 1e-2f, T, D, py.data(), rstd.data()) == WT_OK);
  CHECK(distance(unpack(dtype, py), reference::rmsnorm(x, gain, 1e-2f)) < tolerance(dtype));

  REQUIRE(wt_rmsnorm_backward(checked, dtype, pdy.data(), px.data(), pgain.data(), rstd.data(), T, D, pdx.data(),
                              dgain.data()) == WT_OK);
  const Doubles dx = unpack(dtype, pdx);
  const auto f = [&](const Doubles& at) { return reference::rmsnorm(at, gain, 1e-2f); };
  for (int64_t t : some_rows(T, random))
    CHECK(distance(row_of(dx, t, T), reference::numeric_gradient(f, row_of(x, t, T), row_of(dy, t, T))) <
          tolerance(dtype));
  const Doubles slope = reference::rmsnorm(x, Doubles(size_t(D), 1), 1e-2f);  // y is linear in the gain
  Doubles expected(size_t(D), 0.5);                                           // accumulated into what was there
  for (size_t i = 0; i < x.size(); ++i) expected[i % size_t(D)] += dy[i] * slope[i];
  const bool cancels = T > 16;
  CHECK((cancels ? error_of_sums : distance)(doubles(dgain), expected) < tolerance(WT_FP32));
}

inline void check_rope(WtDtype dtype, int64_t B, int64_t S, int64_t H, int64_t KV, int64_t hd,
                       std::mt19937_64& random) {
  const int64_t n = B * S * hd;
  const Doubles qkv = draw(random, dtype, n * (H + 2 * KV)), dout = draw(random, dtype, n * (H + 2 * KV));
  std::vector<float> cos(size_t(S * hd / 2)), sin = cos;
  const Doubles frequencies = reference::rope_frequencies(hd, 100);
  REQUIRE(wt_rope_table(S, hd, frequencies.data(), 1.25, cos.data(), sin.data()) == WT_OK);
  const auto pqkv = pack(dtype, qkv), pdout = pack(dtype, dout);
  auto out = pqkv, dqkv = pqkv;
  const int64_t width = dtype == WT_FP32 ? 4 : 2, k_at = n * H * width, v_at = n * (H + KV) * width;
  REQUIRE(wt_rope_split_forward(checked, dtype, pqkv.data(), cos.data(), sin.data(), B, S, H, KV, hd, out.data(),
                                out.data() + k_at, out.data() + v_at) == WT_OK);
  CHECK(distance(unpack(dtype, out), reference::rope_split(qkv, B, S, H, KV, hd, 100, 1.25)) < tolerance(dtype));
  REQUIRE(wt_rope_split_backward(checked, dtype, pdout.data(), pdout.data() + k_at, pdout.data() + v_at, cos.data(),
                                 sin.data(), B, S, H, KV, hd, dqkv.data()) == WT_OK);
  CHECK(distance(unpack(dtype, dqkv), reference::rope_split_backward(dout, B, S, H, KV, hd, 100, 1.25)) <
        tolerance(dtype));
}

inline void check_swiglu(WtDtype dtype, int64_t R, int64_t F, std::mt19937_64& random) {
  const Doubles gate_up = draw(random, dtype, R * 2 * F, 3), dact = draw(random, dtype, R * F);
  const auto pgate_up = pack(dtype, gate_up), pdact = pack(dtype, dact);
  auto act = pdact, pdgate_up = pgate_up;
  REQUIRE(wt_swiglu_forward(checked, dtype, pgate_up.data(), R, F, act.data()) == WT_OK);
  CHECK(distance(unpack(dtype, act), reference::swiglu(gate_up, size_t(F))) < tolerance(dtype));
  REQUIRE(wt_swiglu_backward(checked, dtype, pdact.data(), pdgate_up.data(), R, F, pdgate_up.data()) ==
          WT_OK);  // in place
  const Doubles dgate_up = unpack(dtype, pdgate_up);
  const auto f = [&](const Doubles& at) { return reference::swiglu(at, size_t(F)); };
  for (int64_t r : some_rows(R, random))
    CHECK(distance(row_of(dgate_up, r, R), reference::numeric_gradient(f, row_of(gate_up, r, R), row_of(dact, r, R))) <
          tolerance(dtype));
}

inline void check_cross_entropy(WtDtype dtype, const Doubles& logits, const std::vector<int64_t>& target, int64_t V) {
  auto gradient = pack(dtype, logits);
  std::vector<double> loss{10};
  REQUIRE(wt_cross_entropy_forward_backward(checked, dtype, gradient.data(), target.data(), int64_t(target.size()), V,
                                            0.25f, loss.data()) == WT_OK);
  const Doubles losses = reference::cross_entropy(logits, target, size_t(V));
  const double expected = std::accumulate(losses.begin(), losses.end(), 10.0);
  CHECK(std::isfinite(loss[0]));
  if (std::isfinite(expected)) CHECK(loss[0] == Approx(expected).epsilon(2e-6));
  CHECK(distance(unpack(dtype, gradient), reference::cross_entropy_gradient(logits, target, size_t(V), 0.25)) <
        tolerance(dtype));
}

inline void check_adamw(int64_t n, int steps, std::mt19937_64& random) {
  Doubles p = draw(random, WT_FP32, n), m(size_t(n), 0), v(size_t(n), 0);
  std::vector<float> fp = floats(p), fm(size_t(n), 0), fv(size_t(n), 0);
  for (int step = 1; step <= steps; ++step) {
    const Doubles g = draw(random, WT_FP32, n);
    const auto fg = floats(g);
    REQUIRE(wt_adamw(checked, fp.data(), fm.data(), fv.data(), fg.data(), n, 1e-2, 0.9, 0.999, 1e-8, 0.1, step, 0.5f) ==
            WT_OK);
    for (size_t i = 0; i < size_t(n); ++i) {
      m[i] = 0.9 * m[i] + 0.1 * 0.5 * g[i];
      v[i] = 0.999 * v[i] + 0.001 * 0.25 * g[i] * g[i];
      p[i] -= 1e-2 * 0.1 * p[i];
      p[i] -= 1e-2 * m[i] / (1 - std::pow(0.9, step)) / (std::sqrt(v[i] / (1 - std::pow(0.999, step))) + 1e-8);
    }
  }
  CHECK(distance(doubles(fp), p) < 1e-6);
  CHECK(distance(doubles(fm), m) < 1e-6);
  CHECK(distance(doubles(fv), v) < 1e-6);
}

inline void check_lion(int64_t n, int steps, std::mt19937_64& random) {
  Doubles p = draw(random, WT_FP32, n), m(size_t(n), 0);
  std::vector<float> fp = floats(p), fm(size_t(n), 0);
  for (int step = 1; step <= steps; ++step) {
    const Doubles g = draw(random, WT_FP32, n);
    const auto fg = floats(g);
    REQUIRE(wt_lion(checked, fp.data(), fm.data(), fg.data(), n, 1e-2, 0.9, 0.99, 0.1, 0.5f) == WT_OK);
    for (size_t i = 0; i < size_t(n); ++i) {
      const double update = 0.9 * m[i] + 0.1 * 0.5 * g[i];
      p[i] -= 1e-2 * 0.1 * p[i];
      // Where the update is nothing but rounding its sign says nothing: the kernel's is taken.
      if (std::abs(update) > 1e-7)
        p[i] -= 1e-2 * (update > 0 ? 1 : -1);
      else
        p[i] = fp[i];
      m[i] = 0.99 * m[i] + 0.01 * 0.5 * g[i];
    }
  }
  CHECK(distance(doubles(fp), p) < 1e-6);
  CHECK(distance(doubles(fm), m) < 1e-6);
}

struct Packed {
  std::vector<unsigned char> q;
  std::vector<float> scale;
};

inline Packed quantize(WtDtype dtype, WtBlockFormat format, const Doubles& x, int64_t T) {
  const int64_t D = int64_t(x.size()) / T;
  Packed out{std::vector<unsigned char>(x.size(), 77), std::vector<float>(size_t(T * ((D + 127) / 128)), 7.0f)};
  REQUIRE(wt_quantize_blocks(checked, dtype, format, pack(dtype, x).data(), T, D, out.q.data(), out.scale.data()) ==
          WT_OK);
  return out;
}

inline Doubles dequantize(WtDtype dtype, WtBlockFormat format, const Packed& packed, int64_t T) {
  auto x = pack(dtype, Doubles(packed.q.size()));
  REQUIRE(wt_dequantize_blocks(checked, dtype, format, packed.q.data(), packed.scale.data(), T,
                               int64_t(packed.q.size()) / T, x.data()) == WT_OK);
  return unpack(dtype, x);
}

/// Blocks come back within half a step of int8, or of fp8's own steps, and their largest values as they were.
inline void check_blocks(WtDtype dtype, WtBlockFormat format, int64_t T, int64_t D, std::mt19937_64& random) {
  const Doubles x = draw(random, dtype, T * D, 3), back = dequantize(dtype, format, quantize(dtype, format, x, T), T);
  const size_t width = size_t(D);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t row = i / width, first = row * width + i % width / 128 * 128,
                 end = std::min(first + 128, (row + 1) * width);
    double top = 0;
    for (size_t j = first; j < end; ++j) top = std::max(top, std::abs(x[j]));
    const double bound = format == WT_INT8 ? top / 254 : std::max(std::abs(x[i]) / 16, top / 448 / 1024);
    CHECK(std::abs(back[i] - x[i]) <= 1.0001 * bound + (dtype == WT_BF16 ? std::abs(x[i]) / 200 : 0));
    if (std::abs(x[i]) == top) CHECK(back[i] == Approx(x[i]));
  }
}

}  // namespace wt::kernel_test
