#include "bench/suites/grouped_products.hpp"

#include <map>
#include <string>
#include <utility>

#include "bench/suites/aim_checks.hpp"
#include "trainer/model/functions.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;

constexpr const char* kOf[] = {"", "_rows", "_weight"};
// Differs from the kernel suite's loop, which uses the default library and allocates its results: hence another name.
constexpr const char* kBy[] = {"_own", "_library", "_cublaslt"};

/// Makes LibTorch use cuBLASLt for products during its lifetime; no effect on the CPU.
class ByCublasLt {
 public:
  explicit ByCublasLt(const Tensor& on)
      : on_(!on.is_cpu()), before_(on_ ? at::globalContext().blasPreferredBackend() : at::BlasBackend::Default) {
    if (on_) at::globalContext().setBlasPreferredBackend(at::BlasBackend::Cublaslt);
  }
  ~ByCublasLt() {
    if (on_) at::globalContext().setBlasPreferredBackend(before_);
  }
  ByCublasLt(const ByCublasLt&) = delete;
  ByCublasLt& operator=(const ByCublasLt&) = delete;

 private:
  bool on_;
  at::BlasBackend before_;
};

/// in: forward x (rows, k) and weight (groups, n, k); for rows dy (rows, n) and weight; for the weight dy and x.
void product_of_group(GroupedPass pass, const Tensors& in, const GroupedShape& s, std::int64_t g, Tensor out) {
  const auto part = [&](const Tensor& t) { return t.narrow(0, g * s.rows_each, s.rows_each); };
  Tensor to = pass == GroupedPass::weight ? out.select(0, g) : part(out);
  switch (pass) {
    case GroupedPass::forward:
      at::mm_out(to, part(in[0]), in[1].select(0, g).t());
      break;
    case GroupedPass::rows:
      at::mm_out(to, part(in[0]), in[1].select(0, g));
      break;
    case GroupedPass::weight:
      at::mm_out(to, part(in[0]).t(), part(in[1]));
      break;
  }
}

Tensors grouped(GroupedPass pass, ProductBy by, const Tensors& in, const Tensor& ends, const GroupedShape& s,
                const Tensor& out) {
  if (by == ProductBy::library) {
    if (pass == GroupedPass::forward) return {at::_grouped_mm(in[0], in[1].transpose(-2, -1), ends)};
    return {pass == GroupedPass::rows ? at::_grouped_mm(in[0], in[1], ends) : at::_grouped_mm(in[0].t(), in[1], ends)};
  }
  if (by == ProductBy::cublaslt) {
    const ByCublasLt library(in[0]);
    for (std::int64_t g = 0; g < s.groups; ++g) product_of_group(pass, in, s, g, out);
    return {out};
  }
  const auto form = pass == GroupedPass::forward ? wt_grouped_gemm_forward
                    : pass == GroupedPass::rows  ? wt_grouped_gemm_backward_rows
                                                 : wt_grouped_gemm_backward_weight;
  check_kernel(form(stream_of(in[0]), WT_BF16, in[0].data_ptr(), in[1].data_ptr(), ends.data_ptr<std::int32_t>(),
                    s.rows(), s.groups, s.n, s.k, out.data_ptr()));
  return {out};
}

/// Compares with fp64 group by group, on the operands' device: the host would take minutes for a GPU's sizes.
double grouped_error(GroupedPass pass, const Tensors& in, const GroupedShape& s, const Tensor& got) {
  double worst = 0;
  for (std::int64_t g = 0; g < s.groups; ++g) {
    const auto part = [&](const Tensor& t) { return t.narrow(0, g * s.rows_each, s.rows_each).to(at::kDouble); };
    if (pass == GroupedPass::weight) {
      worst = worse(worst, error_of(got.select(0, g), at::mm(part(in[0]).t(), part(in[1]))));
      continue;
    }
    const Tensor weight = in[1].select(0, g).to(at::kDouble);
    worst = worse(worst, error_of(part(got), at::mm(part(in[0]), pass == GroupedPass::forward ? weight.t() : weight)));
  }
  return worst;
}

BenchCase product_case(const std::string& kernel, const char* pass, std::map<std::string, std::int64_t> shape,
                       double flops, double bytes, at::Device device) {
  BenchCase out;
  out.row.kernel = kernel, out.row.pass = pass, out.row.dtype = "bf16";
  out.row.shape = std::move(shape);
  out.row.clock = clock_of(device);
  out.row.counters = {{"flops", flops}, {"bytes", bytes}};
  out.largest_error = 2 * kRounded;
  return out;
}

}  // namespace

BenchCase grouped_case(GroupedPass pass, ProductBy by, const GroupedShape& s, at::Device device) {
  const double words = static_cast<double>(s.rows() * (s.n + s.k) + s.groups * s.n * s.k);
  BenchCase out = product_case(std::string("grouped_gemm") + kBy[static_cast<int>(by)] + kOf[static_cast<int>(pass)],
                               pass == GroupedPass::forward ? "forward" : "backward",
                               {{"rows", s.rows()}, {"n", s.n}, {"k", s.k}, {"groups", s.groups}},
                               2.0 * static_cast<double>(s.rows()) * static_cast<double>(s.n * s.k), 2 * words, device);
  out.make = [=](NormalPool& normal) {
    const Tensor ends =
        at::arange(1, s.groups + 1, at::TensorOptions().dtype(at::kInt)).mul_(s.rows_each).to(normal.device());
    KernelProblem p;
    const auto of_rows = [&](std::int64_t width) { return normal.take({s.rows(), width}, at::kBFloat16); };
    if (pass == GroupedPass::weight)
      p.inputs = {of_rows(s.n), of_rows(s.k)};
    else
      p.inputs = {of_rows(pass == GroupedPass::forward ? s.k : s.n), normal.take({s.groups, s.n, s.k}, at::kBFloat16)};
    Tensor to;
    if (by != ProductBy::library)
      to = pass == GroupedPass::weight
               ? zeros_on_device_of(ends, {s.groups, s.n, s.k}, at::kBFloat16)
               : zeros_on_device_of(ends, {s.rows(), pass == GroupedPass::forward ? s.n : s.k}, at::kBFloat16);
    p.run = [=](const Tensors& in) { return grouped(pass, by, in, ends, s, to); };
    p.verify = [=](const Tensors& in, const Tensors& got) { return grouped_error(pass, in, s, got[0]); };
    return p;
  };
  return out;
}

BenchCase dense_case(const GroupedShape& s, at::Device device) {
  const GroupedShape one{1, s.rows(), s.n, s.k};
  BenchCase out = product_case("gemm_cublaslt", "forward", {{"rows", one.rows()}, {"n", s.n}, {"k", s.k}},
                               2.0 * static_cast<double>(one.rows()) * static_cast<double>(s.n * s.k),
                               2.0 * static_cast<double>(one.rows() * (s.n + s.k) + s.n * s.k), device);
  out.make = [=](NormalPool& normal) {
    KernelProblem p;
    p.inputs = {normal.take({one.rows(), s.k}, at::kBFloat16), normal.take({1, s.n, s.k}, at::kBFloat16)};
    const Tensor to = zeros_on_device_of(p.inputs[0], {one.rows(), s.n}, at::kBFloat16);
    p.run = [=](const Tensors& in) { return grouped(GroupedPass::forward, ProductBy::cublaslt, in, {}, one, to); };
    p.verify = [=](const Tensors& in, const Tensors& got) {
      return grouped_error(GroupedPass::forward, in, one, got[0]);
    };
    return p;
  };
  return out;
}

bool has_own_product(at::Device device) {
  if (device.is_cpu()) return true;
  const Tensor weight = at::empty({1, 8, 8}, at::TensorOptions().dtype(at::kBFloat16).device(device));
  return own_grouped_product(weight[0], weight);
}

}  // namespace wt
