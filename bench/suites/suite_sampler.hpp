// Samples of CPU or device time through Google Benchmark: repetitions of all cases in random order, so that a slow
// phase of the machine meets all of them; every repetition is kept as one sample.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace wt {

struct TimedCase {
  std::string name;
  std::function<void()> prepare;  ///< before every sample, not timed
  std::function<void()> call;
  std::function<void()> release;  ///< after every sample, not timed, and once after one that threw, in prepare even
  /// Where given, every call finds nothing in the caches but what this touches, and a sample is the mean of few calls:
  /// for what a step comes by once, with megabytes of other things in between.
  std::function<void()> touch;
  int already = 0;  ///< samples that are there: so many fewer are taken
};

/// What times are read from, and how caches are emptied. One at a time is started.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  virtual void start() = 0;
  virtual double stop() = 0;  ///< seconds since start(), when all that was issued since then is done
  virtual void flush_caches() = 0;
  /// Where calls only issue work: keeps the device busy with other work for about `issue_s`, so that what is issued
  /// after start() waits ready behind it and gaps between issues are not timed.
  virtual void cover([[maybe_unused]] double issue_s) {}
};

/// This thread's CPU time.
std::unique_ptr<Stopwatch> thread_cpu_stopwatch();

struct TimingOptions {
  int samples = 9;         ///< fewer than 7 leave the gate's test without power (bench/gate)
  double sample_s = 2e-3;  ///< a sample is as many calls as take about this long, at least one
  int most_calls = 1000;
  int cold_calls = 3;
};

/// The samples of one case, or why there are no more of them: what it threw. Others go on.
struct CaseSamples {
  std::vector<double> seconds = {};
  std::string error = {};
};
/// Told of every sample as it is taken: of which case, and seconds of one call. False ends the sampling.
using SampleTaken = std::function<bool(std::size_t index, double seconds)>;

/// Seconds of one call on that stopwatch: result[i] are the samples of cases[i].
std::vector<CaseSamples> sample(const std::vector<TimedCase>& cases, const TimingOptions& options, Stopwatch& stopwatch,
                                const SampleTaken& taken = {});
/// What an exception that was caught says, in one line.
std::string current_error();

}  // namespace wt
