#include "bench/suites/bench_case.hpp"

#include <algorithm>
#include <cmath>

#include "bench/work/cases.hpp"
#include "trainer/model/functions.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

/// The item itself, or with so few rows that the fp64 reference takes about a tenth of a second.
WorkItem checked_item(const WorkItem& item) {
  WorkItem out = item;
  if (const double flops = item.flops(0); flops > kMostReferenceFlops)
    out.rows.fixed = std::max(1.0, std::floor(item.rows.fixed * kMostReferenceFlops / flops));
  return out;
}

std::vector<GroupedAs> ways(const WorkItem& item, at::Device device) {
  std::vector<GroupedAs> out{GroupedAs::picked};
  if (item.kernel != Kernel::grouped_gemm || device.is_cpu() || item.precision == Precision::fp32) return out;
  out.push_back(GroupedAs::library);
  const auto options = at::TensorOptions().dtype(at::kBFloat16).device(device);
  const at::Tensor weight = at::empty({1, item.dims[0], item.dims[1]}, options);
  if (own_grouped_product(weight[0], weight)) out.push_back(GroupedAs::own);
  if (item.pass == Pass::forward) out.push_back(GroupedAs::loop);
  return out;
}

}  // namespace

double largest_allowed_error(Precision precision) { return precision == Precision::fp32 ? 1e-4 : 3e-2; }

BenchCase bench_case(const WorkItem& item, const RunSpec& run, at::Device device, GroupedAs as) {
  constexpr const char* kNames[] = {"", "_library", "_own", "_loop"};
  BenchCase out;
  Measurement& m = out.row;
  m.kernel = to_string(item.kernel) + kNames[static_cast<int>(as)];
  m.pass = to_string(item.pass);
  m.dtype = to_string(item.precision);
  m.shape = item.shape(0);
  m.clock = clock_of(device);
  m.counters = {{"flops", item.flops(0)}, {"bytes", item.bytes(0)}};
  out.backward = item.pass == Pass::backward;
  out.largest_error = largest_allowed_error(item.precision);
  out.make = [item, &run, as](NormalPool& normal) { return make_problem(item, run, normal, as); };
  out.make_checked = [item = checked_item(item), &run, as](NormalPool& normal) {
    return make_problem(item, run, normal, as);
  };
  return out;
}

std::vector<BenchCase> bench_cases(const std::vector<WorkItem>& items, const RunSpec& run, at::Device device) {
  std::vector<BenchCase> out;
  for (const WorkItem& item : items)
    for (GroupedAs as : ways(item, device)) out.push_back(bench_case(item, run, device, as));
  return out;
}

}  // namespace wt
