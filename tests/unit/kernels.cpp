// The CPU kernels against double-precision references, each on every instruction set of this machine and both dtypes.
// Sizes straddle the 16 lanes of a block. Gradients are checked against finite differences of the references.
#include "kernels/kernels.h"

#include <catch2/catch.hpp>

#include "tests/fixtures/kernel_checks.hpp"

using namespace wt::kernel_test;
namespace reference = wt::reference;

TEST_CASE("rmsnorm and its gradient") {
  if (!use_isa()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const int64_t D = GENERATE(1, 15, 16, 37);
  std::mt19937_64 random{uint64_t(D)};
  check_rmsnorm(dtype, 3, D, random);
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
  REQUIRE(wt_rmsnorm_backward(checked, WT_FP32, dx.data(), px.data(), pgain.data(), rstd.data(), T, D, dx.data(),
                              dgain.data()) == WT_OK);
  Doubles expected(size_t(D), 0.5);
  for (size_t i = 0; i < x.size(); ++i) expected[i % size_t(D)] += dy[i] * x[i] * 0.75;
  CHECK(doubles(dgain) == expected);
}

TEST_CASE("rope splits and rotates, and its gradient rotates back") {
  if (!use_isa()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const int64_t hd = GENERATE(2, 38);
  std::mt19937_64 random{uint64_t(hd)};
  check_rope(dtype, 2, 3, 2, 1, hd, random);
  const Doubles qkv = draw(random, WT_FP32, 24 * hd), dout = draw(random, WT_FP32, 24 * hd);
  const auto f = [hd](const Doubles& at) { return reference::rope_split(at, 2, 3, 2, 1, hd, 100, 1.25); };
  CHECK(distance(reference::rope_split_backward(dout, 2, 3, 2, 1, hd, 100, 1.25),
                 reference::numeric_gradient(f, qkv, dout)) < 1e-8);
}

TEST_CASE("swiglu and its gradient") {
  if (!use_isa()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const int64_t F = GENERATE(1, 16, 37);
  std::mt19937_64 random{uint64_t(F)};
  check_swiglu(dtype, 2, F, random);
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
  REQUIRE(wt_swiglu_forward(checked, dtype, pgate_up.data(), 1, F, act.data()) == WT_OK);
  REQUIRE(wt_swiglu_backward(checked, dtype, ones.data(), pgate_up.data(), 1, F, dgate_up.data()) == WT_OK);
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
  check_cross_entropy(dtype, logits, target, V);  // row 0 has logits of thousands: probabilities of 0 and 1

  const Doubles small(logits.begin() + V, logits.end());
  const std::vector<int64_t> rest(target.begin() + 1, target.end());
  const auto f = [&](const Doubles& at) { return reference::cross_entropy(at, rest, size_t(V)); };
  const Doubles numeric = reference::numeric_gradient(f, small, {0.25, 0.25, 0.25});
  CHECK(distance(reference::cross_entropy_gradient(small, rest, size_t(V), 0.25), numeric) < 1e-8);
}

TEST_CASE("adamw follows its formula over several steps") {
  if (!use_isa()) return;
  std::mt19937_64 random{1};
  check_adamw(37, 5, random);
}

TEST_CASE("lion follows its formula over several steps, also where nothing moves it") {
  if (!use_isa()) return;
  std::mt19937_64 random{23};
  check_lion(37, 5, random);
  check_lion(9001, 3, random);
  std::vector<float> p{2}, m{0}, g{0};
  REQUIRE(wt_lion(checked, p.data(), m.data(), g.data(), 1, 0.5, 0.9, 0.99, 0.1, 1) == WT_OK);
  CHECK(p[0] == Approx(2 * 0.95));  // the sign of 0 is 0: the decay alone
}

TEST_CASE("bf16 results round to nearest even and keep NaN") {
  if (!use_isa()) return;
  // A combine with weight w is a rounding of x * w: 1 + 2^-8 is half-way and goes to the even 1; 1 + 3 * 2^-8 to 1 +
  // 2^-6.
  const uint16_t one = 0x3f80, nan = 0x7f81;  // the lowest NaN payloads
  const auto times = [](float weight, uint16_t x) {
    const std::vector<uint16_t> row{x};
    const std::vector<float> weights{weight};
    const std::vector<int64_t> inverse{0};
    std::vector<uint16_t> out(1);
    REQUIRE(wt_combine_forward(checked, WT_BF16, row.data(), inverse.data(), weights.data(), nullptr, 1, 1, 1,
                               out.data()) == WT_OK);
    return out[0];
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

TEST_CASE("memory that cannot be had is no bad argument") {
  const int64_t huge = int64_t{1} << 58;  // beyond any address space
  std::vector<float> x(6, 1), y(6, 7), sums(6, 7);
  CHECK(wt_rmsnorm_backward(kCpu, WT_FP32, x.data(), x.data(), x.data(), x.data(), huge, 1, y.data(), sums.data()) ==
        WT_OUT_OF_MEMORY);
  CHECK_THAT(wt_kernel_error(), Catch::Contains("no memory for") && Catch::Contains("lower T"));
  std::vector<int64_t> order(1);
  CHECK(wt_sort_by_expert(kCpu, order.data(), nullptr, 0, huge, order.data(), order.data(), nullptr) ==
        WT_OUT_OF_MEMORY);
  CHECK(y == std::vector<float>(6, 7));
  CHECK(sums == std::vector<float>(6, 7));
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
