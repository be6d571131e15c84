#include "bench/suites/suite_sampler.hpp"

#include <benchmark/benchmark.h>
#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"

namespace wt {
namespace {

constexpr double kColdIssue_s = 3e-4;  // host time to warm inputs and issue one call

/// Writes twice the last-level cache (64 MiB where the system does not tell its size).
void flush_caches() {
  static std::vector<char> buffer(
      std::max<std::size_t>(64 << 20, 2 * static_cast<std::size_t>(std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE)))));
  static char value = 0;
  std::ranges::fill(buffer, ++value);
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
  std::int64_t calls = 1;  ///< per sample
  double issue_s = 0;      ///< host's wall time to issue them
};

/// Frees the inputs of a case that threw. On a lost device this throws, too.
void release_after_error(const TimedCase& timed) noexcept {
  try {
    timed.release();
  } catch (...) {  // the first error is the one to report
  }
}

/// Sizes a batch from a call with warm caches.
Batch batch_of(const TimedCase& timed, const TimingOptions& options, Stopwatch& stopwatch) {
  if (timed.touch) return {options.cold_calls, kColdIssue_s};
  timed.prepare();
  timed.call();
  stopwatch.cover(kColdIssue_s);
  stopwatch.start();
  const double begin_s = clock_s(CLOCK_MONOTONIC);
  timed.call();
  const double issue_s = clock_s(CLOCK_MONOTONIC) - begin_s;
  const double call_s = stopwatch.stop();
  timed.release();
  const auto calls =
      std::clamp<std::int64_t>(std::llround(options.sample_s / std::max(call_s, 1e-7)), 1, options.most_calls);
  return {calls, issue_s * static_cast<double>(calls)};
}

/// Reports nothing: samples are saved as they are taken, so that an early end loses none.
class Silent : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
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

std::unique_ptr<Stopwatch> thread_cpu_stopwatch() { return std::make_unique<ThreadCpu>(); }

std::string current_error() {
  try {
    throw;
  } catch (const c10::Error& e) {  // not what(), which contains a backtrace
    return e.what_without_backtrace();
  } catch (const std::exception& e) {
    return e.what();
  }
}

std::vector<CaseSamples> sample(const std::vector<TimedCase>& cases, const TimingOptions& options, Stopwatch& stopwatch,
                                const SampleTaken& taken) {
  initialize_once();
  benchmark::ClearRegisteredBenchmarks();
  std::vector<CaseSamples> out(cases.size());
  bool ended = false, any = false;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const TimedCase& timed = cases[i];
    CaseSamples& own = out[i];
    if (timed.already >= options.samples) continue;
    Batch batch;
    try {
      batch = batch_of(timed, options, stopwatch);
    } catch (...) {
      own.error = current_error();
      release_after_error(timed);
      continue;
    }
    const auto take = [&, i, batch] {
      if (ended || !own.error.empty()) return 0.0;
      double spent_s = 0;
      try {
        timed.prepare();
        timed.call();  // warm-up
        for (std::int64_t left = timed.touch ? batch.calls : 1; left > 0; --left) {
          if (timed.touch) {
            stopwatch.flush_caches();
            stopwatch.cover(batch.issue_s);
            timed.touch();
          } else {
            stopwatch.cover(batch.issue_s);
          }
          stopwatch.start();
          for (std::int64_t call = timed.touch ? 1 : batch.calls; call > 0; --call) timed.call();
          spent_s += stopwatch.stop();
        }
        timed.release();
      } catch (...) {  // must not propagate through the library's threads and C callers
        own.error = current_error();
        release_after_error(timed);
        return 0.0;
      }
      own.seconds.push_back(spent_s / static_cast<double>(batch.calls));
      ended = taken && !taken(i, own.seconds.back());
      return spent_s;
    };
    // Cases with fewer remaining samples run empty repetitions, because the library needs the same number for all.
    const auto body = [take, batch](benchmark::State& state) {
      while (state.KeepRunningBatch(batch.calls)) state.SetIterationTime(take());
    };
    // Manual time has no limit on wall time, so the number of calls is bounded here.
    benchmark::RegisterBenchmark(timed.name.c_str(), body)
        ->UseManualTime()
        ->Iterations(batch.calls)
        ->Repetitions(options.samples - timed.already);
    any = true;
  }
  if (!any) return out;  // the library rejects an empty set of benchmarks
  Silent reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::ClearRegisteredBenchmarks();
  for (std::size_t i = 0; i < out.size(); ++i)
    if (const int count = static_cast<int>(out[i].seconds.size()) + cases[i].already;
        !ended && out[i].error.empty() && count < options.samples)
      out[i].error = fmt::format("{} samples of {}; the benchmark library dropped some", count, options.samples);
  return out;
}

}  // namespace wt
