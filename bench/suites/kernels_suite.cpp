#include "bench/suites/kernels_suite.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>

#include "bench/suites/device_watch.hpp"
#include "bench/suites/item_runner.hpp"
#include "bench/suites/stopwatch.hpp"
#include "bench/suites/suite_sampler.hpp"
#include "configs/base/error.hpp"
#include "reports/render/progress.hpp"
#include "trainer/device/device.hpp"
#include "trainer/launch/agent.hpp"
#include "trainer/model/functions.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

// Size of all rotating inputs together: more than four times 60 MB, the largest L2 so far.
constexpr std::int64_t kRotated_bytes = std::int64_t{256} << 20;
/// Items whose samples are taken in one random order. Fewer on a device, where checks and samples take longer and time
/// is limited.
constexpr std::size_t kHostBlock = 256, kDeviceBlock = 64;
constexpr double kSaveEvery_s = 5;
/// More sets than this are replaced by flushing the L2 cache: inputs are then below 256 KiB. Flushing times calls one
/// by one, which adds some microseconds, so that larger inputs (a router's product of 256 rows, 1 MiB) must not need
/// it.
constexpr std::int64_t kMostSets = 1024;

/// Number of input sets that exceed a device's L2 cache; 0 where that would be too many.
int sets_beyond_l2(ItemRunner& runner) {
  runner.prepare();
  const std::int64_t bytes = std::max<std::int64_t>(1, runner.input_bytes());
  runner.release();
  const std::int64_t sets = (kRotated_bytes + bytes - 1) / bytes;
  return sets > kMostSets ? 0 : static_cast<int>(sets);
}

std::vector<BenchCase> all_cases(const KernelWork& work, at::Device device) {
  std::vector<BenchCase> out = bench_cases(work.items, work.run, device);
  out.insert(out.end(), work.others.begin(), work.others.end());
  return out;
}

/// An item being measured. It must not move, because cases refer to it.
struct Entry {
  Measurement measurement;
  std::unique_ptr<ItemRunner> runner;
  double share = 1;
  std::vector<TimeWindow> windows;  ///< times of the samples
};

class KernelSuite {
 public:
  KernelSuite(const KernelWork& work, const SuiteOptions& options, const Profile& known,
              const std::function<void(const Profile&)>& save)
      : options_(options),
        save_(save),
        device_(open_device(options.device)),
        timed_(all_cases(work, device_)),
        normal_(options.seed, device_),
        stopwatch_(make_stopwatch(device_)),
        progress_("measuring kernels", static_cast<std::int64_t>(timed_.size()) * (options.samples + 1)) {
    for (const Measurement& m : known.measurements) known_.emplace(m.name(), &m);
    sampler_.samples = options.samples;
    sampler_.sample_s = options.quick ? 2e-3 : 10e-3;
    sampler_.cold_calls = options.quick ? 1 : 3;
    first_own_ = timed_.size();
    if (device_.is_cpu()) return;
    sampler_.most_calls = 200;  // a launch queue holds about 1000 launches
    const auto own = std::stable_partition(timed_.begin(), timed_.end(), [](const BenchCase& c) {
      return c.row.kernel.find("_own") == std::string::npos;
    });
    first_own_ = static_cast<std::size_t>(own - timed_.begin());
  }

  Profile run() {
    const std::unique_ptr<DeviceMonitor> monitor = watch_device(device_);
    const std::size_t block = device_.is_cpu() ? kHostBlock : kDeviceBlock;
    for (std::size_t begin = 0, end = 0; begin < timed_.size() && stop_requested() == 0; begin = end) {
      end = std::min(begin + block, begin < first_own_ ? first_own_ : timed_.size());
      measure(begin, end);
    }
    progress_.finish();
    Profile out = so_far();
    if (!monitor) return out;
    const std::vector<TimedReading>& readings = monitor->stop();
    for (Measurement& m : out.measurements)
      for (const Entry& e : entries_)
        if (!e.windows.empty() && e.measurement.name() == m.name()) add_conditions(m, readings, e.windows);
    out.fingerprint = conditions_of_run(readings);
    return out;
  }

 private:
  /// Checks items, then takes their samples in random order. A stop loses only one block's checks.
  void measure(std::size_t begin, std::size_t end) {
    std::vector<TimedCase> cases;
    std::vector<Entry*> timed;
    for (std::size_t i = begin; i < end && stop_requested() == 0; ++i) {
      entries_.push_back({timed_[i].row, nullptr, 1, {}});
      progress_.update(done_++, entries_.back().measurement.kernel);
      Entry& entry = entries_.back();
      if (const auto found = known_.find(entry.measurement.name()); found != known_.end()) {
        entry.measurement = *found->second;
        done_ += static_cast<std::int64_t>(entry.measurement.samples.size());
        if (static_cast<int>(entry.measurement.samples.size()) >= options_.samples) continue;
      }
      try {
        cases.push_back(check(timed_[i], entry));
        timed.push_back(&entry);
      } catch (...) {
        entry.runner.reset();
        entry.measurement.samples.clear();  // earlier samples of a kernel that is now wrong
        fail(entry, current_error());
      }
    }
    if (stop_requested() != 0) cases.clear();
    const auto results = sample(cases, sampler_, *stopwatch_, [&](std::size_t i, double seconds) {
      timed[i]->measurement.samples.push_back(seconds * timed[i]->share);
      progress_.update(done_++);
      if (save_ && monotonic_s() - saved_s_ > kSaveEvery_s) save();
      return stop_requested() == 0;
    });
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].error.empty()) fail(*timed[i], results[i].error);
      timed[i]->runner.reset();
    }
    if (save_) save();
  }

  /// Checks one call, then returns the case to be timed.
  TimedCase check(const BenchCase& what, Entry& entry) {
    BenchCase smaller = what;
    if (what.make_checked) smaller.make = what.make_checked;
    ItemRunner checked(std::move(smaller), normal_);
    entry.measurement.counters["max_rel_error"] = checked.check();
    entry.share = checked.share();
    entry.measurement.backend = checked.backend();
    const bool in_loop_cold = checked.cold();
    checked.release();
    if (what.also) what.also(entry.measurement);
    entry.runner = std::make_unique<ItemRunner>(what, normal_);
    ItemRunner& runner = *entry.runner;
    const int sets = device_.is_cpu() || in_loop_cold || !what.beyond_l2 ? 1 : sets_beyond_l2(runner);
    const bool cold = in_loop_cold || sets == 0;
    const bool from_caches = !cold && sets == 1 && (device_.is_cpu() || !what.beyond_l2);
    entry.measurement.evidence = {
        entry.share == 1 ? Evidence::measured : Evidence::derived,
        fmt::format("{} samples, {} caches{}{}", options_.samples, from_caches ? "warm" : "cold",
                    sets > 1 ? fmt::format(" by {} sets of inputs", sets) : "",
                    entry.share == 1 ? "" : ", half of a call that does both passes")};
    TimedCase out{entry.measurement.name(),
                  [&runner, &entry, sets] {
                    runner.prepare(sets);
                    entry.windows.push_back({monotonic_s(), 0});
                  },
                  [&runner] { runner.call(); },
                  [&runner, &entry] {
                    // no window is open if prepare() failed
                    if (!entry.windows.empty() && entry.windows.back().end_s == 0)
                      entry.windows.back().end_s = monotonic_s();
                    runner.release();
                  },
                  {},
                  static_cast<int>(entry.measurement.samples.size())};
    if (cold) out.touch = [&runner] { runner.touch(); };
    return out;
  }

  /// Keeps the samples before the error: on a device, an error of one kernel fails all later calls.
  void fail(Entry& entry, const std::string& error) {
    failures_.push_back({entry.measurement.name(), error});
    fmt::print(stderr, "windtunnel bench: {} failed: {}\n", failures_.back().name, error);
  }

  Profile so_far() const {
    Profile out;
    for (const Entry& e : entries_)
      if (!e.measurement.samples.empty()) out.measurements.push_back(e.measurement);
    for (std::size_t i = entries_.size(); i < timed_.size(); ++i)  // not reached yet, but known from an earlier bench
      if (const auto found = known_.find(timed_[i].row.name()); found != known_.end())
        out.measurements.push_back(*found->second);
    out.failures = failures_;
    return out;
  }

  void save() {
    save_(so_far());
    saved_s_ = monotonic_s();
  }

  const SuiteOptions& options_;
  const std::function<void(const Profile&)>& save_;
  at::Device device_;
  std::vector<BenchCase> timed_;
  /// Index of our grouped kernels. On a device they run last, because a kernel that traps or hangs prevents all later
  /// measurements.
  std::size_t first_own_ = 0;
  NormalPool normal_;
  std::unique_ptr<Stopwatch> stopwatch_;
  Progress progress_;
  TimingOptions sampler_;
  std::map<std::string, const Measurement*> known_;
  std::deque<Entry> entries_;
  std::vector<FailedMeasurement> failures_;
  std::int64_t done_ = 0;
  double saved_s_ = monotonic_s();
};

}  // namespace

Profile bench_kernels(const KernelWork& work, const SuiteOptions& options, const Profile& known,
                      const std::function<void(const Profile&)>& save) {
  at::set_num_threads(1);  // as in training, where ranks share cores
  open_device(options.device);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);  // the kernels that training uses
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  return KernelSuite(work, options, known, save).run();
}

}  // namespace wt
