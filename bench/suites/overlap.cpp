// Products during a collective, and each of the two alone: how much communication and computation slow each other.
#include <algorithm>

#include "bench/suites/collective_case.hpp"
#include "bench/suites/item_runner.hpp"
#include "bench/suites/rank_suite.hpp"
#include "configs/base/error.hpp"
#include "configs/base/statistics.hpp"
#include "trainer/device/device.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;

constexpr std::int64_t kCpuWidth = 256,
                       kDeviceWidth = 4096;  // a product takes some 0.4 ms on a core, 0.2 ms on an H100
/// Time of the products relative to the collective's, each alone, so that the collective outlasts the products.
constexpr double kShare = 0.5;
constexpr int kProbes = 3;

/// out = a b with square matrices of small whole numbers; always the same operands, so that caches are warm.
struct Products {
  Tensor a, b, out;
  int calls = 1;
  explicit Products(at::Device device) {
    const std::int64_t width = device.is_cpu() ? kCpuWidth : kDeviceWidth;
    const auto options = at::TensorOptions(device).dtype(device.is_cpu() ? at::kFloat : at::kBFloat16);
    a = at::randint(-2, 3, {width, width}, options), b = at::randint(-2, 3, {width, width}, options),
    out = at::zeros({width, width}, options);
  }
  void run() {
    for (int i = 0; i < calls; ++i) at::mm_out(out, a, b);
  }
  /// Largest error relative to the largest value.
  double error() const {
    const Tensor want = at::mm(a.to(at::kFloat), b.to(at::kFloat));
    return ((out.to(at::kFloat) - want).abs().max() / want.abs().max()).item<double>();
  }
};

struct Times {
  double gemm_s = 0;        ///< one product
  double collective_s = 0;  ///< until its wait returned
};

/// Times one of the two, or both: the collective is issued first and waited for last.
Times take(const RankSuite& suite, Products* products, CollectiveCase* collective) {
  if (collective) collective->prepare();
  suite.communicators.barrier();
  suite.clock.begin();
  suite.clock.mark();
  const Pending pending = collective ? collective->issue() : nullptr;
  const StepClock::Mark begin = suite.clock.mark();
  if (products) products->run();
  const StepClock::Mark computed = suite.clock.mark();
  if (pending) pending->wait();
  const StepClock::Mark end = suite.clock.mark();
  wait_for_device(suite.clock.device());
  const double calls = products ? products->calls : 1;
  return {(suite.clock.seconds(computed) - suite.clock.seconds(begin)) / calls, suite.clock.seconds(end)};
}

Measurement row_of(const RankSuite& suite, const Products& products, const CollectiveCase& c) {
  const bool on_cpu = suite.clock.device().is_cpu();
  Measurement m = rank_row("gemm_beside_" + to_string(c.kind()), c.bytes(), c.ranks());
  m.dtype = on_cpu ? "fp32" : "bf16";
  m.shape["nodes"] = 1;
  m.shape["width"] = products.a.size(0);
  if (!on_cpu) m.clock = "device";
  return m;
}

/// Number of products per collective. Rank 0 decides for all ranks.
int products_beside(const RankSuite& suite, Products& products, CollectiveCase& collective, const std::string& key) {
  std::vector<double> gemm, alone;
  products.calls = 1;
  for (int i = 0; i < kProbes; ++i) {
    gemm.push_back(take(suite, &products, nullptr).gemm_s);
    alone.push_back(take(suite, nullptr, &collective).collective_s);
  }
  SharedStore& store = suite.communicators.store();
  if (suite.communicators.rank() == 0)
    store.set(key,
              std::to_string(std::max(1, static_cast<int>(kShare * median(alone) / std::max(median(gemm), 1e-6)))));
  return std::stoi(store.get(key));
}

}  // namespace

void bench_overlap(const RankSuite& suite, RankRows& rows) {
  const RankSuiteOptions& o = suite.options;
  const at::Device device = suite.clock.device();
  Products products(device);
  std::vector<CollectiveCase> cases;
  for (CollectiveKind kind : kCollectiveKinds)
    for (std::int64_t bytes : o.bytes) {
      cases.emplace_back(suite.communicators, suite.mesh, Axis::shard, kind, bytes, o.seed, device);
      if (rows.has(row_of(suite, products, cases.back()))) cases.pop_back();
    }
  if (cases.empty()) return;
  std::vector<int> calls;
  std::vector<RankCase> gemm_beside(cases.size()), gemm_alone = gemm_beside, beside = gemm_beside, alone = gemm_beside;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    calls.push_back(products_beside(suite, products, cases[i], fmt::format("bench/products/{}", i)));
    gemm_beside[i].error = cases[i].wrong();
    cases[i].release();
  }
  CaseWindows windows(device, cases.size());
  for (std::size_t i : sample_order(cases.size(), o.samples, o.seed)) {
    windows.begin(i);
    products.calls = calls[i];
    gemm_alone[i].samples.push_back({take(suite, &products, nullptr).gemm_s, 0, 0});
    alone[i].samples.push_back({take(suite, nullptr, &cases[i]).collective_s, 0, 0});
    const Times both = take(suite, &products, &cases[i]);
    if (gemm_beside[i].error.empty()) gemm_beside[i].error = cases[i].wrong();
    gemm_beside[i].samples.push_back({both.gemm_s, 0, 0});
    beside[i].samples.push_back({both.collective_s, 0, 0});
    windows.end(i);
    cases[i].release();
  }
  const auto seen = windows.conditions();
  for (std::size_t i = 0; i < cases.size(); ++i) gemm_beside[i].device = seen[i];
  const double error = products.error(),
               allowed = largest_allowed_error(device.is_cpu() ? Precision::fp32 : Precision::bf16);
  if (!(error <= allowed))
    for (RankCase& c : gemm_beside)
      c.error =
          fmt::format("the product beside it is off by {:.2g} of its largest value, allowed {:.2g}", error, allowed);
  const auto gathered = gather_cases(suite, "gemm_beside", gemm_beside),
             gemms = gather_cases(suite, "gemm_alone", gemm_alone), besides = gather_cases(suite, "beside", beside),
             alones = gather_cases(suite, "alone", alone);
  Profile out;
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    const auto seconds = [&](const std::vector<RankCase>& by_rank) { return rank_measurement({}, by_rank).median(); };
    Measurement m = rank_measurement(row_of(suite, products, cases[i]), gathered[i]);
    const double width = static_cast<double>(products.a.size(0));
    m.counters = {{"gemm_alone_s", seconds(gemms[i])},
                  {"gemm_beside_s", m.median()},
                  {"collective_alone_s", seconds(alones[i])},
                  {"collective_beside_s", seconds(besides[i])},
                  {"max_rel_error", error},
                  {"flops", 2 * width * width * width}};
    m.counters["lost_share"] = 1 - m.counters["gemm_alone_s"] / m.counters["gemm_beside_s"];
    add_row(out, std::move(m), gathered[i]);
  }
  rows.add(out);
}

}  // namespace wt
