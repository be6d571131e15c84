// Every CUDA kernel but the Hopper one (grouped_on_executor.cpp), run on the CPU: the tests of the CPU kernels,
// which are linked to this file, and here the shapes at which the CUDA kernels take other ways.
#define CATCH_CONFIG_EXTERNAL_INTERFACES  // for a listener
#include <catch2/catch.hpp>
#include <cstdlib>

#include "kernels/kernels.h"
#include "tests/fixtures/cuda_executor/cuda_executor.hpp"
#include "tests/fixtures/routing_checks.hpp"

using namespace wt::kernel_test;
namespace reference = wt::reference;

namespace {

/// A case runs in the same order of warps, with others before it or alone; in another with WT_RANDOM_SEED=N.
struct SameOrder : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo&) override {
    checked = {0, nullptr};
    const char* asked = std::getenv("WT_RANDOM_SEED");
    wt::cuda_executor::set_seed(asked ? std::strtoull(asked, nullptr, 10) : 1);
  }
};

}  // namespace

CATCH_REGISTER_LISTENER(SameOrder)

TEST_CASE("on the executor: rmsnorm of more rows than partial sums, and of rows that shared memory cannot hold") {
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  std::mt19937_64 random{1};
  check_rmsnorm(dtype, 600, 7, random);

  const int64_t T = 2, D = 12100;  // too wide for finite differences: as on the CPU
  const auto x = pack(dtype, draw(random, dtype, T * D)), gain = pack(dtype, draw(random, dtype, D)),
             dy = pack(dtype, draw(random, dtype, T * D));
  const std::vector<float> rstd(size_t(T), 0.75f);
  const auto gradients = [&](WtStream where) {
    auto dx = x;
    std::vector<float> dgain(size_t(D), 0.5f);
    REQUIRE(wt_rmsnorm_backward(where, dtype, dy.data(), x.data(), gain.data(), rstd.data(), T, D, dx.data(),
                                dgain.data()) == WT_OK);
    return std::pair(unpack(dtype, dx), doubles(dgain));
  };
  const auto [dx, dgain] = gradients(checked);
  const auto [expected_dx, expected_dgain] = gradients(kCpu);
  CHECK(distance(dx, expected_dx) < 2 * tolerance(dtype));
  CHECK(distance(dgain, expected_dgain) < tolerance(WT_FP32));
}

TEST_CASE("on the executor: routers of every number of lanes and registers, and more choices than lanes") {
  const auto [shape, groups, top_groups] = GENERATE(table<Shape, int64_t, int64_t>({{{130, 16, 4}, 1, 1},
                                                                                    {{70, 30, 9}, 5, 3},
                                                                                    {{65, 64, 8}, 8, 3},
                                                                                    {{5, 128, 20}, 4, 2},
                                                                                    {{3, 256, 8}, 8, 4},
                                                                                    {{3, 300, 40}, 1, 1},
                                                                                    {{2, 1000, 6}, 500, 9}}));
  const auto [T, E, k] = shape;
  std::mt19937_64 random{uint64_t(E)};
  WtRouterSpec spec = plain(shape, true);
  spec.score = GENERATE(WT_SOFTMAX, WT_SIGMOID), spec.groups = groups, spec.top_groups = top_groups;
  const Doubles logits = draw(random, WT_FP32, T * E);
  const auto bias = floats(draw(random, WT_FP32, E, 0.1));
  const Routed r = route(logits, spec, bias.data());
  check_router(spec, logits, bias, r);
  check_router_gradient(spec, logits, r, true, random);

  spec.given = true;
  std::vector<int64_t> index = r.index;
  std::vector<float> scores(r.scores.size()), weights(r.weights.size());
  REQUIRE(wt_router_forward(checked, spec, floats(logits).data(), nullptr, index.data(), scores.data(), weights.data(),
                            nullptr, nullptr, nullptr) == WT_OK);
  CHECK(weights == r.weights);
}

TEST_CASE("on the executor: sorts of several chunks, by as many experts as fit") {
  const int64_t n = GENERATE(1, 1024, 2500), E = GENERATE(1, 7, 8192);
  std::mt19937_64 random{uint64_t(n + E)};
  std::vector<int64_t> index(static_cast<size_t>(n)), order(index.size()), inverse(index.size()), counts(size_t(E), 0),
      expected(size_t(E), 0);
  for (int64_t& expert : index) expert = std::uniform_int_distribution<int64_t>(0, E - 1)(random);
  for (int64_t expert : index) ++expected[size_t(expert)];
  REQUIRE(wt_sort_by_expert(checked, index.data(), nullptr, n, E, order.data(), inverse.data(), counts.data()) ==
          WT_OK);
  CHECK(counts == expected);
  CHECK(order == reference::sort_by_slot(index));
  CHECK(inverse == reference::inverse_of(order));
}

TEST_CASE("on the executor: rows of more packs than a block has threads, and of 16 bytes") {
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  std::mt19937_64 random{2};
  const Shape shape{3, 7, 6};  // more choices than combine takes at once
  const Routed r = route(draw(random, WT_FP32, 21), plain(shape, true));
  for (const int64_t D : {64, 2200, 1031}) check_moves(dtype, shape, D, r, random);
  check_swiglu(dtype, 3, 1032, random);
  check_rope(dtype, 2, 9, 4, 2, 64, random);
  const int64_t V = GENERATE(8800, 4003);
  check_cross_entropy(dtype, draw(random, dtype, 3 * V, 4), {V - 1, -100, 0}, V);
  for (const WtBlockFormat format : {WT_INT8, WT_FP8}) check_blocks(dtype, format, 3, 256, random);
}

TEST_CASE("on the executor: arrays that begin between multiples of 16 bytes") {
  const int64_t R = 6, D = 16, n = R * D;
  std::mt19937_64 random{3};
  const auto x = floats(draw(random, WT_FP32, 2 * n + 1)), y = floats(draw(random, WT_FP32, n + 1));
  const std::vector<int64_t> order = {3, 0, 5, 1, 4, 2}, target(6, 2);
  const std::vector<float> ones(6, 1);
  const float *in = x.data() + 1, *other = y.data() + 1;
  const auto as_on_cpu = [&](auto call) {
    std::vector<float> found(x.size(), 7), expected = found;
    REQUIRE(call(checked, found.data() + 1) == WT_OK);
    REQUIRE(call(kCpu, expected.data() + 1) == WT_OK);
    CHECK(distance(doubles(found), doubles(expected)) < tolerance(WT_FP32));
  };
  as_on_cpu([&](WtStream s, float* out) { return wt_swiglu_forward(s, WT_FP32, in, R, D, out); });
  as_on_cpu([&](WtStream s, float* out) { return wt_swiglu_backward(s, WT_FP32, other, in, R, D, out); });
  as_on_cpu([&](WtStream s, float* out) { return wt_gather_rows(s, WT_FP32, in, order.data(), R, R, D, out); });
  as_on_cpu([&](WtStream s, float* out) { return wt_permute_forward(s, WT_FP32, in, order.data(), 3, 2, D, out); });
  as_on_cpu([&](WtStream s, float* out) { return wt_permute_backward(s, WT_FP32, in, order.data(), 3, 2, D, 1, out); });
  as_on_cpu([&](WtStream s, float* out) {
    return wt_combine_backward(s, WT_FP32, other, in, order.data(), ones.data(), 3, 2, D, out, out + n);
  });
  as_on_cpu(
      [&](WtStream s, float* out) { return wt_rmsnorm_forward(s, WT_FP32, in, other, 1e-5f, R, D, out, out + n); });
  as_on_cpu([&](WtStream s, float* out) {
    return wt_rmsnorm_backward(s, WT_FP32, in, in + n, other, ones.data(), R, D, out, out + n);
  });
  as_on_cpu([&](WtStream s, float* out) {
    return wt_rope_split_forward(s, WT_FP32, in, other, other, 1, 3, 2, 1, 8, out, out + 48, out + 72);
  });
  as_on_cpu([&](WtStream s, float* out) {
    std::vector<double> loss(1);
    return wt_cross_entropy_forward_backward(s, WT_FP32, out, target.data(), R, D, 1, loss.data());
  });
  as_on_cpu([&](WtStream s, float* out) { return wt_lion(s, out, out + n, in, n, 1e-2, 0.9, 0.99, 0.1, 1); });
  as_on_cpu([&](WtStream s, float* out) {
    std::vector<float> second(size_t(n), 1);
    return wt_adamw(s, out, out + n, second.data(), in, n, 1e-2, 0.9, 0.99, 1e-8, 0.1, 1, 1);
  });

  const auto blocks = floats(draw(random, WT_FP32, 2 * 128 + 1));
  std::vector<unsigned char> q(257, 9);
  std::vector<float> scale(2), back(257, 9);
  REQUIRE(wt_quantize_blocks(checked, WT_FP32, WT_INT8, blocks.data() + 1, 1, 256, q.data() + 1, scale.data()) ==
          WT_OK);
  REQUIRE(wt_dequantize_blocks(checked, WT_FP32, WT_INT8, q.data() + 1, scale.data(), 1, 256, back.data() + 1) ==
          WT_OK);
  for (size_t i = 1; i < back.size(); ++i)
    CHECK(back[i] == Approx(blocks[i]).margin(scale[(i - 1) / 128] / 2 * 1.0001));
}

TEST_CASE("on the executor: no result depends on the order of warps and blocks") {
  const int64_t T = 130, E = 16, k = 4, D = 24, V = 700;
  std::mt19937_64 random{4};
  const Doubles logits = draw(random, WT_FP32, T * E);
  const auto x = floats(draw(random, WT_FP32, T * V)), gain = floats(draw(random, WT_FP32, D));
  const std::vector<int64_t> target(size_t(T), 5);
  const auto results = [&](uint64_t seed) {
    wt::cuda_executor::set_seed(seed);
    const Routed r = route(logits, plain({T, E, k}, true));
    Doubles all = r.share_sums;
    all.insert(all.end(), r.lse_squares.begin(), r.lse_squares.end());
    all.insert(all.end(), r.order.begin(), r.order.end());
    std::vector<float> gradient = x, dgain(size_t(D), 0), dx(size_t(T * D));
    std::vector<double> loss(1);
    REQUIRE(wt_cross_entropy_forward_backward(checked, WT_FP32, gradient.data(), target.data(), T, V, 1, loss.data()) ==
            WT_OK);
    REQUIRE(wt_rmsnorm_backward(checked, WT_FP32, x.data(), x.data() + T * D, gain.data(), x.data() + 2 * T * D, T, D,
                                dx.data(), dgain.data()) == WT_OK);
    all.push_back(loss[0]);
    all.insert(all.end(), gradient.begin(), gradient.end());
    all.insert(all.end(), dgain.begin(), dgain.end());
    return all;
  };
  const Doubles first = results(0);
  for (uint64_t seed = 1; seed < 4; ++seed) CHECK(results(seed) == first);
}

TEST_CASE("on the executor: an index beyond the rows is found where it is read") {
  const std::vector<float> x(8, 1);
  std::vector<float> y(4);
  const std::vector<int64_t> index = {2};
  CHECK_THROWS_WITH(wt_gather_rows(checked, WT_FP32, x.data(), index.data(), 2, 1, 4, y.data()),
                    Catch::Contains("of an allocation of 32 bytes"));
}
