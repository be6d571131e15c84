#include "bench/suites/kernels_suite.hpp"

#include <memory>

#include "bench/suites/cases.hpp"
#include "bench/suites/item_runner.hpp"
#include "bench/suites/sampler.hpp"
#include "configs/spec/error.hpp"
#include "reports/progress.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

constexpr double kMostReferenceFlops = 2e9;  // fp64 references beyond this are taken on fewer rows

/// The item itself, or so few of its rows that the fp64 reference takes about a tenth of a second.
WorkItem checked_item(const WorkItem& item) {
  WorkItem out = item;
  if (const double flops = item.flops(0); flops > kMostReferenceFlops)
    out.rows.fixed = std::max(1.0, std::floor(item.rows.fixed * kMostReferenceFlops / flops));
  return out;
}

Measurement measurement(const WorkItem& item) {
  Measurement m;
  m.kernel = to_string(item.kernel);
  m.pass = to_string(item.pass);
  m.dtype = to_string(item.precision);
  m.shape = item.shape(0);
  m.clock = "thread_cpu";
  m.counters = {{"flops", item.flops(0)}, {"bytes", item.bytes(0)}};
  return m;
}

}  // namespace

std::vector<Measurement> bench_kernels(const RunSpec& run, const SuiteOptions& options) {
  at::set_num_threads(1);  // as in training: ranks share cores
  at::globalContext().setDeterministicAlgorithms(true, false);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  NormalPool normal(options.seed);
  const std::vector<WorkItem> items = kernel_cases(run, options.quick);

  std::vector<Measurement> out;
  std::vector<std::unique_ptr<ItemRunner>> runners;
  std::vector<TimedCase> cases;
  Progress checking("checking kernels", static_cast<std::int64_t>(items.size()));
  for (const WorkItem& item : items) {
    Measurement m = measurement(item);
    checking.update(static_cast<std::int64_t>(out.size()), m.kernel);
    ItemRunner checked(checked_item(item), run, normal);
    m.counters["max_rel_error"] = checked.check();
    const double share = checked.share();
    m.evidence = {share == 1 ? Evidence::measured : Evidence::derived,
                  fmt::format("{} samples, {} caches{}", options.samples, checked.cold() ? "cold" : "warm",
                              share == 1 ? "" : ", half of a call that does both passes")};
    runners.push_back(std::make_unique<ItemRunner>(item, run, normal));
    ItemRunner& runner = *runners.back();
    cases.push_back(
        {m.name(), [&runner] { runner.prepare(); }, [&runner] { runner.call(); }, [&runner] { runner.release(); }, {}});
    if (checked.cold()) cases.back().touch = [&runner] { runner.touch(); };
    m.counters["share"] = share;
    out.push_back(std::move(m));
  }
  checking.finish();

  Progress timing("timing kernels", static_cast<std::int64_t>(items.size()) * options.samples);
  SamplerOptions sampler;
  sampler.samples = options.samples;
  sampler.sample_s = options.quick ? 2e-3 : 10e-3;
  sampler.cold_calls = options.quick ? 1 : 3;
  const auto samples = sample_thread_cpu(cases, sampler, [&](int done, int) { timing.update(done); });
  for (std::size_t i = 0; i < out.size(); ++i)
    for (double sample : samples[i]) out[i].samples.push_back(sample * out[i].counters["share"]);
  for (Measurement& m : out) m.counters.erase("share");
  return out;
}

}  // namespace wt
