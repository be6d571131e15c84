#include "bench/suites/staircase.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "bench/work/cases.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

constexpr std::int64_t kFewestRows = 64, kMostRows = 16384, kFewestRowsQuick = 256;

using Shape = std::pair<std::int64_t, std::int64_t>;  // n, k

std::set<Shape> shapes_of(const ModelSpec& model) {
  RunSpec run;
  run.model = model;
  run.seq = run.global_batch = 1;
  StepItems items;
  items.add(build_program_set(model, run.layout, program_options(run)), static_cast<double>(model.top_k));
  std::set<Shape> out;
  for (const WorkItem& item : items.list())
    if (item.kernel == Kernel::gemm) out.insert({item.dims[0], item.dims[1]});
  return out;
}

std::vector<std::int64_t> row_counts(bool quick) {
  std::vector<std::int64_t> out;
  for (std::int64_t rows = quick ? kFewestRowsQuick : kFewestRows; rows <= kMostRows; rows *= 2) {
    out.push_back(rows);
    if (!quick && rows < kMostRows) out.push_back(rows + rows / 2);
  }
  return out;
}

/// The gradient of a product's rows (dy w) or of its weight (dy^T x), with dy (rows, n), x (rows, k) and w (n, k).
KernelProblem gradient(bool of_weight, std::int64_t rows, std::int64_t n, std::int64_t k, at::ScalarType type,
                       NormalPool& normal) {
  KernelProblem p;
  p.inputs = {normal.take({rows, n}, type), normal.take({of_weight ? rows : n, k}, type)};
  p.run = p.reference = [of_weight](const Tensors& in) {
    return Tensors{of_weight ? at::mm(in[0].t(), in[1]) : at::mm(in[0], in[1])};
  };
  return p;
}

BenchCase backward_product(const WorkItem& forward, bool of_weight, const RunSpec& run, at::Device device) {
  BenchCase out = bench_case(forward, run, device);
  out.row.kernel = of_weight ? "gemm_weight" : "gemm_rows";
  out.row.pass = to_string(Pass::backward);
  const auto type = forward.precision == Precision::fp32 ? at::kFloat : at::kBFloat16;
  const std::int64_t rows = std::llround(forward.rows.fixed), n = forward.dims[0], k = forward.dims[1];
  const auto shorter = [&](std::int64_t size) {  // compares fewer rows of the result; each is computed in full
    return std::max<std::int64_t>(
        1, std::llround(static_cast<double>(size) * std::min(1.0, kMostReferenceFlops / forward.flops(0))));
  };
  out.make = [=](NormalPool& normal) { return gradient(of_weight, rows, n, k, type, normal); };
  out.make_checked = [=, rows = of_weight ? rows : shorter(rows), n = of_weight ? shorter(n) : n](NormalPool& normal) {
    return gradient(of_weight, rows, n, k, type, normal);
  };
  return out;
}

}  // namespace

Staircase gemm_staircase(const std::vector<ModelSpec>& models, at::Device device, bool quick) {
  const bool cpu = device.is_cpu();
  const double most_flops = cpu ? (quick ? 1e10 : 4e10) : 2e13;
  std::set<Shape> shapes;
  for (const ModelSpec& model : models) shapes.merge(shapes_of(model));
  Staircase out;
  for (const auto& [n, k] : shapes) {
    const std::size_t before = out.forward.size();
    for (std::int64_t rows : row_counts(quick)) {
      const WorkItem item = make_item(Kernel::gemm, Pass::forward, cpu ? Precision::fp32 : Precision::bf16,
                                      {static_cast<double>(rows), 0}, {n, k});
      if (item.flops(0) > most_flops) break;
      out.forward.push_back(item);
    }
    if (out.forward.size() == before) out.left_out.push_back(fmt::format("{} x {}", n, k));
  }
  static const RunSpec kNone;  // products need no model, only matrices
  for (const WorkItem& item : out.forward)
    for (bool of_weight : {false, true}) out.backward.push_back(backward_product(item, of_weight, kNone, device));
  return out;
}

}  // namespace wt
