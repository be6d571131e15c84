#include "bench/suites/aims.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "configs/spec/error.hpp"
#include "trainer/functions.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;

constexpr double kOfCopy = 0.85, kRouter_s = 10e-6, kOfDense = 0.90;
/// bf16 keeps 8 bits: half a unit is 2e-3 of a value. Sums of products are rounded once, from fp32.
constexpr double kRounded = 4e-3;
constexpr double kInt8 = 1.0 / 254 + 1e-4, kFp8 = 1.0 / 16 + 1e-4;  // of a block's largest value (kernels.h)

void check(WtStatus status) {
  if (status != WT_OK) throw_error(Code::runtime, "{}", wt_kernel_error());
}

/// Largest error over the largest value.
double error_of(const Tensor& got, const Tensor& want) {
  const Tensor right = want.to(at::kFloat);
  return ((got.to(at::kFloat) - right).abs().max() / right.abs().max().clamp_min(1e-30)).item<double>();
}

/// The larger error; what is not a number is beyond every limit (std::max would drop it).
double worse(double a, double b) { return std::isnan(a) || std::isnan(b) ? INFINITY : std::max(a, b); }

Tensor of(const Tensor& like, std::vector<std::int64_t> shape, at::ScalarType type) { return at::zeros(shape, like.options().dtype(type)); }

/// A row of a kernel of the C API in bf16 on `rows` rows of `width`.
BenchCase kernel_case(const char* kernel, const char* pass, std::int64_t rows, std::int64_t width, double bytes, double largest_error,
                      at::Device device, std::function<KernelProblem(NormalPool&)> make) {
  BenchCase out;
  out.row.kernel = kernel, out.row.pass = pass, out.row.dtype = "bf16";
  out.row.shape = {{"rows", rows}, {"width", width}};
  out.row.clock = device.is_cpu() ? "thread_cpu" : "device";
  out.row.counters = {{"bytes", bytes}};
  out.largest_error = largest_error;
  out.make = std::move(make);
  return out;
}

/// Where a token's rows are after they were sorted by random experts.
struct Order {
  Tensor order, inverse;
  Order(std::int64_t tokens, std::int64_t k, NormalPool& normal) {
    const Tensor expert = at::randint(16, {tokens * k}, at::make_generator<at::CPUGeneratorImpl>(normal.seed()), at::TensorOptions().dtype(at::kLong)).to(normal.device());
    sort_rows(expert, 16, order = at::empty_like(expert), inverse = at::empty_like(expert));
  }
};

const std::int64_t* indices(const Tensor& t) { return t.data_ptr<std::int64_t>(); }

// Bytes: inputs read once, outputs written once, as in bench/kernels/bandwidth.cpp.
void add_moves(std::vector<BenchCase>& out, std::int64_t T, std::int64_t k, std::int64_t D, at::Device device) {
  const std::int64_t N = T * k;
  const double t = 2.0 * static_cast<double>(T * D), n = 2.0 * static_cast<double>(N * D), index = 8.0 * static_cast<double>(N), weight = 4.0 * static_cast<double>(N);
  out.push_back(kernel_case("permute", "forward", N, D, t + n + index, 0, device, [=](NormalPool& normal) {
    const Order o(T, k, normal);
    KernelProblem p;
    p.inputs = {normal.take({T, D}, at::kBFloat16)};
    const Tensor y = of(p.inputs[0], {N, D}, at::kBFloat16);
    p.run = [=](const Tensors& in) {
      check(wt_permute_forward(stream_of(in[0]), WT_BF16, in[0].data_ptr(), indices(o.order), T, k, D, y.data_ptr()));
      return Tensors{y};
    };
    p.verify = [=](const Tensors& in, const Tensors& got) { return at::equal(got[0], in[0].index_select(0, o.order.floor_divide(k))) ? 0.0 : 1.0; };
    return p;
  }));
  out.push_back(kernel_case("permute", "backward", N, D, t + n + index, kRounded, device, [=](NormalPool& normal) {
    const Order o(T, k, normal);
    KernelProblem p;
    p.inputs = {normal.take({N, D}, at::kBFloat16)};
    const Tensor dx = of(p.inputs[0], {T, D}, at::kBFloat16);
    p.run = [=](const Tensors& in) {
      check(wt_permute_backward(stream_of(in[0]), WT_BF16, in[0].data_ptr(), indices(o.inverse), T, k, D, 0, dx.data_ptr()));
      return Tensors{dx};
    };
    p.verify = [=](const Tensors& in, const Tensors& got) {
      return error_of(got[0], in[0].index_select(0, o.inverse).to(at::kFloat).view({T, k, D}).sum(1));
    };
    return p;
  }));
  out.push_back(kernel_case("combine", "forward", N, D, 2 * t + n + index + weight, kRounded, device, [=](NormalPool& normal) {
    const Order o(T, k, normal);
    KernelProblem p;
    p.inputs = {normal.take({N, D}, at::kBFloat16), normal.take({T, k}, at::kFloat), normal.take({T, D}, at::kBFloat16)};
    const Tensor y = of(p.inputs[0], {T, D}, at::kBFloat16);
    p.run = [=](const Tensors& in) {
      check(wt_combine_forward(stream_of(in[0]), WT_BF16, in[0].data_ptr(), indices(o.inverse), in[1].data_ptr<float>(), in[2].data_ptr(), T, k, D, y.data_ptr()));
      return Tensors{y};
    };
    p.verify = [=](const Tensors& in, const Tensors& got) {
      const Tensor rows = in[0].index_select(0, o.inverse).to(at::kFloat).view({T, k, D});
      return error_of(got[0], in[2].to(at::kFloat) + (rows * in[1].unsqueeze(2)).sum(1));
    };
    return p;
  }));
  out.push_back(kernel_case("combine", "backward", N, D, t + 2 * n + index + 2 * weight, kRounded, device, [=](NormalPool& normal) {
    const Order o(T, k, normal);
    KernelProblem p;
    p.inputs = {normal.take({T, D}, at::kBFloat16), normal.take({N, D}, at::kBFloat16), normal.take({T, k}, at::kFloat)};
    const Tensor drows = of(p.inputs[0], {N, D}, at::kBFloat16), dweights = of(p.inputs[0], {T, k}, at::kFloat);
    p.run = [=](const Tensors& in) {
      check(wt_combine_backward(stream_of(in[0]), WT_BF16, in[0].data_ptr(), in[1].data_ptr(), indices(o.inverse), in[2].data_ptr<float>(), T, k, D,
                                drows.data_ptr(), dweights.data_ptr<float>()));
      return Tensors{drows, dweights};
    };
    p.verify = [=](const Tensors& in, const Tensors& got) {
      const Tensor dout = in[0].to(at::kFloat).unsqueeze(1);
      const double rows = error_of(got[0].index_select(0, o.inverse).view({T, k, D}), dout * in[2].unsqueeze(2));
      return worse(rows, error_of(got[1], (in[1].index_select(0, o.inverse).to(at::kFloat).view({T, k, D}) * dout).sum(2)));
    };
    return p;
  }));
}

void add_swiglu(std::vector<BenchCase>& out, std::int64_t R, std::int64_t F, at::Device device) {
  const double a = 2.0 * static_cast<double>(R * F);
  out.push_back(kernel_case("swiglu", "forward", R, F, 3 * a, kRounded, device, [=](NormalPool& normal) {
    KernelProblem p;
    p.inputs = {normal.take({R, 2 * F}, at::kBFloat16)};
    const Tensor act = of(p.inputs[0], {R, F}, at::kBFloat16);
    p.run = [=](const Tensors& in) {
      check(wt_swiglu_forward(stream_of(in[0]), WT_BF16, in[0].data_ptr(), R, F, act.data_ptr()));
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
    const Tensor d = of(p.inputs[0], {R, 2 * F}, at::kBFloat16);
    p.run = [=](const Tensors& in) {
      check(wt_swiglu_backward(stream_of(in[0]), WT_BF16, in[0].data_ptr(), in[1].data_ptr(), R, F, d.data_ptr()));
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

/// The values of codes: blocks of a row are of one scale.
Tensor decoded(const Tensor& codes, const Tensor& scales, WtBlockFormat format) {
  const Tensor values = codes.view(format == WT_INT8 ? at::kChar : at::kFloat8_e4m3fn).to(at::kFloat);
  return (values.view({codes.size(0), -1, WT_QUANTIZE_BLOCK}) * scales.unsqueeze(2)).view(codes.sizes());
}

void add_quantise(std::vector<BenchCase>& out, WtBlockFormat format, std::int64_t R, std::int64_t D, at::Device device) {
  const bool int8 = format == WT_INT8;
  const double bytes = 3.0 * static_cast<double>(R * D) + static_cast<double>(R * D / 32);
  const std::int64_t blocks = D / WT_QUANTIZE_BLOCK;
  out.push_back(kernel_case(int8 ? "quantize_int8" : "quantize_fp8", "", R, D, bytes, int8 ? kInt8 : kFp8, device, [=](NormalPool& normal) {
    KernelProblem p;
    p.inputs = {normal.take({R, D}, at::kBFloat16)};
    const Tensor codes = of(p.inputs[0], {R, D}, at::kByte), scales = of(p.inputs[0], {R, blocks}, at::kFloat);
    p.run = [=](const Tensors& in) {
      check(wt_quantize_blocks(stream_of(in[0]), WT_BF16, format, in[0].data_ptr(), R, D, codes.data_ptr(), scales.data_ptr<float>()));
      return Tensors{codes, scales};
    };
    p.verify = [=](const Tensors& in, const Tensors& got) {
      const Tensor want = in[0].to(at::kFloat).view({R, blocks, WT_QUANTIZE_BLOCK});
      const Tensor off = (decoded(got[0], got[1], format).view(want.sizes()) - want).abs();
      return (std::get<0>(off.max(2)) / std::get<0>(want.abs().max(2)).clamp_min(1e-30)).max().item<double>();
    };
    return p;
  }));
  out.push_back(kernel_case(int8 ? "dequantize_int8" : "dequantize_fp8", "", R, D, bytes, kRounded, device, [=](NormalPool& normal) {
    KernelProblem p;
    const Tensor values = normal.take({R, D}, at::kBFloat16);
    p.inputs = {of(values, {R, D}, at::kByte), of(values, {R, blocks}, at::kFloat)};
    check(wt_quantize_blocks(stream_of(values), WT_BF16, format, values.data_ptr(), R, D, p.inputs[0].data_ptr(), p.inputs[1].data_ptr<float>()));
    const Tensor x = of(values, {R, D}, at::kBFloat16);
    p.run = [=](const Tensors& in) {
      check(wt_dequantize_blocks(stream_of(in[0]), WT_BF16, format, in[0].data_ptr(), in[1].data_ptr<float>(), R, D, x.data_ptr()));
      return Tensors{x};
    };
    p.verify = [=](const Tensors& in, const Tensors& got) { return error_of(got[0], decoded(in[0], in[1], format)); };
    return p;
  }));
}

/// Logits to choices, weights, counts and what the balancing losses are made of, in one call.
BenchCase router_case(WtRouterScore score, std::int64_t T, std::int64_t E, std::int64_t k, at::Device device) {
  BenchCase out;
  out.row.kernel = score == WT_SOFTMAX ? "router_softmax" : "router_sigmoid", out.row.dtype = "fp32";
  out.row.shape = {{"rows", T}, {"experts", E}, {"top_k", k}};
  out.row.clock = device.is_cpu() ? "thread_cpu" : "device";
  out.row.counters = {{"bytes", static_cast<double>(8 * T * E + 12 * T * k)}};
  out.largest_error = 1e-4;
  out.make = [=](NormalPool& normal) {
    WtRouterSpec spec{};
    spec.T = T, spec.E = E, spec.k = k, spec.sequence = T, spec.score = score, spec.groups = spec.top_groups = 1, spec.group_best = 1;
    spec.normalize = 1, spec.scale = 1;
    KernelProblem p;
    p.inputs = {normal.take({T, E}, at::kFloat)};
    const Tensor index = of(p.inputs[0], {T, k}, at::kLong), scores = of(p.inputs[0], {T, E}, at::kFloat), weights = of(p.inputs[0], {T, k}, at::kFloat);
    const Tensor counts = of(p.inputs[0], {1, E}, at::kLong), shares = of(p.inputs[0], {1, E}, at::kDouble), squares = of(p.inputs[0], {1}, at::kDouble);
    p.run = [=](const Tensors& in) {
      check(wt_router_forward(stream_of(in[0]), spec, in[0].data_ptr<float>(), nullptr, index.data_ptr<std::int64_t>(), scores.data_ptr<float>(),
                              weights.data_ptr<float>(), counts.data_ptr<std::int64_t>(), shares.data_ptr<double>(), squares.data_ptr<double>()));
      return Tensors{weights};
    };
    p.verify = [=](const Tensors& in, const Tensors& got) {
      const Tensor x = in[0].to(at::kDouble), s = score == WT_SOFTMAX ? x.softmax(1) : x.sigmoid();
      const Tensor best = std::get<0>(s.topk(k, 1)), own = s.gather(1, index);  // by value: fp32 may see a tie where fp64 has none
      double worst = worse(error_of(own, best), error_of(got[0], best / best.sum(1, true)));
      worst = worse(worst, error_of(shares, (s / s.sum(1, true)).sum(0, true)));
      worst = worse(worst, error_of(squares, x.logsumexp(1).square().sum().view({1})));
      return at::equal(counts.view({-1}), at::bincount(index.view({-1}), {}, E)) ? worst : 1.0;
    };
    return p;
  };
  return out;
}

// Grouped products, each alone: rows of the result, and both gradients.
enum class Product { forward, rows, weight };
enum class By { own, library, loop };

constexpr const char* kOf[] = {"", "_rows", "_weight"};
// The kernel suite's loop is of the default library, results made in the call: another measurement, under another name.
constexpr const char* kBy[] = {"_own", "_library", "_cublaslt"};

/// LibTorch's products by cuBLASLt while it is there; nothing on the CPU.
class ByCublasLt {
 public:
  explicit ByCublasLt(const Tensor& on) : on_(!on.is_cpu()), before_(on_ ? at::globalContext().blasPreferredBackend() : at::BlasBackend::Default) {
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

struct Shape {
  std::int64_t groups, rows_each, n, k;
  std::int64_t rows() const { return groups * rows_each; }
};

/// in: x (rows, k) and weight (groups, n, k) forward, dy (rows, n) and weight for the rows, dy and x for the weight.
void product_of_group(Product product, const Tensors& in, const Shape& s, std::int64_t g, Tensor out) {
  const auto part = [&](const Tensor& t) { return t.narrow(0, g * s.rows_each, s.rows_each); };
  Tensor to = product == Product::weight ? out.select(0, g) : part(out);
  switch (product) {
    case Product::forward: at::mm_out(to, part(in[0]), in[1].select(0, g).t()); break;
    case Product::rows: at::mm_out(to, part(in[0]), in[1].select(0, g)); break;
    case Product::weight: at::mm_out(to, part(in[0]).t(), part(in[1])); break;
  }
}

Tensors grouped(Product product, By by, const Tensors& in, const Tensor& ends, const Shape& s, const Tensor& out) {
  if (by == By::library) {
    if (product == Product::forward) return {at::_grouped_mm(in[0], in[1].transpose(-2, -1), ends)};
    return {product == Product::rows ? at::_grouped_mm(in[0], in[1], ends) : at::_grouped_mm(in[0].t(), in[1], ends)};
  }
  if (by == By::loop) {
    const ByCublasLt library(in[0]);
    for (std::int64_t g = 0; g < s.groups; ++g) product_of_group(product, in, s, g, out);
    return {out};
  }
  const auto form = product == Product::forward ? wt_grouped_gemm_forward : product == Product::rows ? wt_grouped_gemm_backward_rows : wt_grouped_gemm_backward_weight;
  check(form(stream_of(in[0]), WT_BF16, in[0].data_ptr(), in[1].data_ptr(), ends.data_ptr<std::int32_t>(), s.rows(), s.groups, s.n, s.k, out.data_ptr()));
  return {out};
}

/// Group by group beside fp64, where the operands are: on a GPU the host would take minutes.
double grouped_error(Product product, const Tensors& in, const Shape& s, const Tensor& got) {
  double worst = 0;
  for (std::int64_t g = 0; g < s.groups; ++g) {
    const auto part = [&](const Tensor& t) { return t.narrow(0, g * s.rows_each, s.rows_each).to(at::kDouble); };
    if (product == Product::weight) {
      worst = worse(worst, error_of(got.select(0, g), at::mm(part(in[0]).t(), part(in[1]))));
      continue;
    }
    const Tensor weight = in[1].select(0, g).to(at::kDouble);
    worst = worse(worst, error_of(part(got), at::mm(part(in[0]), product == Product::forward ? weight.t() : weight)));
  }
  return worst;
}

BenchCase product_case(const std::string& kernel, const char* pass, std::map<std::string, std::int64_t> shape, double flops, double bytes, at::Device device) {
  BenchCase out;
  out.row.kernel = kernel, out.row.pass = pass, out.row.dtype = "bf16";
  out.row.shape = std::move(shape);
  out.row.clock = device.is_cpu() ? "thread_cpu" : "device";
  out.row.counters = {{"flops", flops}, {"bytes", bytes}};
  out.largest_error = 2 * kRounded;
  out.moves_memory = false;
  return out;
}

BenchCase grouped_case(Product product, By by, const Shape& s, at::Device device) {
  const double words = static_cast<double>(s.rows() * (s.n + s.k) + s.groups * s.n * s.k);
  BenchCase out = product_case(std::string("grouped_gemm") + kBy[static_cast<int>(by)] + kOf[static_cast<int>(product)], product == Product::forward ? "forward" : "backward",
                               {{"rows", s.rows()}, {"n", s.n}, {"k", s.k}, {"groups", s.groups}},
                               2.0 * static_cast<double>(s.rows()) * static_cast<double>(s.n * s.k), 2 * words, device);
  out.make = [=](NormalPool& normal) {
    const Tensor ends = at::arange(1, s.groups + 1, at::TensorOptions().dtype(at::kInt)).mul_(s.rows_each).to(normal.device());
    KernelProblem p;
    const auto of_rows = [&](std::int64_t width) { return normal.take({s.rows(), width}, at::kBFloat16); };
    if (product == Product::weight)
      p.inputs = {of_rows(s.n), of_rows(s.k)};
    else
      p.inputs = {of_rows(product == Product::forward ? s.k : s.n), normal.take({s.groups, s.n, s.k}, at::kBFloat16)};
    Tensor to;
    if (by != By::library)
      to = product == Product::weight ? of(ends, {s.groups, s.n, s.k}, at::kBFloat16) : of(ends, {s.rows(), product == Product::forward ? s.n : s.k}, at::kBFloat16);
    p.run = [=](const Tensors& in) { return grouped(product, by, in, ends, s, to); };
    p.verify = [=](const Tensors& in, const Tensors& got) { return grouped_error(product, in, s, got[0]); };
    return p;
  };
  return out;
}

/// All rows times one weight, by cuBLASLt.
BenchCase dense_case(const Shape& s, at::Device device) {
  const Shape one{1, s.rows(), s.n, s.k};
  BenchCase out = product_case("gemm_cublaslt", "forward", {{"rows", one.rows()}, {"n", s.n}, {"k", s.k}}, 2.0 * static_cast<double>(one.rows()) * static_cast<double>(s.n * s.k),
                               2.0 * static_cast<double>(one.rows() * (s.n + s.k) + s.n * s.k), device);
  out.make = [=](NormalPool& normal) {
    KernelProblem p;
    p.inputs = {normal.take({one.rows(), s.k}, at::kBFloat16), normal.take({1, s.n, s.k}, at::kBFloat16)};
    const Tensor to = of(p.inputs[0], {one.rows(), s.n}, at::kBFloat16);
    p.run = [=](const Tensors& in) { return grouped(Product::forward, By::loop, in, {}, one, to); };
    p.verify = [=](const Tensors& in, const Tensors& got) { return grouped_error(Product::forward, in, one, got[0]); };
    return p;
  };
  return out;
}

bool has_own(at::Device device) {
  if (device.is_cpu()) return true;
  const Tensor weight = at::empty({1, 8, 8}, at::TensorOptions().dtype(at::kBFloat16).device(device));
  return own_grouped_product(weight[0], weight);
}

/// Rows of all products by everybody; the names of the forward ones.
std::map<By, std::string> add_grouped(Aims& out, const Shape& s, at::Device device) {
  std::map<By, std::string> forward;
  for (Product product : {Product::forward, Product::rows, Product::weight})
    for (By by : {By::own, By::library, By::loop}) {
      if (by == By::own && !has_own(device)) continue;
      out.cases.push_back(grouped_case(product, by, s, device));
      if (product == Product::forward) forward[by] = out.cases.back().row.name();
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
  const std::string copied = out.cases.back().row.name();  // the largest

  std::vector<BenchCase> moving;
  add_moves(moving, T, k, D, device);
  add_swiglu(moving, T * k, F, device);
  for (WtBlockFormat format : {WT_INT8, WT_FP8}) add_quantise(moving, format, T * k, D, device);
  for (BenchCase& c : moving) {
    out.aims.push_back({c.row.kernel + (c.row.pass.empty() ? "" : " " + c.row.pass) + ", of the copy's rate", c.row.name(), {copied}, kOfCopy});
    out.cases.push_back(std::move(c));
  }

  for (WtRouterScore score : {WT_SOFTMAX, WT_SIGMOID}) {
    out.cases.push_back(router_case(score, T, 64, 8, device));
    out.aims.push_back({fmt::format("{}, {} tokens x 64 experts", out.cases.back().row.kernel, T), out.cases.back().row.name(), {}, kRouter_s});
  }

  const Shape coarse = small ? Shape{4, 32, 96, 64} : Shape{16, 2048, 10752, 6144};
  out.cases.push_back(dense_case(coarse, device));
  const std::string dense = out.cases.back().row.name();
  const auto row_named = [](const std::map<By, std::string>& rows) {  // without our kernel here its row is missed, not missing
    const auto own = rows.find(By::own);
    return own == rows.end() ? "grouped_gemm_own: this device has none" : own->second;
  };
  out.aims.push_back({fmt::format("grouped GEMM, {} x {} rows, of a dense product's rate", coarse.groups, coarse.rows_each),
                      row_named(add_grouped(out, coarse, device)), {dense}, kOfDense});
  // Experts' first products (gate and up) of OLMoE, Qwen3-30B-A3B and DeepSeek-V3.
  const std::vector<Shape> fine = small ? std::vector<Shape>{{8, 4, 64, 64}}
                                        : std::vector<Shape>{{64, 128, 2048, 2048},  {64, 256, 2048, 2048},  {64, 512, 2048, 2048},
                                                             {128, 128, 1536, 2048}, {128, 256, 1536, 2048}, {128, 512, 1536, 2048},
                                                             {256, 128, 4096, 7168}, {256, 256, 4096, 7168}, {256, 512, 4096, 7168}};
  for (const Shape& s : fine) {
    const auto rows = add_grouped(out, s, device);
    out.aims.push_back({fmt::format("grouped GEMM, {} x {} rows, {} x {}, of the faster other's rate", s.groups, s.rows_each, s.k, s.n),
                        row_named(rows), {rows.at(By::library), rows.at(By::loop)}, 1});
  }
  return out;
}

}  // namespace wt
