// Memory-bound CPU kernels as a share of the copy bandwidth, with Google Benchmark:
//   bench_kernels --benchmark_enable_random_interleaving=true --benchmark_repetitions=3
// Names contain kernel, type, instruction set and threads. Every iteration times the kernel and then a memcpy of as
// many bytes with as many threads. of_copy is the median of copy time / kernel time, so that other load affects both.
// Before timing, every kernel is compared in every form with its formula in doubles; a wrong or failed one is an error
// in its row, and exit status 1. Bytes are those that must be moved (inputs read once, outputs written once), at sizes
// beyond the caches.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/studies/kernels/kernel_check.hpp"
#include "configs/base/statistics.hpp"
#include "kernels/kernels.h"

namespace {

using namespace wt::bandwidth;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Arrays& arrays() {
  static Arrays made = [] {
    Arrays a;
    a.fill();
    return a;
  }();
  return made;
}

/// A memcpy that reads and writes `bytes` in total.
void copy(int64_t bytes, int threads) {
  const size_t part = size_t(bytes / 2 / threads);
  const auto run = [part](int thread) {
    std::memcpy(reinterpret_cast<char*>(arrays().out.data()) + part * size_t(thread),
                reinterpret_cast<const char*>(arrays().in.data()) + part * size_t(thread), part);
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others) other.join();
}

struct Kernel {
  const char* name;
  /// Bytes that must be moved: elements of the activation type, and other bytes.
  int64_t elements, other_bytes;
  std::function<WtStatus(WtDtype, Arrays&)> run;
  bool fp32_alone = false;
};

bool failed = false;  ///< any benchmark failed; the library's own exit status ignores errors

void fail(benchmark::State& state, const std::string& why) {
  failed = true;
  state.SkipWithError(why.c_str());
}

const std::vector<Kernel>& kernels() {
  constexpr int64_t D = kWidth, T = kTokens, k = kTopK, N = kRows, F = kWidth / 2;
  static const std::vector<Kernel> all = {
      {"permute", (T + N) * D, N * 8,
       [](WtDtype t, Arrays& a) {
         return wt_permute_forward(kCpu, t, a.in.data(), a.order.data(), T, k, D, a.out.data());
       }},
      {"permute_backward", (T + N) * D, N * 8,
       [](WtDtype t, Arrays& a) {
         return wt_permute_backward(kCpu, t, a.in.data(), a.inverse.data(), T, k, D, 0, a.out.data());
       }},
      {"combine", (2 * T + N) * D, N * 12,
       [](WtDtype t, Arrays& a) {
         return wt_combine_forward(kCpu, t, a.in.data(), a.inverse.data(), a.weights.data(), a.also_in.data(), T, k, D,
                                   a.out.data());
       }},
      {"combine_backward", (T + 2 * N) * D, N * 16,
       [](WtDtype t, Arrays& a) {
         return wt_combine_backward(kCpu, t, a.also_in.data(), a.in.data(), a.inverse.data(), a.weights.data(), T, k, D,
                                    a.out.data(), a.dweights.data());
       }},
      {"swiglu", 3 * N * F, 0,
       [](WtDtype t, Arrays& a) { return wt_swiglu_forward(kCpu, t, a.in.data(), N, F, a.out.data()); }},
      {"swiglu_backward", 5 * N * F, 0,
       [](WtDtype t, Arrays& a) {
         return wt_swiglu_backward(kCpu, t, a.also_in.data(), a.in.data(), N, F, a.out.data());
       }},
      {"quantize_int8", N * D, N * D + N * D / 32,
       [](WtDtype t, Arrays& a) {
         return wt_quantize_blocks(kCpu, t, WT_INT8, a.in.data(), N, D, a.codes.data(), a.scale.data());
       }},
      {"quantize_fp8", N * D, N * D + N * D / 32,
       [](WtDtype t, Arrays& a) {
         return wt_quantize_blocks(kCpu, t, WT_FP8, a.in.data(), N, D, a.codes.data(), a.scale.data());
       }},
      {"dequantize_int8", N * D, N * D + N * D / 32,
       [](WtDtype t, Arrays& a) {
         return wt_dequantize_blocks(kCpu, t, WT_INT8, a.codes.data(), a.scale.data(), N, D, a.out.data());
       }},
      {"dequantize_fp8", N * D, N * D + N * D / 32,
       [](WtDtype t, Arrays& a) {
         return wt_dequantize_blocks(kCpu, t, WT_FP8, a.codes.data(), a.scale.data(), N, D, a.out.data());
       }},
      {"rmsnorm", 2 * N * D, N * 4,
       [](WtDtype t, Arrays& a) {
         return wt_rmsnorm_forward(kCpu, t, a.in.data(), a.also_in.data(), 1e-5f, N, D, a.out.data(), a.rstd.data());
       }},
      {"rmsnorm_backward", 3 * N * D, N * 4,
       [](WtDtype t, Arrays& a) {
         return wt_rmsnorm_backward(kCpu, t, a.also_in.data(), a.in.data(), a.also_in.data(), a.rstd.data(), N, D,
                                    a.out.data(), a.gain_gradient.data());
       }},
      {"rope", 2 * N * D, 4 * kPositions * kHead,
       [](WtDtype t, Arrays& a) {
         const Split out = split(a.out, t);
         return wt_rope_split_forward(kCpu, t, a.in.data(), a.cos.data(), a.sin.data(), kSequences, kPositions,
                                      kQueryHeads, kKeyHeads, kHead, out.q, out.k, out.v);
       }},
      {"rope_backward", 2 * N * D, 4 * kPositions * kHead,
       [](WtDtype t, Arrays& a) {
         const Split in = split(a.in, t);
         return wt_rope_split_backward(kCpu, t, in.q, in.k, in.v, a.cos.data(), a.sin.data(), kSequences, kPositions,
                                       kQueryHeads, kKeyHeads, kHead, a.out.data());
       }},
      {"cross_entropy", 2 * N * D, 0,
       [](WtDtype t, Arrays& a) {
         return wt_cross_entropy_forward_backward(kCpu, t, a.out.data(), a.target.data(), kLossRows, kVocabulary,
                                                  kLossScale, &a.loss);
       }},
      {"adamw", 7 * kParameters, 0,
       [](WtDtype, Arrays& a) {
         float *p = a.out.data(), *m = p + kParameters, *v = m + kParameters, *g = v + kParameters;
         return wt_adamw(kCpu, p, m, v, g, kParameters, kRate, kBeta1, kBeta2, kEps, kDecay, kStep, 1);
       },
       true},
  };
  return all;
}

void measure(benchmark::State& state, const Kernel& kernel, WtDtype dtype, const char* isa, int threads) {
  if (wt_kernel_set_isa(isa) != WT_OK || wt_kernel_set_threads(threads) != WT_OK) return fail(state, wt_kernel_error());
  if (prepare(kernel.name, dtype, arrays()) != WT_OK || kernel.run(dtype, arrays()) != WT_OK)
    return fail(state, wt_kernel_error());
  const double error = largest_error(kernel.name, dtype, arrays()), allowed = allowed_error(kernel.name, dtype);
  state.counters["error"] = error;
  if (!(error <= allowed))
    return fail(state, "wrong: off by " + std::to_string(error) + ", allowed " + std::to_string(allowed));
  const int64_t bytes = kernel.elements * (dtype == WT_FP32 ? 4 : 2) + kernel.other_bytes;
  std::vector<double> ratios, rates;
  for (auto _ : state) {
    WtStatus status = WT_OK;
    const double kernel_s = seconds_of([&] { status = kernel.run(dtype, arrays()); });
    if (status != WT_OK) return fail(state, wt_kernel_error());
    const double copy_s = seconds_of([&] { copy(std::min(bytes, int64_t(arrays().in.size()) * 8), threads); }) *
                          (double(bytes) / double(std::min(bytes, int64_t(arrays().in.size()) * 8)));
    state.SetIterationTime(kernel_s);
    ratios.push_back(copy_s / kernel_s), rates.push_back(double(bytes) / copy_s);
  }
  state.counters["of_copy"] = wt::median(ratios);
  state.counters["copy_Bps"] = wt::median(rates);
  state.SetBytesProcessed(bytes * int64_t(state.iterations()));
}

}  // namespace

int main(int argc, char** argv) {
  for (const Kernel& kernel : kernels())
    for (const WtDtype dtype : {WT_FP32, WT_BF16})
      for (const char* isa : {"avx512", "avx2", "baseline"})
        for (const int threads : {1, 2}) {
          if ((kernel.fp32_alone && dtype != WT_FP32) || wt_kernel_set_isa(isa) != WT_OK) continue;
          const std::string name = std::string(kernel.name) + (dtype == WT_FP32 ? "/fp32/" : "/bf16/") + isa +
                                   "/threads:" + std::to_string(threads);
          benchmark::RegisterBenchmark(
              name.c_str(),
              [&kernel, dtype, isa, threads](benchmark::State& state) { measure(state, kernel, dtype, isa, threads); })
              ->UseManualTime()
              ->Iterations(7)
              ->Unit(benchmark::kMillisecond);
        }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return failed ? 1 : 0;
}
