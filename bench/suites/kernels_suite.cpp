#include "bench/suites/kernels_suite.hpp"

#include <memory>
#include <optional>

#include "bench/profile/device_monitor.hpp"
#include "bench/suites/cases.hpp"
#include "bench/suites/item_runner.hpp"
#include "bench/suites/sampler.hpp"
#include "bench/suites/stopwatch.hpp"
#include "configs/spec/error.hpp"
#include "reports/progress.hpp"
#include "trainer/device.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

constexpr double kMostReferenceFlops = 2e9;  // fp64 references beyond this are taken on fewer rows

// Inputs that take turns on a device hold this much together: more than four times 60 MB, which no L2 so far exceeds.
constexpr std::int64_t kRotated_bytes = std::int64_t{256} << 20;
constexpr std::int64_t kMostSets = 64;  // smaller inputs are flushed from the L2 instead

bool moves_memory(Kernel kernel) {
  return kernel != Kernel::gemm && kernel != Kernel::grouped_gemm && kernel != Kernel::attention;
}

/// Sets of inputs that outgrow a device's L2; 0 where that would be too many.
int sets_beyond_l2(ItemRunner& runner) {
  runner.prepare();
  const std::int64_t bytes = std::max<std::int64_t>(1, runner.input_bytes());
  runner.release();
  const std::int64_t sets = (kRotated_bytes + bytes - 1) / bytes;
  return sets > kMostSets ? 0 : static_cast<int>(sets);
}

/// The item itself, or so few of its rows that the fp64 reference takes about a tenth of a second.
WorkItem checked_item(const WorkItem& item) {
  WorkItem out = item;
  if (const double flops = item.flops(0); flops > kMostReferenceFlops)
    out.rows.fixed = std::max(1.0, std::floor(item.rows.fixed * kMostReferenceFlops / flops));
  return out;
}

Measurement measurement(const WorkItem& item, at::Device device) {
  Measurement m;
  m.kernel = to_string(item.kernel);
  m.pass = to_string(item.pass);
  m.dtype = to_string(item.precision);
  m.shape = item.shape(0);
  m.clock = device.is_cpu() ? "thread_cpu" : "device";
  m.counters = {{"flops", item.flops(0)}, {"bytes", item.bytes(0)}};
  return m;
}

}  // namespace

Profile bench_kernels(const RunSpec& run, const SuiteOptions& options) {
  at::set_num_threads(1);  // as in training: ranks share cores
  const at::Device device = open_device(options.device);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);  // the kernels that training takes
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  NormalPool normal(options.seed, device);
  const std::vector<WorkItem> items = kernel_cases(run, options.quick);

  Profile profile;
  std::vector<Measurement>& out = profile.measurements;
  std::vector<std::vector<TimeWindow>> windows(items.size());  ///< when the samples of each were taken
  std::vector<std::unique_ptr<ItemRunner>> runners;
  std::vector<TimedCase> cases;
  Progress checking("checking kernels", static_cast<std::int64_t>(items.size()));
  for (const WorkItem& item : items) {
    Measurement m = measurement(item, device);
    checking.update(static_cast<std::int64_t>(out.size()), m.kernel);
    ItemRunner checked(checked_item(item), run, normal);
    m.counters["max_rel_error"] = checked.check();
    const double share = checked.share();
    const bool in_loop_cold = checked.cold();
    checked.release();
    runners.push_back(std::make_unique<ItemRunner>(item, run, normal));
    ItemRunner& runner = *runners.back();
    const int sets = device.is_cpu() || in_loop_cold || !moves_memory(item.kernel) ? 1 : sets_beyond_l2(runner);
    const bool cold = in_loop_cold || sets == 0;
    m.evidence = {share == 1 ? Evidence::measured : Evidence::derived,
                  fmt::format("{} samples, {} caches{}{}", options.samples, cold || sets > 1 ? "cold" : "warm",
                              sets > 1 ? fmt::format(" by {} sets of inputs", sets) : "",
                              share == 1 ? "" : ", half of a call that does both passes")};
    std::vector<TimeWindow>& taken = windows[out.size()];
    cases.push_back({m.name(),
                     [&runner, &taken, sets] {
                       runner.prepare(sets);
                       taken.push_back({monotonic_s(), monotonic_s()});
                     },
                     [&runner] { runner.call(); },
                     [&runner, &taken] {
                       taken.back().end_s = monotonic_s();
                       runner.release();
                     },
                     {}});
    if (cold) cases.back().touch = [&runner] { runner.touch(); };
    m.counters["share"] = share;
    out.push_back(std::move(m));
  }
  checking.finish();

  Progress timing("timing kernels", static_cast<std::int64_t>(items.size()) * options.samples);
  SamplerOptions sampler;
  sampler.samples = options.samples;
  sampler.sample_s = options.quick ? 2e-3 : 10e-3;
  sampler.cold_calls = options.quick ? 1 : 3;
  if (!device.is_cpu()) sampler.most_calls = 200;  // a launch queue holds about 1000 launches
  const std::unique_ptr<Stopwatch> stopwatch = make_stopwatch(device);
  std::optional<DeviceMonitor> monitor;
  if (const Fingerprint facts = device_facts(device); !device.is_cpu() && !facts.count("run.nvml"))
    if (auto managed = open_nvml_device(facts.at("gpu_uuid"))) monitor.emplace(std::move(*managed));
  const auto samples = sample(cases, sampler, *stopwatch, [&](int done, int) { timing.update(done); });
  for (std::size_t i = 0; i < out.size(); ++i)
    for (double sample : samples[i]) out[i].samples.push_back(sample * out[i].counters["share"]);
  for (Measurement& m : out) m.counters.erase("share");
  if (monitor) {
    const std::vector<TimedReading>& readings = monitor->stop();
    for (std::size_t i = 0; i < out.size(); ++i) add_conditions(out[i], readings, windows[i]);
    profile.fingerprint = conditions_of_run(readings);
  }
  return profile;
}

}  // namespace wt
