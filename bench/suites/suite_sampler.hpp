// Samples of CPU or device time through Google Benchmark. Repetitions of all cases run in random order, so that a slow
// phase of the machine affects all of them. Every repetition is one sample.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace wt {

struct TimedCase {
  std::string name;
  std::function<void()> prepare;  ///< before every sample; not timed
  std::function<void()> call;
  std::function<void()> release;  ///< after every sample, and after an error even in prepare(); not timed
  /// If set, every call starts with cold caches, except for what `touch` reads, and a sample is the mean of few calls.
  /// For items that occur once a step, after megabytes of other data.
  std::function<void()> touch;
  int already = 0;  ///< existing samples, which reduce the number to take
};

/// Measures time and empties caches. Only one measurement at a time.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  virtual void start() = 0;
  virtual double stop() = 0;  ///< seconds from start() until all work issued since then is done
  virtual void flush_caches() = 0;
  /// For asynchronous calls: keeps the device busy for about `issue_s`, so that work issued after start() queues up and
  /// gaps between issues are not timed.
  virtual void cover([[maybe_unused]] double issue_s) {}
};

/// This thread's CPU time.
std::unique_ptr<Stopwatch> thread_cpu_stopwatch();

struct TimingOptions {
  int samples = 9;         ///< fewer than 7 leave the gate's test without power (bench/gate)
  double sample_s = 2e-3;  ///< a sample makes as many calls as take about this long, at least one
  int most_calls = 1000;
  int cold_calls = 3;
};

/// The samples of one case, and the error that ended them, if any. Other cases continue.
struct CaseSamples {
  std::vector<double> seconds = {};
  std::string error = {};
};
/// Called after every sample with the case's index and the seconds of one call. Returning false ends the sampling.
using SampleTaken = std::function<bool(std::size_t index, double seconds)>;

/// Seconds of one call by that stopwatch; result[i] has the samples of cases[i].
std::vector<CaseSamples> sample(const std::vector<TimedCase>& cases, const TimingOptions& options, Stopwatch& stopwatch,
                                const SampleTaken& taken = {});
/// What an exception that was caught says, in one line.
std::string current_error();

}  // namespace wt
