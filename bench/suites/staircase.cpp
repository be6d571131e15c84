#include "bench/suites/staircase.hpp"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "bench/suites/cases.hpp"
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

/// The gradient of a product's rows, dy w, or of its weight, dy^T x, with dy (rows, n), x (rows, k) and w (n, k).
BenchCase backward_product(const WorkItem& forward, bool of_weight, const RunSpec& run, at::Device device) {
  BenchCase out = bench_case(forward, run, device);
  out.row.kernel = of_weight ? "gemm_weight" : "gemm_rows";
  out.row.pass = to_string(Pass::backward);
  const auto as_gradient = [of_weight](std::function<KernelProblem(NormalPool&)> make) {
    return [of_weight, make = std::move(make)](NormalPool& normal) {
      KernelProblem p = make(normal);
      const at::Tensor dy = normal.take({p.inputs[0].size(0), p.inputs[1].size(0)}, p.inputs[0].scalar_type());
      p.inputs = {dy, p.inputs[of_weight ? 0 : 1]};
      p.run = p.reference = [of_weight](const Tensors& in) { return Tensors{of_weight ? at::mm(in[0].t(), in[1]) : at::mm(in[0], in[1])}; };
      p.through_autograd = false;
      return p;
    };
  };
  out.make = as_gradient(std::move(out.make));
  out.make_checked = as_gradient(std::move(out.make_checked));
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
      const WorkItem item = make_item(Kernel::gemm, Pass::forward, cpu ? Precision::fp32 : Precision::bf16, {static_cast<double>(rows), 0}, {n, k});
      if (item.flops(0) > most_flops) break;
      out.forward.push_back(item);
    }
    if (out.forward.size() == before) out.left_out.push_back(fmt::format("{} x {}", n, k));
  }
  static const RunSpec kNone;  // products have no model: their inputs are matrices
  for (const WorkItem& item : out.forward)
    for (bool of_weight : {false, true}) out.backward.push_back(backward_product(item, of_weight, kNone, device));
  return out;
}

}  // namespace wt
