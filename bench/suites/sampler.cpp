#include "bench/suites/sampler.hpp"

#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>

#include "configs/spec/error.hpp"
#include "trainer/clocks.hpp"

namespace wt {
namespace {

double thread_cpu_s() { return Clocks::read(CLOCK_THREAD_CPUTIME_ID); }

/// Writes twice the last-level cache (64 MiB where the system does not tell its size).
void flush_caches() {
  static std::vector<char> buffer(
      std::max<std::size_t>(64 << 20, 2 * static_cast<std::size_t>(std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE)))));
  static char value = 0;
  std::fill(buffer.begin(), buffer.end(), ++value);
  benchmark::DoNotOptimize(buffer.data());
}

/// Calls in one sample, from a call that found its caches warm.
std::int64_t calls_per_sample(const TimedCase& timed, const SamplerOptions& options) {
  if (timed.touch) return options.cold_calls;
  timed.prepare();
  timed.call();
  const double begin = thread_cpu_s();
  timed.call();
  const double call_s = thread_cpu_s() - begin;
  timed.release();
  return std::clamp<std::int64_t>(std::llround(options.sample_s / std::max(call_s, 1e-7)), 1, options.most_calls);
}

class Collector : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Iteration && !run.error_occurred)
        samples[run.run_name.function_name].push_back(run.real_accumulated_time / static_cast<double>(run.iterations));
  }
  std::map<std::string, std::vector<double>> samples;
};

void initialize_once() {
  static const bool done = [] {
    static char program[] = "bench", interleave[] = "--benchmark_enable_random_interleaving=true";
    static char* arguments[] = {program, interleave, nullptr};
    int count = 2;
    benchmark::Initialize(&count, arguments);
    return true;
  }();
  (void)done;
}

}  // namespace

std::vector<std::vector<double>> sample_thread_cpu(const std::vector<TimedCase>& cases, const SamplerOptions& options,
                                                   const std::function<void(int, int)>& progress) {
  initialize_once();
  benchmark::ClearRegisteredBenchmarks();
  std::exception_ptr failure;
  int done = 0;
  const int total = static_cast<int>(cases.size()) * options.samples;
  for (const TimedCase& timed : cases) {
    const std::int64_t calls = calls_per_sample(timed, options);
    const auto body = [&timed, &failure, &done, &progress, calls, total](benchmark::State& state) {
      if (failure) return state.SkipWithError("an earlier case failed");
      try {
        timed.prepare();
        timed.call();  // warm
        while (state.KeepRunningBatch(calls)) {
          double spent_s = 0;
          for (std::int64_t batch = timed.touch ? calls : 1; batch > 0; --batch) {
            if (timed.touch) {
              flush_caches();
              timed.touch();
            }
            const double begin = thread_cpu_s();
            for (std::int64_t i = timed.touch ? 1 : calls; i > 0; --i) timed.call();
            spent_s += thread_cpu_s() - begin;
          }
          state.SetIterationTime(spent_s);
        }
        timed.release();
      } catch (...) {  // the library's own threads and C callers know no exceptions
        failure = std::current_exception();
        return state.SkipWithError("failed");
      }
      if (progress) progress(++done, total);
    };
    // Manual time has no cap on wall time, so the number of calls is bounded here.
    benchmark::RegisterBenchmark(timed.name.c_str(), body)
        ->UseManualTime()
        ->Iterations(calls)
        ->Repetitions(options.samples);
  }
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  benchmark::ClearRegisteredBenchmarks();
  if (failure) std::rethrow_exception(failure);
  std::vector<std::vector<double>> out;
  for (const TimedCase& timed : cases) {
    out.push_back(collector.samples[timed.name]);
    if (out.back().size() != static_cast<std::size_t>(options.samples))
      throw_error(Code::runtime, "benchmark {}: {} samples of {}; its name is not unique or the library dropped some",
                  timed.name, out.back().size(), options.samples);
  }
  return out;
}

}  // namespace wt
