#include "bench/suites/aims.hpp"

#include <fmt/core.h>

#include <map>
#include <utility>

#include "bench/suites/aim_checks.hpp"
#include "bench/suites/grouped_products.hpp"
#include "trainer/model/functions.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;

constexpr double kOfCopy = 0.85, kRouter_s = 10e-6, kOfDense = 0.90;
constexpr double kInt8 = 1.0 / 254 + 1e-4, kFp8 = 1.0 / 16 + 1e-4;  // relative to a block's largest value (kernels.h)

/// A row for a kernel of the C API, in bf16 on `rows` rows of `width`.
BenchCase kernel_case(const char* kernel, const char* pass, std::int64_t rows, std::int64_t width, double bytes,
                      double largest_error, at::Device device, std::function<KernelProblem(NormalPool&)> make) {
  BenchCase out;
  out.row.kernel = kernel, out.row.pass = pass, out.row.dtype = "bf16";
  out.row.shape = {{"rows", rows}, {"width", width}};
  out.row.clock = clock_of(device);
  out.row.counters = {{"bytes", bytes}};
  out.largest_error = largest_error;
  out.make = std::move(make);
  return out;
}

/// The position of each token's rows after sorting by random experts.
struct Order {
  Tensor order, inverse;
  Order(std::int64_t tokens, std::int64_t k, NormalPool& normal) {
    const Tensor expert = at::randint(16, {tokens * k}, at::make_generator<at::CPUGeneratorImpl>(normal.seed()),
                                      at::TensorOptions().dtype(at::kLong))
                              .to(normal.device());
    sort_rows(expert, 16, order = at::empty_like(expert), inverse = at::empty_like(expert));
  }
};

const std::int64_t* indices(const Tensor& t) { return t.data_ptr<std::int64_t>(); }

// Bytes: inputs are read once, outputs written once, as in bench/studies/kernels/bandwidth.cpp.
void add_moves(std::vector<BenchCase>& out, std::int64_t T, std::int64_t k, std::int64_t D, at::Device device) {
  const std::int64_t N = T * k;
  const double t = 2.0 * static_cast<double>(T * D), n = 2.0 * static_cast<double>(N * D),
               index = 8.0 * static_cast<double>(N), weight = 4.0 * static_cast<double>(N);
  out.push_back(kernel_case("permute", "forward", N, D, t + n + index, 0, device, [=](NormalPool& normal) {
    const Order o(T, k, normal);
    KernelProblem p;
    p.inputs = {normal.take({T, D}, at::kBFloat16)};
    const Tensor y = zeros_on_device_of(p.inputs[0], {N, D}, at::kBFloat16);
    p.run = [=](const Tensors& in) {
      check_kernel(
          wt_permute_forward(stream_of(in[0]), WT_BF16, in[0].data_ptr(), indices(o.order), T, k, D, y.data_ptr()));
      return Tensors{y};
    };
    p.verify = [=](const Tensors& in, const Tensors& got) {
      return at::equal(got[0], in[0].index_select(0, o.order.floor_divide(k))) ? 0.0 : 1.0;
    };
    return p;
  }));
  out.push_back(kernel_case("permute", "backward", N, D, t + n + index, kRounded, device, [=](NormalPool& normal) {
    const Order o(T, k, normal);
    KernelProblem p;
    p.inputs = {normal.take({N, D}, at::kBFloat16)};
    const Tensor dx = zeros_on_device_of(p.inputs[0], {T, D}, at::kBFloat16);
    p.run = [=](const Tensors& in) {
      check_kernel(wt_permute_backward(stream_of(in[0]), WT_BF16, in[0].data_ptr(), indices(o.inverse), T, k, D, 0,
                                       dx.data_ptr()));
      return Tensors{dx};
    };
    p.verify = [=](const Tensors& in, const Tensors& got) {
      return error_of(got[0], in[0].index_select(0, o.inverse).to(at::kFloat).view({T, k, D}).sum(1));
    };
    return p;
  }));
  out.push_back(
      kernel_case("combine", "forward", N, D, 2 * t + n + index + weight, kRounded, device, [=](NormalPool& normal) {
        const Order o(T, k, normal);
        KernelProblem p;
        p.inputs = {normal.take({N, D}, at::kBFloat16), normal.take({T, k}, at::kFloat),
                    normal.take({T, D}, at::kBFloat16)};
        const Tensor y = zeros_on_device_of(p.inputs[0], {T, D}, at::kBFloat16);
        p.run = [=](const Tensors& in) {
          check_kernel(wt_combine_forward(stream_of(in[0]), WT_BF16, in[0].data_ptr(), indices(o.inverse),
                                          in[1].data_ptr<float>(), in[2].data_ptr(), T, k, D, y.data_ptr()));
          return Tensors{y};
        };
        p.verify = [=](const Tensors& in, const Tensors& got) {
          const Tensor rows = in[0].index_select(0, o.inverse).to(at::kFloat).view({T, k, D});
          return error_of(got[0], in[2].to(at::kFloat) + (rows * in[1].unsqueeze(2)).sum(1));
        };
        return p;
      }));
  out.push_back(kernel_case(
      "combine", "backward", N, D, t + 2 * n + index + 2 * weight, kRounded, device, [=](NormalPool& normal) {
        const Order o(T, k, normal);
        KernelProblem p;
        p.inputs = {normal.take({T, D}, at::kBFloat16), normal.take({N, D}, at::kBFloat16),
                    normal.take({T, k}, at::kFloat)};
        const Tensor drows = zeros_on_device_of(p.inputs[0], {N, D}, at::kBFloat16),
                     dweights = zeros_on_device_of(p.inputs[0], {T, k}, at::kFloat);
        p.run = [=](const Tensors& in) {
          check_kernel(wt_combine_backward(stream_of(in[0]), WT_BF16, in[0].data_ptr(), in[1].data_ptr(),
                                           indices(o.inverse), in[2].data_ptr<float>(), T, k, D, drows.data_ptr(),
                                           dweights.data_ptr<float>()));
          return Tensors{drows, dweights};
        };
        p.verify = [=](const Tensors& in, const Tensors& got) {
          const Tensor dout = in[0].to(at::kFloat).unsqueeze(1);
          const double rows = error_of(got[0].index_select(0, o.inverse).view({T, k, D}), dout * in[2].unsqueeze(2));
          return worse(
              rows, error_of(got[1], (in[1].index_select(0, o.inverse).to(at::kFloat).view({T, k, D}) * dout).sum(2)));
        };
        return p;
      }));
}

void add_swiglu(std::vector<BenchCase>& out, std::int64_t R, std::int64_t F, at::Device device) {
  const double a = 2.0 * static_cast<double>(R * F);
  out.push_back(kernel_case("swiglu", "forward", R, F, 3 * a, kRounded, device, [=](NormalPool& normal) {
    KernelProblem p;
    p.inputs = {normal.take({R, 2 * F}, at::kBFloat16)};
    const Tensor act = zeros_on_device_of(p.inputs[0], {R, F}, at::kBFloat16);
    p.run = [=](const Tensors& in) {
      check_kernel(wt_swiglu_forward(stream_of(in[0]), WT_BF16, in[0].data_ptr(), R, F, act.data_ptr()));
      return Tensors{act};
    };
    p.verify = [](const Tensors& in, const Tensors& got) {
      const auto halves = in[0].to(at::kFloat).chunk(2, 1);
      return error_of(got[0], at::silu(halves[0]) * halves[1]);
    };
    return p;
  }));
  out.push_back(kernel_case("swiglu", "backward", R, F, 5 * a, kRounded, device, [=](NormalPool& normal) {
    KernelProblem p;
    p.inputs = {normal.take({R, F}, at::kBFloat16), normal.take({R, 2 * F}, at::kBFloat16)};
    const Tensor d = zeros_on_device_of(p.inputs[0], {R, 2 * F}, at::kBFloat16);
    p.run = [=](const Tensors& in) {
      check_kernel(
          wt_swiglu_backward(stream_of(in[0]), WT_BF16, in[0].data_ptr(), in[1].data_ptr(), R, F, d.data_ptr()));
      return Tensors{d};
    };
    p.verify = [](const Tensors& in, const Tensors& got) {
      const auto halves = in[1].to(at::kFloat).chunk(2, 1), found = got[0].chunk(2, 1);
      const Tensor dact = in[0].to(at::kFloat), s = halves[0].sigmoid();
      const double gate = error_of(found[0], dact * halves[1] * s * (1 + halves[0] * (1 - s)));
      return worse(gate, error_of(found[1], dact * halves[0] * s));
    };
    return p;
  }));
}

/// Decodes values, with one scale per block of a row.
Tensor decoded(const Tensor& codes, const Tensor& scales, WtBlockFormat format) {
  const Tensor values = codes.view(format == WT_INT8 ? at::kChar : at::kFloat8_e4m3fn).to(at::kFloat);
  return (values.view({codes.size(0), -1, WT_QUANTIZE_BLOCK}) * scales.unsqueeze(2)).view(codes.sizes());
}

void add_quantise(std::vector<BenchCase>& out, WtBlockFormat format, std::int64_t R, std::int64_t D,
                  at::Device device) {
  const bool int8 = format == WT_INT8;
  const double bytes = 3.0 * static_cast<double>(R * D) + static_cast<double>(R * D / 32);
  const std::int64_t blocks = D / WT_QUANTIZE_BLOCK;
  out.push_back(kernel_case(
      int8 ? "quantize_int8" : "quantize_fp8", "", R, D, bytes, int8 ? kInt8 : kFp8, device, [=](NormalPool& normal) {
        KernelProblem p;
        p.inputs = {normal.take({R, D}, at::kBFloat16)};
        const Tensor codes = zeros_on_device_of(p.inputs[0], {R, D}, at::kByte),
                     scales = zeros_on_device_of(p.inputs[0], {R, blocks}, at::kFloat);
        p.run = [=](const Tensors& in) {
          check_kernel(wt_quantize_blocks(stream_of(in[0]), WT_BF16, format, in[0].data_ptr(), R, D, codes.data_ptr(),
                                          scales.data_ptr<float>()));
          return Tensors{codes, scales};
        };
        p.verify = [=](const Tensors& in, const Tensors& got) {
          const Tensor want = in[0].to(at::kFloat).view({R, blocks, WT_QUANTIZE_BLOCK});
          const Tensor off = (decoded(got[0], got[1], format).view(want.sizes()) - want).abs();
          return (std::get<0>(off.max(2)) / std::get<0>(want.abs().max(2)).clamp_min(1e-30)).max().item<double>();
        };
        return p;
      }));
  out.push_back(kernel_case(
      int8 ? "dequantize_int8" : "dequantize_fp8", "", R, D, bytes, kRounded, device, [=](NormalPool& normal) {
        KernelProblem p;
        const Tensor values = normal.take({R, D}, at::kBFloat16);
        p.inputs = {zeros_on_device_of(values, {R, D}, at::kByte), zeros_on_device_of(values, {R, blocks}, at::kFloat)};
        check_kernel(wt_quantize_blocks(stream_of(values), WT_BF16, format, values.data_ptr(), R, D,
                                        p.inputs[0].data_ptr(), p.inputs[1].data_ptr<float>()));
        const Tensor x = zeros_on_device_of(values, {R, D}, at::kBFloat16);
        p.run = [=](const Tensors& in) {
          check_kernel(wt_dequantize_blocks(stream_of(in[0]), WT_BF16, format, in[0].data_ptr(),
                                            in[1].data_ptr<float>(), R, D, x.data_ptr()));
          return Tensors{x};
        };
        p.verify = [=](const Tensors& in, const Tensors& got) {
          return error_of(got[0], decoded(in[0], in[1], format));
        };
        return p;
      }));
}

/// Logits to choices, weights, counts and the sums for balancing losses, in one call.
BenchCase router_case(WtRouterScore score, std::int64_t T, std::int64_t E, std::int64_t k, at::Device device) {
  BenchCase out;
  out.row.kernel = score == WT_SOFTMAX ? "router_softmax" : "router_sigmoid", out.row.dtype = "fp32";
  out.row.shape = {{"rows", T}, {"experts", E}, {"top_k", k}};
  out.row.clock = clock_of(device);
  out.row.counters = {{"bytes", static_cast<double>(8 * T * E + 12 * T * k)}};
  out.largest_error = 1e-4;
  out.make = [=](NormalPool& normal) {
    WtRouterSpec spec{};
    spec.T = T, spec.E = E, spec.k = k, spec.sequence = T, spec.score = score, spec.groups = spec.top_groups = 1,
    spec.group_best = 1;
    spec.normalize = 1, spec.scale = 1;
    KernelProblem p;
    p.inputs = {normal.take({T, E}, at::kFloat)};
    const Tensor index = zeros_on_device_of(p.inputs[0], {T, k}, at::kLong),
                 scores = zeros_on_device_of(p.inputs[0], {T, E}, at::kFloat),
                 weights = zeros_on_device_of(p.inputs[0], {T, k}, at::kFloat);
    const Tensor counts = zeros_on_device_of(p.inputs[0], {1, E}, at::kLong),
                 shares = zeros_on_device_of(p.inputs[0], {1, E}, at::kDouble),
                 squares = zeros_on_device_of(p.inputs[0], {1}, at::kDouble);
    p.run = [=](const Tensors& in) {
      check_kernel(wt_router_forward(stream_of(in[0]), spec, in[0].data_ptr<float>(), nullptr,
                                     index.data_ptr<std::int64_t>(), scores.data_ptr<float>(),
                                     weights.data_ptr<float>(), counts.data_ptr<std::int64_t>(),
                                     shares.data_ptr<double>(), squares.data_ptr<double>()));
      return Tensors{weights};
    };
    p.verify = [=](const Tensors& in, const Tensors& got) {
      const Tensor x = in[0].to(at::kDouble), s = score == WT_SOFTMAX ? x.softmax(1) : x.sigmoid();
      const Tensor best = std::get<0>(s.topk(k, 1)),
                   own = s.gather(1, index);  // compares values, because fp32 may have ties where fp64 has none
      double worst = worse(error_of(own, best), error_of(got[0], best / best.sum(1, true)));
      worst = worse(worst, error_of(shares, (s / s.sum(1, true)).sum(0, true)));
      worst = worse(worst, error_of(squares, x.logsumexp(1).square().sum().view({1})));
      return at::equal(counts.view({-1}), at::bincount(index.view({-1}), {}, E)) ? worst : 1.0;
    };
    return p;
  };
  return out;
}

/// Adds rows for all products by every implementation. Returns the names of the forward rows.
std::map<ProductBy, std::string> add_grouped(Aims& out, const GroupedShape& s, at::Device device) {
  std::map<ProductBy, std::string> forward;
  for (GroupedPass pass : {GroupedPass::forward, GroupedPass::rows, GroupedPass::weight})
    for (ProductBy by : {ProductBy::own, ProductBy::library, ProductBy::cublaslt}) {
      if (by == ProductBy::own && !has_own_product(device)) continue;
      out.cases.push_back(grouped_case(pass, by, s, device));
      if (pass == GroupedPass::forward) forward[by] = out.cases.back().row.name();
    }
  return forward;
}

}  // namespace

Aims kernel_aims(at::Device device, bool small) {
  Aims out;
  // DBRX: width 6144, experts of 10752, 4 of 16.
  const std::int64_t T = small ? 512 : 8192, D = small ? 256 : 6144, F = small ? 384 : 10752, k = 4;
  for (BenchCase& copy : machine_cases(device, true))
    if (copy.row.kernel == "device_to_device") out.cases.push_back(std::move(copy));
  const std::string copied = out.cases.back().row.name();  // the largest copy

  std::vector<BenchCase> moving;
  add_moves(moving, T, k, D, device);
  add_swiglu(moving, T * k, F, device);
  for (WtBlockFormat format : {WT_INT8, WT_FP8}) add_quantise(moving, format, T * k, D, device);
  for (BenchCase& c : moving) {
    out.aims.push_back({c.row.kernel + (c.row.pass.empty() ? "" : " " + c.row.pass) + ", of the copy's rate",
                        c.row.name(),
                        {copied},
                        kOfCopy});
    out.cases.push_back(std::move(c));
  }

  for (WtRouterScore score : {WT_SOFTMAX, WT_SIGMOID}) {
    out.cases.push_back(router_case(score, T, 64, 8, device));
    out.aims.push_back({fmt::format("{}, {} tokens x 64 experts", out.cases.back().row.kernel, T),
                        out.cases.back().row.name(),
                        {},
                        kRouter_s});
  }

  const GroupedShape coarse = small ? GroupedShape{4, 32, 96, 64} : GroupedShape{16, 2048, 10752, 6144};
  out.cases.push_back(dense_case(coarse, device));
  const std::string dense = out.cases.back().row.name();
  const auto row_named =
      [](const std::map<ProductBy, std::string>& rows) {  // without our kernel the aim is "missed", not "not measured"
        const auto own = rows.find(ProductBy::own);
        return own == rows.end() ? "grouped_gemm_own: this device has none" : own->second;
      };
  out.aims.push_back(
      {fmt::format("grouped GEMM, {} x {} rows, of a dense product's rate", coarse.groups, coarse.rows_each),
       row_named(add_grouped(out, coarse, device)),
       {dense},
       kOfDense});
  // The first product of experts (gate and up) of OLMoE, Qwen3-30B-A3B and DeepSeek-V3.
  const std::vector<GroupedShape> fine =
      small ? std::vector<GroupedShape>{{8, 4, 64, 64}}
            : std::vector<GroupedShape>{{64, 128, 2048, 2048},  {64, 256, 2048, 2048},  {64, 512, 2048, 2048},
                                        {128, 128, 1536, 2048}, {128, 256, 1536, 2048}, {128, 512, 1536, 2048},
                                        {256, 128, 4096, 7168}, {256, 256, 4096, 7168}, {256, 512, 4096, 7168}};
  for (const GroupedShape& s : fine) {
    const auto rows = add_grouped(out, s, device);
    out.aims.push_back({fmt::format("grouped GEMM, {} x {} rows, {} x {}, of the faster other's rate", s.groups,
                                    s.rows_each, s.k, s.n),
                        row_named(rows),
                        {rows.at(ProductBy::library), rows.at(ProductBy::cublaslt)},
                        1});
  }
  return out;
}

}  // namespace wt
