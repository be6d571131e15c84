// CPU kernels over several threads: the bits do not depend on their number.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "kernels/kernels.h"
#include "tests/fixtures/routing_checks.hpp"

using namespace wt::kernel_test;
namespace reference = wt::reference;

namespace {

using Bytes = std::vector<unsigned char>;

/// What `run` returns has the same bits for any number of threads.
template <class Run>
void check_threads(Run run) {
  const auto with = [&run](int threads) {
    REQUIRE(wt_kernel_set_threads(threads) == WT_OK);
    auto found = run();
    REQUIRE(wt_kernel_set_threads(1) == WT_OK);
    return found;
  };
  const auto one = with(1);
  for (const int threads : {2, 3, 8}) CHECK((with(threads) == one));
}

/// Bytes that begin `beyond` bytes after a line of the cache: results are streamed past the caches to whole lines
/// alone.
class Lines {
 public:
  explicit Lines(size_t size, size_t beyond = 0)
      : memory_(std::aligned_alloc(64, (size + beyond + 63) / 64 * 64)), beyond_(beyond) {}
  unsigned char* data() const { return static_cast<unsigned char*>(memory_.get()) + beyond_; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  size_t beyond_;
};

/// Kernels of T tokens with two choices each, on rows of D that repeat after seven.
struct Rows {
  int64_t T, D, k = 2, N = T * k;
  WtDtype dtype;
  size_t width = dtype == WT_FP32 ? 4 : 2, bytes = size_t(N * D) * width;
  Lines x{bytes}, y{bytes};
  std::vector<int64_t> order, inverse;
  std::vector<float> weights, scale, beside;
  Bytes codes;

  Rows(WtDtype type, int64_t tokens, int64_t columns)
      : T(tokens),
        D(columns),
        dtype(type),
        order(size_t(N), 0),
        inverse(size_t(N), 0),
        scale(size_t(N * (D / 128 + 1))),
        beside(scale.size()),
        codes(size_t(N * D)) {
    std::mt19937_64 random{1};
    const auto seven = pack(dtype, draw(random, dtype, 8 * D));
    const size_t row = size_t(D) * width;
    for (int64_t r = 0; r < N; ++r) {
      std::memcpy(x.data() + size_t(r) * row, &seven[size_t(r % 7) * row], row);
      std::memcpy(y.data() + size_t(r) * row, &seven[size_t(1 + r % 7) * row], row);
    }
    std::vector<int64_t> experts(size_t(N), 0);
    for (int64_t& e : experts) e = int64_t(random() % 16);
    REQUIRE(wt_sort_by_expert(kCpu, experts.data(), nullptr, N, 16, order.data(), inverse.data(), nullptr) == WT_OK);
    weights = floats(draw(random, WT_FP32, N));
    REQUIRE(wt_quantize_blocks(kCpu, dtype, WT_FP8, x.data(), N, D, codes.data(), scale.data()) == WT_OK);
  }

  static constexpr size_t kKernels = 11;
  WtStatus run(size_t which, unsigned char* out) {
    switch (which) {
      case 0:
        return wt_permute_forward(kCpu, dtype, x.data(), order.data(), T, k, D, out);
      case 1:
        return wt_permute_backward(kCpu, dtype, x.data(), inverse.data(), T, k, D, 0, out);
      case 2:
        return wt_gather_rows(kCpu, dtype, x.data(), order.data(), N, N, D, out);
      case 3:
        return wt_combine_forward(kCpu, dtype, x.data(), inverse.data(), weights.data(), y.data(), T, k, D, out);
      case 4:
        return wt_combine_backward(kCpu, dtype, y.data(), x.data(), inverse.data(), weights.data(), T, k, D, out,
                                   beside.data());
      case 5:
        return wt_swiglu_forward(kCpu, dtype, x.data(), N, D / 2, out);
      case 6:
        return wt_swiglu_backward(kCpu, dtype, y.data(), x.data(), N, D / 2, out);
      case 7:
        return wt_quantize_blocks(kCpu, dtype, WT_INT8, x.data(), N, D, out, beside.data());
      case 8:
        return wt_dequantize_blocks(kCpu, dtype, WT_FP8, codes.data(), scale.data(), N, D, out);
      case 9:
        return wt_rmsnorm_forward(kCpu, dtype, x.data(), y.data(), 1e-5f, N, D, out, beside.data());
      default:
        return wt_rmsnorm_backward(kCpu, dtype, y.data(), x.data(), y.data(), weights.data(), N, D, out, beside.data());
    }
  }

  /// What a kernel leaves, the numbers beside its rows (gradients of weights and gains, scales, deviations) included.
  std::pair<Bytes, std::vector<float>> with(int threads, size_t which, size_t beyond = 0) {
    Lines out(bytes, beyond);
    std::memset(out.data(), 0, bytes);
    std::fill(beside.begin(), beside.end(), 0.0f);
    REQUIRE(wt_kernel_set_threads(threads) == WT_OK);
    REQUIRE(run(which, out.data()) == WT_OK);
    REQUIRE(wt_kernel_set_threads(1) == WT_OK);
    return {Bytes(out.data(), out.data() + bytes), beside};
  }
};

}  // namespace

TEST_CASE("threads: every kernel gives the same bits with one, two, three and eight") {
  // Six MiB and more move, so that three threads and more start; 1021 rows are not a multiple of any of them.
  Rows rows(GENERATE(WT_FP32, WT_BF16), 1021, 1000);
  for (size_t which = 0; which < Rows::kKernels; ++which) {
    CAPTURE(which);
    const auto one = rows.with(1, which);
    for (const int threads : {2, 3, 8}) CHECK((rows.with(threads, which) == one));
  }
}

TEST_CASE("outputs too large for the caches, written past them, have the bits of those that are not") {
  if (wt_kernel_set_isa(GENERATE("avx512", "avx2", "baseline")) != WT_OK) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  Rows rows(dtype, dtype == WT_FP32 ? 4111 : 8221, 2048);  // T rows are 32 MiB and more
  for (size_t which = 0; which < Rows::kKernels; ++which) {
    CAPTURE(which);
    const auto plain = rows.with(1, which, 4);
    for (const int threads : {1, 3}) CHECK((rows.with(threads, which) == plain));
  }
}

TEST_CASE("threads: the router, its sums included") {
  const int64_t T = 1500, E = 96, k = 4;
  const WtRouterSpec spec{T, E, k, 100, GENERATE(WT_SOFTMAX, WT_SIGMOID), 8, 3, 2, true, 2.5f, false};
  std::mt19937_64 random{2};
  const auto logits = floats(draw(random, WT_FP32, T * E)), dweights = floats(draw(random, WT_FP32, T * k));
  const auto dshares = floats(draw(random, WT_FP32, T / 100 * E));
  check_threads([&] {
    std::vector<float> scores(size_t(T * E)), weights(size_t(T * k)), dlogits(size_t(T * E));
    std::vector<int64_t> index(size_t(T * k)), counts(size_t(T / 100 * E));
    std::vector<double> shares(counts.size()), squares(size_t(T / 100));
    REQUIRE(wt_router_forward(kCpu, spec, logits.data(), nullptr, index.data(), scores.data(), weights.data(),
                              counts.data(), shares.data(), squares.data()) == WT_OK);
    REQUIRE(wt_router_backward(kCpu, spec, dweights.data(), scores.data(), index.data(), dshares.data(), logits.data(),
                               0.1f, dlogits.data()) == WT_OK);
    return std::make_tuple(scores, weights, dlogits, index, counts, shares, squares);
  });
}

TEST_CASE("threads: rotary positions and their gradient") {
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const int64_t B = 3, S = 701, H = 5, KV = 3, hd = 94, all = B * S * (H + 2 * KV) * hd;  // 8 MiB and more move
  std::mt19937_64 random{3};
  const auto in = pack(dtype, draw(random, dtype, all));
  std::vector<float> cos(size_t(S * hd / 2)), sin(cos.size());
  const Doubles frequencies = reference::rope_frequencies(hd, 1e4);
  REQUIRE(wt_rope_table(S, hd, frequencies.data(), 1, cos.data(), sin.data()) == WT_OK);
  const size_t head = in.size() / size_t(H + 2 * KV), k_at = size_t(H) * head, v_at = size_t(H + KV) * head;
  check_threads([&] {
    Bytes split(in.size()), joined(in.size());
    REQUIRE(wt_rope_split_forward(kCpu, dtype, in.data(), cos.data(), sin.data(), B, S, H, KV, hd, split.data(),
                                  &split[k_at], &split[v_at]) == WT_OK);
    REQUIRE(wt_rope_split_backward(kCpu, dtype, in.data(), &in[k_at], &in[v_at], cos.data(), sin.data(), B, S, H, KV,
                                   hd, joined.data()) == WT_OK);
    return std::make_pair(split, joined);
  });
}

TEST_CASE("threads: cross-entropy, the sum of its losses included") {
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const int64_t T = 1021, V = 2051;  // 8 MiB and more move
  std::mt19937_64 random{4};
  const auto logits = pack(dtype, draw(random, dtype, T * V, 3));
  std::vector<int64_t> target(size_t(T), 0);
  for (int64_t& t : target) t = random() % 5 == 0 ? -100 : int64_t(random() % uint64_t(V));
  check_threads([&] {
    Bytes gradient = logits;
    double loss = 0.1;
    REQUIRE(wt_cross_entropy_forward_backward(kCpu, dtype, gradient.data(), target.data(), T, V, 0.3f, &loss) == WT_OK);
    return std::make_pair(gradient, loss);
  });
}

TEST_CASE("threads: adamw") {
  const int64_t n = GENERATE(300'000, 327'703);  // 8 MiB and more move; tails of every register, and of runs
  std::mt19937_64 random{5};
  const auto p = floats(draw(random, WT_FP32, n)), g = floats(draw(random, WT_FP32, n));
  check_threads([&] {
    std::vector<float> fp = p, m(p.size(), 0.25f), v(p.size(), 0.5f);
    REQUIRE(wt_adamw(kCpu, fp.data(), m.data(), v.data(), g.data(), n, 1e-2, 0.9, 0.95, 1e-8, 0.1, 2, 0.5f) == WT_OK);
    return std::make_tuple(fp, m, v);
  });
}

TEST_CASE("threads: grouped products of any routing") {
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const Routing routing = GENERATE(Routing::random, Routing::one_takes_all, Routing::skewed);
  std::mt19937_64 random{6};
  // Some 8 million multiplications and more in each product; rows, n and k leave tails.
  const Grouped g = draw_grouped(dtype, ends_of(routing, 7, 77, random), 133, 171, random);
  check_threads([&] { return products_of(dtype, g); });
}

TEST_CASE("threads: none is refused") {
  CHECK(wt_kernel_set_threads(0) == WT_INVALID_ARGUMENT);
  CHECK_THAT(wt_kernel_error(), Catch::Contains("1 or more"));
}
