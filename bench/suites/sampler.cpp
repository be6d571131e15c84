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

constexpr double kColdIssue_s = 3e-4;  // to issue what warms inputs and one call

double thread_cpu_s() { return Clocks::read(CLOCK_THREAD_CPUTIME_ID); }

/// Writes twice the last-level cache (64 MiB where the system does not tell its size).
void flush_caches() {
  static std::vector<char> buffer(
      std::max<std::size_t>(64 << 20, 2 * static_cast<std::size_t>(std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE)))));
  static char value = 0;
  std::fill(buffer.begin(), buffer.end(), ++value);
  benchmark::DoNotOptimize(buffer.data());
}

class ThreadCpu : public Stopwatch {
 public:
  void start() override { begin_s_ = thread_cpu_s(); }
  double stop() override { return thread_cpu_s() - begin_s_; }
  void flush_caches() override { wt::flush_caches(); }

 private:
  double begin_s_ = 0;
};

struct Batch {
  std::int64_t calls = 1;  ///< in one sample
  double issue_s = 0;      ///< wall time that the host takes to make them
};

/// From a call that found its caches warm.
Batch batch_of(const TimedCase& timed, const SamplerOptions& options, Stopwatch& stopwatch) {
  if (timed.touch) return {options.cold_calls, kColdIssue_s};
  timed.prepare();
  timed.call();
  stopwatch.cover(kColdIssue_s);
  stopwatch.start();
  const double begin_s = Clocks::read(CLOCK_MONOTONIC);
  timed.call();
  const double issue_s = Clocks::read(CLOCK_MONOTONIC) - begin_s;
  const double call_s = stopwatch.stop();
  timed.release();
  const auto calls =
      std::clamp<std::int64_t>(std::llround(options.sample_s / std::max(call_s, 1e-7)), 1, options.most_calls);
  return {calls, issue_s * static_cast<double>(calls)};
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
  ThreadCpu stopwatch;
  return sample(cases, options, stopwatch, progress);
}

std::unique_ptr<Stopwatch> thread_cpu_stopwatch() { return std::make_unique<ThreadCpu>(); }

std::vector<std::vector<double>> sample(const std::vector<TimedCase>& cases, const SamplerOptions& options,
                                        Stopwatch& stopwatch, const std::function<void(int, int)>& progress) {
  initialize_once();
  benchmark::ClearRegisteredBenchmarks();
  std::exception_ptr failure;
  int done = 0;
  const int total = static_cast<int>(cases.size()) * options.samples;
  for (const TimedCase& timed : cases) {
    const Batch batch = batch_of(timed, options, stopwatch);
    const auto body = [&timed, &failure, &done, &progress, &stopwatch, batch, total](benchmark::State& state) {
      if (failure) return state.SkipWithError("an earlier case failed");
      try {
        timed.prepare();
        timed.call();  // warm
        while (state.KeepRunningBatch(batch.calls)) {
          double spent_s = 0;
          for (std::int64_t left = timed.touch ? batch.calls : 1; left > 0; --left) {
            if (timed.touch) {
              stopwatch.flush_caches();
              stopwatch.cover(batch.issue_s);
              timed.touch();
            } else {
              stopwatch.cover(batch.issue_s);
            }
            stopwatch.start();
            for (std::int64_t i = timed.touch ? 1 : batch.calls; i > 0; --i) timed.call();
            spent_s += stopwatch.stop();
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
        ->Iterations(batch.calls)
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
