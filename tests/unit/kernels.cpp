// The CPU kernels against double-precision references, each on every instruction set of this machine and both dtypes.
// Sizes straddle the 16 lanes of a block. Gradients are checked against finite differences of the references.
#include "kernels/kernels.h"

#include <catch2/catch.hpp>

#include "tests/support/kernel_arrays.hpp"
#include "tests/support/kernel_reference.hpp"

using namespace wt::kernel_test;
namespace reference = wt::reference;

namespace {

const WtStream kCpu{-1, nullptr};

/// Runs the case once for each instruction set that this machine has; false where it has not.
bool use_isa() { return wt_kernel_set_isa(GENERATE("avx512", "avx2", "baseline")) == WT_OK; }

}  // namespace

TEST_CASE("rmsnorm and its gradient") {
  if (!use_isa()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const int64_t T = 3, D = GENERATE(1, 15, 16, 37);
  std::mt19937_64 random{uint64_t(D)};
  const Doubles x = draw(random, dtype, T * D), gain = draw(random, dtype, D), dy = draw(random, dtype, T * D);
  const auto px = pack(dtype, x), pgain = pack(dtype, gain), pdy = pack(dtype, dy);
  auto py = px, pdx = px;
  std::vector<float> rstd(T), dgain(size_t(D), 0.5f);

  REQUIRE(wt_rmsnorm_forward(kCpu, dtype, px.data(), pgain.data(), 1e-2f, T, D, py.data(), rstd.data()) == WT_OK);
  CHECK(distance(unpack(dtype, py), reference::rmsnorm(x, gain, 1e-2f)) < tolerance(dtype));

  REQUIRE(wt_rmsnorm_backward(kCpu, dtype, pdy.data(), px.data(), pgain.data(), rstd.data(), T, D, pdx.data(),
                              dgain.data()) == WT_OK);
  const auto by_x = [&](const Doubles& at) { return reference::rmsnorm(at, gain, 1e-2f); };
  const auto by_gain = [&](const Doubles& at) { return reference::rmsnorm(x, at, 1e-2f); };
  CHECK(distance(unpack(dtype, pdx), reference::numeric_gradient(by_x, x, dy)) < tolerance(dtype));
  Doubles expected = reference::numeric_gradient(by_gain, gain, dy);
  for (double& value : expected) value += 0.5;  // accumulated into what was there
  CHECK(distance(doubles(dgain), expected) < tolerance(WT_FP32));
}

TEST_CASE("the gradient of rmsnorm's gain sums every row once, however many runs of rows there are") {
  if (!use_isa()) return;
  const int64_t T = GENERATE(255, 256, 257, 513), D = 37;
  std::mt19937_64 random{uint64_t(T)};
  Doubles x = draw(random, WT_FP32, T * D), gain = draw(random, WT_FP32, D), dy = draw(random, WT_FP32, T * D);
  for (Doubles* each : {&x, &dy})
    for (double& value : *each) value = std::round(2 * value);  // sums of whole numbers are exact
  const auto px = pack(WT_FP32, x), pgain = pack(WT_FP32, gain);
  auto dx = pack(WT_FP32, dy);
  const std::vector<float> rstd(size_t(T), 0.75f);
  std::vector<float> dgain(size_t(D), 0.5f);
  REQUIRE(wt_rmsnorm_backward(kCpu, WT_FP32, dx.data(), px.data(), pgain.data(), rstd.data(), T, D, dx.data(), dgain.data()) == WT_OK);
  Doubles expected(size_t(D), 0.5);
  for (size_t i = 0; i < x.size(); ++i) expected[i % size_t(D)] += dy[i] * x[i] * 0.75;
  CHECK(doubles(dgain) == expected);
}

TEST_CASE("rope splits and rotates, and its gradient rotates back") {
  if (!use_isa()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const int64_t B = 2, S = 3, H = 2, KV = 1, hd = GENERATE(2, 38);
  std::mt19937_64 random{uint64_t(hd)};
  const int64_t n = B * S * hd;
  const Doubles qkv = draw(random, dtype, n * (H + 2 * KV)), dout = draw(random, dtype, n * (H + 2 * KV));
  std::vector<float> cos(size_t(S * hd / 2)), sin = cos;
  const Doubles frequencies = reference::rope_frequencies(hd, 100);
  REQUIRE(wt_rope_table(S, hd, frequencies.data(), 1.25, cos.data(), sin.data()) == WT_OK);

  const auto pqkv = pack(dtype, qkv), pdout = pack(dtype, dout);
  auto out = pqkv, dqkv = pqkv;
  const int64_t width = dtype == WT_FP32 ? 4 : 2, k_at = n * H * width, v_at = n * (H + KV) * width;
  REQUIRE(wt_rope_split_forward(kCpu, dtype, pqkv.data(), cos.data(), sin.data(), B, S, H, KV, hd, out.data(),
                                out.data() + k_at, out.data() + v_at) == WT_OK);
  const auto f = [&](const Doubles& at) { return reference::rope_split(at, B, S, H, KV, hd, 100, 1.25); };
  CHECK(distance(unpack(dtype, out), f(qkv)) < tolerance(dtype));

  REQUIRE(wt_rope_split_backward(kCpu, dtype, pdout.data(), pdout.data() + k_at, pdout.data() + v_at, cos.data(),
                                 sin.data(), B, S, H, KV, hd, dqkv.data()) == WT_OK);
  CHECK(distance(unpack(dtype, dqkv), reference::numeric_gradient(f, qkv, dout)) < tolerance(dtype));
}

TEST_CASE("swiglu and its gradient") {
  if (!use_isa()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const int64_t R = 2, F = GENERATE(1, 16, 37);
  std::mt19937_64 random{uint64_t(F)};
  const Doubles gate_up = draw(random, dtype, R * 2 * F, 3), dact = draw(random, dtype, R * F);
  const auto pgate_up = pack(dtype, gate_up), pdact = pack(dtype, dact);
  auto act = pdact, dgate_up = pgate_up;

  REQUIRE(wt_swiglu_forward(kCpu, dtype, pgate_up.data(), R, F, act.data()) == WT_OK);
  CHECK(distance(unpack(dtype, act), reference::swiglu(gate_up, size_t(F))) < tolerance(dtype));
  REQUIRE(wt_swiglu_backward(kCpu, dtype, pdact.data(), dgate_up.data(), R, F, dgate_up.data()) == WT_OK);  // in place
  const auto f = [&](const Doubles& at) { return reference::swiglu(at, size_t(F)); };
  CHECK(distance(unpack(dtype, dgate_up), reference::numeric_gradient(f, gate_up, dact)) < tolerance(dtype));
}

TEST_CASE("swiglu of gates far from zero: the gate itself or nothing, and gradients of one or nothing") {
  if (!use_isa()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const Doubles gate = {-1e30, -128, -88, -20, 16, 17, 17.5, 20, 88, 128, 1024, 9984, 99840, 1e6, 1e30};
  const int64_t F = int64_t(gate.size());
  Doubles gate_up = gate;
  gate_up.resize(2 * gate.size(), 1.0);
  const auto pgate_up = pack(dtype, gate_up), ones = pack(dtype, Doubles(gate.size(), 1.0));
  auto act = ones, dgate_up = pgate_up;
  REQUIRE(wt_swiglu_forward(kCpu, dtype, pgate_up.data(), 1, F, act.data()) == WT_OK);
  REQUIRE(wt_swiglu_backward(kCpu, dtype, ones.data(), pgate_up.data(), 1, F, dgate_up.data()) == WT_OK);
  const Doubles acts = unpack(dtype, act), gradients = unpack(dtype, dgate_up), gates = unpack(dtype, pgate_up);
  for (size_t i = 0; i < gate.size(); ++i) {
    CAPTURE(gate[i]);
    const double g = gates[i], s = 1 / (1 + std::exp(-g)), silu = g < -100 ? 0 : g * s;
    CHECK(acts[i] == Approx(silu).epsilon(tolerance(dtype)).margin(1e-30));
    CHECK(gradients[i] == Approx(s + silu * (1 - s)).epsilon(tolerance(dtype)).margin(1e-30));
    CHECK(gradients[i + gate.size()] == Approx(silu).epsilon(tolerance(dtype)).margin(1e-30));
  }
}

TEST_CASE("cross-entropy: loss, gradient in place, ignored rows, huge logits") {
  if (!use_isa()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const int64_t T = 4, V = GENERATE(1, 16, 53);
  std::mt19937_64 random{uint64_t(V)};
  Doubles logits = draw(random, dtype, T * V, 4);
  for (int64_t v = 0; v < V; ++v) logits[size_t(v)] *= 1024;  // a power of two: still exact
  const std::vector<int64_t> target = {V - 1, 0, -100, V / 2};
  auto gradient = pack(dtype, logits);
  double loss = 10;
  REQUIRE(wt_cross_entropy_forward_backward(kCpu, dtype, gradient.data(), target.data(), T, V, 0.25f, &loss) == WT_OK);

  // Row 0 has logits of thousands: its loss is exact to fp32 of those, and its probabilities are 0 and 1.
  const Doubles losses = reference::cross_entropy(logits, target, size_t(V));
  CHECK(std::isfinite(loss));
  if (std::isfinite(losses[0])) CHECK(loss == Approx(10 + losses[0] + losses[1] + losses[3]).epsilon(2e-6));
  Doubles expected = reference::softmax(logits, size_t(V));
  for (int64_t t = 0; t < T; ++t) {
    if (target[size_t(t)] >= 0) expected[size_t(t * V + target[size_t(t)])] -= 1;
    for (int64_t v = 0; v < V; ++v) expected[size_t(t * V + v)] *= target[size_t(t)] < 0 ? 0 : 0.25;
  }
  CHECK(distance(unpack(dtype, gradient), expected) < tolerance(dtype));
  const Doubles small(logits.begin() + V, logits.end());
  const auto f = [&](const Doubles& at) { return reference::cross_entropy(at, {0, -100, V / 2}, size_t(V)); };
  const Doubles numeric = reference::numeric_gradient(f, small, {0.25, 0.25, 0.25});
  CHECK(distance(Doubles(expected.begin() + V, expected.end()), numeric) < 1e-8);
}

TEST_CASE("adamw follows its formula over several steps") {
  if (!use_isa()) return;
  const int64_t n = 37;
  std::mt19937_64 random{1};
  Doubles p = draw(random, WT_FP32, n), m(n, 0), v(n, 0);
  std::vector<float> fp = floats(p), fm(n, 0), fv(n, 0);
  for (int step = 1; step <= 5; ++step) {
    const Doubles g = draw(random, WT_FP32, n);
    const auto fg = floats(g);
    REQUIRE(wt_adamw(kCpu, fp.data(), fm.data(), fv.data(), fg.data(), n, 1e-2, 0.9, 0.999, 1e-8, 0.1, step, 0.5f) ==
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

TEST_CASE("bf16 results round to nearest even and keep NaN") {
  if (!use_isa()) return;
  // A combine with weight w is a rounding of x * w: 1 + 2^-8 is half-way and goes to the even 1; 1 + 3 * 2^-8 to 1 +
  // 2^-6.
  const uint16_t one = 0x3f80, nan = 0x7f81;  // the lowest NaN payloads
  const int64_t inverse = 0;
  const auto times = [&](float weight, uint16_t x) {
    uint16_t out = 0;
    REQUIRE(wt_combine_forward(kCpu, WT_BF16, &x, &inverse, &weight, nullptr, 1, 1, 1, &out) == WT_OK);
    return out;
  };
  CHECK(times(1 + 1 / 256.0f, one) == 0x3f80);
  CHECK(times(1 + 3 / 256.0f, one) == 0x3f82);
  CHECK(times(1 + 1.001f / 256.0f, one) == 0x3f81);
  CHECK(times(3.4e38f, one) == 0x7f80);  // beyond the largest bf16 by more than half a unit
  CHECK((times(1, nan) & 0x7fff) > 0x7f80);
  float all_ones;  // a NaN that rounding up would carry into minus zero
  const uint32_t bits = 0x7fffffff;
  std::memcpy(&all_ones, &bits, 4);
  CHECK((times(all_ones, one) & 0x7fff) > 0x7f80);
}

TEST_CASE("bad arguments are refused with a message and nothing is written") {
  std::vector<float> x(6, 1), y(6, 7);
  const std::vector<int64_t> index = {0, 2};
  CHECK(wt_gather_rows(kCpu, WT_FP32, x.data(), index.data(), 2, 2, 3, y.data()) == WT_INVALID_ARGUMENT);
  CHECK(std::string(wt_kernel_error()) == "wt_gather_rows: index[1] is 2; allowed 0 to 1; check what made this array");
  CHECK(y == std::vector<float>(6, 7));
  const double frequency = 1;
  CHECK(wt_swiglu_forward(kCpu, WT_FP32, x.data(), -1, 1, y.data()) == WT_INVALID_ARGUMENT);
  CHECK(wt_swiglu_forward(kCpu, WT_FP32, nullptr, 1, 1, y.data()) == WT_INVALID_ARGUMENT);
  CHECK(wt_swiglu_forward(kCpu, WT_FP32, nullptr, 0, 1, nullptr) == WT_OK);
  CHECK(wt_swiglu_forward(kCpu, static_cast<WtDtype>(7), x.data(), 1, 1, y.data()) == WT_INVALID_ARGUMENT);
  CHECK(wt_rope_table(1, 3, &frequency, 1, x.data(), y.data()) == WT_INVALID_ARGUMENT);
  CHECK(wt_kernel_set_isa("sse9") == WT_INVALID_ARGUMENT);
  const int64_t target = 3;
  double loss = 0;
  CHECK(wt_cross_entropy_forward_backward(kCpu, WT_FP32, x.data(), &target, 1, 3, 1, &loss) == WT_INVALID_ARGUMENT);
  CHECK(x == std::vector<float>(6, 1));
}
