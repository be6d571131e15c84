#include "trainer/model/functions.hpp"

#include "configs/base/error.hpp"
#include "trainer/device/device.hpp"
#include "trainer/pch.hpp"

#ifdef WT_CUDA
#include <c10/cuda/CUDAStream.h>
#endif

namespace wt {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

WtBlockFormat block_format(Compression compression) { return compression == Compression::fp8 ? WT_FP8 : WT_INT8; }

/// stream_of the first tensor; the others must be on the same device.
template <class... Others>
WtStream stream_of_all(const Tensor& first, const Others&... others) {
  const auto same = [&first](const Tensor& other) {
    if (other.device() != first.device())
      throw_runtime("kernel inputs: found {} beside {}, allowed is one device; move them together",
                    other.device().str(), first.device().str());
  };
  (same(others), ...);
  return stream_of(first);
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& gain, double eps) {
    const std::int64_t rows = x.size(0), width = x.size(1);
    Tensor y = at::empty_like(x), rstd = at::empty({rows}, x.options().dtype(at::kFloat));
    check_kernel(wt_rmsnorm_forward(stream_of_all(x, gain), dtype_of(x), x.data_ptr(), gain.data_ptr(),
                                    static_cast<float>(eps), rows, width, y.data_ptr(), rstd.data_ptr<float>()));
    ctx->save_for_backward({x, gain, rstd});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor dy = gradients[0].contiguous(), &x = saved[0];
    Tensor dx = at::empty_like(x), dgain = at::zeros({x.size(1)}, x.options().dtype(at::kFloat));
    check_kernel(wt_rmsnorm_backward(stream_of_all(dy, x), dtype_of(x), dy.data_ptr(), x.data_ptr(),
                                     saved[1].data_ptr(), saved[2].data_ptr<float>(), x.size(0), x.size(1),
                                     dx.data_ptr(), dgain.data_ptr<float>()));
    return {dx, dgain.to(saved[1].scalar_type()), Tensor()};
  }
};

struct NormProductFunction : torch::autograd::Function<NormProductFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& x, const Tensor& gain, const Tensor& weight,
                               double eps, at::ScalarType type, bool recompute_norm) {
    Tensor rstd = at::empty({x.size(0)}, x.options().dtype(at::kFloat));
    Tensor normed = norm(x, gain, eps, rstd), operand = normed.to(type), factor = weight.to(type);
    Tensor product = at::mm(operand, factor.t());
    const bool learned = weight.requires_grad();
    ctx->save_for_backward(
        {x, gain, weight, rstd, recompute_norm || !learned ? Tensor() : operand, recompute_norm ? Tensor() : factor});
    ctx->saved_data["learned"] = learned;
    ctx->saved_data["eps"] = eps;
    ctx->saved_data["recompute_norm"] = recompute_norm;
    ctx->set_materialize_grads(false);
    return {normed, product};
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &gain = saved[1], &weight = saved[2], &rstd = saved[3], &dproduct = gradients[1];
    const bool recompute_norm = ctx->saved_data["recompute_norm"].toBool();
    Tensor dweight;
    if (ctx->saved_data["learned"].toBool()) {
      Tensor operand = saved[4];
      if (recompute_norm) {
        Tensor same = at::empty_like(rstd);
        operand = norm(x, gain, ctx->saved_data["eps"].toDouble(), same).to(dproduct.scalar_type());
      }
      dweight = dproduct.t().mm(operand).to(weight.scalar_type());
    }
    Tensor dy = dproduct.mm(recompute_norm ? weight.to(dproduct.scalar_type()) : saved[5]).to(x.scalar_type());
    if (gradients[0].defined()) dy += gradients[0];
    Tensor dgain = at::zeros({x.size(1)}, x.options().dtype(at::kFloat));
    check_kernel(wt_rmsnorm_backward(stream_of_all(dy, x), dtype_of(x), dy.data_ptr(), x.data_ptr(), gain.data_ptr(),
                                     rstd.data_ptr<float>(), x.size(0), x.size(1), dy.data_ptr(),
                                     dgain.data_ptr<float>()));
    return {dy, dgain.to(gain.scalar_type()), dweight, Tensor(), Tensor(), Tensor()};
  }
  static Tensor norm(const Tensor& x, const Tensor& gain, double eps, Tensor& rstd) {
    Tensor y = at::empty_like(x);
    check_kernel(wt_rmsnorm_forward(stream_of_all(x, gain), dtype_of(x), x.data_ptr(), gain.data_ptr(),
                                    static_cast<float>(eps), x.size(0), x.size(1), y.data_ptr(),
                                    rstd.data_ptr<float>()));
    return y;
  }
};

struct LowRank : torch::autograd::Function<LowRank> {
  static Tensor forward(AutogradContext* ctx, Tensor y, const Tensor& x, const Tensor& a, const Tensor& b,
                        std::int64_t first, double scale) {
    const Tensor low = at::mm(x, a.t());
    y.narrow(1, first, b.size(0)).addmm_(low, b.t(), 1, scale);
    ctx->mark_dirty({y});
    ctx->save_for_backward({x, a, b, low});
    ctx->saved_data["first"] = first;
    ctx->saved_data["scale"] = scale;
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &x = saved[0], &a = saved[1], &b = saved[2], &low = saved[3];
    const double scale = ctx->saved_data["scale"].toDouble();
    const Tensor dy = gradients[0].narrow(1, ctx->saved_data["first"].toInt(), b.size(0));
    const Tensor dlow = dy.mm(b).mul_(scale), db = dy.t().mm(low).mul_(scale);
    return {gradients[0], dlow.mm(a), dlow.t().mm(x), db, Tensor(), Tensor()};
  }
};

GroupedBy grouped_by(const char* pass, const Tensor& rows, const Tensor& weight, std::optional<GroupedBy> by) {
  if (by) return *by;
  if (!own_grouped_product(rows, weight)) return GroupedBy::library;
  static const GroupedChoice choice =
      GroupedChoice::of_device(device_facts(rows.device()).at("device"));  // static: a process has one device
  return choice({pass, rows.size(0), weight.size(1), weight.size(2), weight.size(0)});
}

/// One of the C API's three forms, for rows (R, .) and `other`, a weight or further rows.
Tensor own_product(decltype(&wt_grouped_gemm_forward) form, const Tensor& rows, const Tensor& other,
                   const Tensor& offsets, std::int64_t n, std::int64_t k, Tensor out) {
  check_kernel(form(stream_of_all(rows, other, offsets), dtype_of(rows), rows.data_ptr(), other.data_ptr(),
                    offsets.data_ptr<std::int32_t>(), rows.size(0), offsets.size(0), n, k, out.data_ptr()));
  return out;
}

/// visit(group, its rows) for every non-empty group; the host reads the offsets.
template <typename Visit>
void for_groups(const Tensor& rows, const Tensor& offsets, Visit&& visit) {
  const Tensor ends = offsets.cpu();
  std::int64_t begin = 0;
  for (std::int64_t group = 0; group < ends.size(0); ++group) {
    const std::int64_t end = ends.data_ptr<std::int32_t>()[group];
    if (end > begin) visit(group, rows.narrow(0, begin, end - begin));
    begin = end;
  }
}

struct GroupedProduct : torch::autograd::Function<GroupedProduct> {
  static Tensor forward(AutogradContext* ctx, const Tensor& rows, const Tensor& weight, const Tensor& offsets,
                        bool compute, std::optional<GroupedBy> by, const std::optional<Tensor>& bias) {
    const bool learned = weight.requires_grad();
    ctx->save_for_backward({weight, learned ? rows : Tensor()});
    ctx->saved_data["learned"] = learned;
    ctx->saved_data["offsets"] = offsets;
    ctx->saved_data["biased"] = bias.has_value();
    ctx->saved_data["own"] = grouped_by("backward", rows, weight, by) == GroupedBy::own;
    const std::int64_t n = weight.size(1);
    if (!compute) return at::empty_strided({rows.size(0), n}, {0, 0}, rows.options());
    Tensor out = grouped_by("forward", rows, weight, by) == GroupedBy::library
                     ? at::_grouped_mm(rows, weight.transpose(-2, -1), offsets)
                     : own_product(wt_grouped_gemm_forward, rows, weight, offsets, n, weight.size(2),
                                   at::empty({rows.size(0), n}, rows.options()));
    if (bias) for_groups(out, offsets, [&](std::int64_t group, Tensor own) { own.add_(bias->select(0, group)); });
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor gradient = gradients[0].contiguous(), offsets = ctx->saved_data["offsets"].toTensor();
    const Tensor &weight = saved[0], &rows = saved[1];
    const bool learned = ctx->saved_data["learned"].toBool();
    Tensor drows, dweight, dbias;
    if (learned && ctx->saved_data["biased"].toBool()) {
      dbias = at::zeros({weight.size(0), weight.size(1)}, weight.options());
      for_groups(gradient, offsets,
                 [&](std::int64_t group, const Tensor& own) { dbias.select(0, group).copy_(own.sum(0)); });
    }
    if (ctx->saved_data["own"].toBool()) {
      const std::int64_t n = weight.size(1), k = weight.size(2);
      drows = own_product(wt_grouped_gemm_backward_rows, gradient, weight, offsets, n, k,
                          at::empty({gradient.size(0), k}, gradient.options()));
      if (learned)
        dweight = own_product(wt_grouped_gemm_backward_weight, gradient, rows, offsets, n, k, at::empty_like(weight));
    } else {
      drows = at::_grouped_mm(gradient, weight, offsets);
      if (learned) dweight = at::_grouped_mm(gradient.t(), rows, offsets);
    }
    return {drows, dweight, Tensor(), Tensor(), Tensor(), dbias};
  }
};

struct RopeSplit : torch::autograd::Function<RopeSplit> {
  static variable_list forward(AutogradContext* ctx, const Tensor& qkv, const Tensor& cosine, const Tensor& sine,
                               std::int64_t batch, std::int64_t heads, std::int64_t kv_heads) {
    const std::int64_t seq = qkv.size(0) / batch, head_dim = qkv.size(1) / (heads + 2 * kv_heads);
    Tensor q = at::empty({batch, heads, seq, head_dim}, qkv.options());
    Tensor k = at::empty({batch, kv_heads, seq, head_dim}, qkv.options()), v = at::empty_like(k);
    check_kernel(wt_rope_split_forward(stream_of_all(qkv, cosine, sine), dtype_of(qkv), qkv.data_ptr(),
                                       cosine.data_ptr<float>(), sine.data_ptr<float>(), batch, seq, heads, kv_heads,
                                       head_dim, q.data_ptr(), k.data_ptr(), v.data_ptr()));
    ctx->saved_data["cosine"] = cosine;
    ctx->saved_data["sine"] = sine;
    return {q, k, v};
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const Tensor dq = gradients[0].contiguous(), dk = gradients[1].contiguous(), dv = gradients[2].contiguous();
    const std::int64_t batch = dq.size(0), heads = dq.size(1), seq = dq.size(2), head_dim = dq.size(3), kv = dk.size(1);
    Tensor out = at::empty({batch * seq, (heads + 2 * kv) * head_dim}, dq.options());
    check_kernel(wt_rope_split_backward(stream_of_all(dq, dk, dv), dtype_of(dq), dq.data_ptr(), dk.data_ptr(),
                                        dv.data_ptr(), ctx->saved_data["cosine"].toTensor().data_ptr<float>(),
                                        ctx->saved_data["sine"].toTensor().data_ptr<float>(), batch, seq, heads, kv,
                                        head_dim, out.data_ptr()));
    return {out, Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

struct Permute : torch::autograd::Function<Permute> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const Tensor& order, const Tensor& inverse,
                        std::int64_t k) {
    ctx->saved_data["inverse"] = inverse;
    ctx->saved_data["k"] = k;
    if (order.size(0) < inverse.size(0)) return gather_rows(x, order.div(k, "floor"));  // some rows are dropped
    Tensor y = at::empty({order.size(0), x.size(1)}, x.options());
    check_kernel(wt_permute_forward(stream_of_all(x, order), dtype_of(x), x.data_ptr(), order.data_ptr<std::int64_t>(),
                                    x.size(0), k, x.size(1), y.data_ptr()));
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const Tensor dy = gradients[0].contiguous(), inverse = ctx->saved_data["inverse"].toTensor();
    const std::int64_t k = ctx->saved_data["k"].toInt(), tokens = inverse.size(0) / k;
    Tensor dx = at::empty({tokens, dy.size(1)}, dy.options());
    check_kernel(wt_permute_backward(stream_of_all(dy, inverse), dtype_of(dy), dy.data_ptr(),
                                     inverse.data_ptr<std::int64_t>(), tokens, k, dy.size(1), 0, dx.data_ptr()));
    return {dx, Tensor(), Tensor(), Tensor()};
  }
};

struct SwiGlu : torch::autograd::Function<SwiGlu> {
  static Tensor forward(AutogradContext* ctx, const Tensor& gate_up) {
    Tensor out = at::empty({gate_up.size(0), gate_up.size(1) / 2}, gate_up.options());
    check_kernel(wt_swiglu_forward(stream_of(gate_up), dtype_of(gate_up), gate_up.data_ptr(), out.size(0), out.size(1),
                                   out.data_ptr()));
    ctx->save_for_backward({gate_up});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const Tensor gate_up = ctx->get_saved_variables()[0], dact = gradients[0].contiguous();
    Tensor out = at::empty_like(gate_up);
    check_kernel(wt_swiglu_backward(stream_of_all(dact, gate_up), dtype_of(gate_up), dact.data_ptr(),
                                    gate_up.data_ptr(), dact.size(0), dact.size(1), out.data_ptr()));
    return {out};
  }
};

}  // namespace

WtStream stream_of(const Tensor& tensor) {
  if (tensor.is_cpu()) return {-1, nullptr};
#ifdef WT_CUDA
  if (tensor.is_cuda()) return {tensor.get_device(), c10::cuda::getCurrentCUDAStream(tensor.get_device()).stream()};
  throw_runtime("kernel input: found a tensor on {}, allowed are cpu and cuda", tensor.device().str());
#else
  throw_runtime("kernel input: found a tensor on {}, allowed is cpu; build with cmake --preset cuda for CUDA",
                tensor.device().str());
#endif
}

WtDtype dtype_of(const Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return WT_FP32;
  if (tensor.scalar_type() == at::kBFloat16) return WT_BF16;
  throw_runtime("kernel input: found {}, needs fp32 or bf16", c10::toString(tensor.scalar_type()));
}

void check_kernel(WtStatus status) {
  if (status != WT_OK) throw_runtime("{}", wt_kernel_error());
}

RopeTable RopeTable::make(const ModelSpec& m, std::int64_t seq) {
  const std::int64_t dim = m.rope_dim();
  const std::vector<double> frequencies = rope_frequencies(m.attention.rope_scaling, m.attention.rope_theta, dim);
  RopeTable table{at::empty({seq, dim / 2}, at::kFloat), at::empty({seq, dim / 2}, at::kFloat)};
  check_kernel(wt_rope_table(seq, dim, frequencies.data(), rope_amplitude(m.attention.rope_scaling),
                             table.cosine.data_ptr<float>(), table.sine.data_ptr<float>()));
  return table;
}

Tensor rms_norm(const Tensor& x, const Tensor& gain, double eps) { return RmsNorm::apply(x, gain, eps); }

NormProduct norm_product(const Tensor& x, const Tensor& gain, const Tensor& weight, double eps, at::ScalarType type,
                         bool recompute_norm) {
  variable_list out = NormProductFunction::apply(x, gain, weight, eps, type, recompute_norm);
  return {std::move(out[0]), std::move(out[1])};
}

Tensor add_low_rank(const Tensor& y, const Tensor& x, const Tensor& a, const Tensor& b, std::int64_t first,
                    double scale) {
  return LowRank::apply(y, x, a, b, first, scale);
}

Tensor grouped_product(const Tensor& rows, const Tensor& weight, const Tensor& offsets, bool compute,
                       std::optional<GroupedBy> by, const Tensor& bias) {
  return GroupedProduct::apply(rows, weight, offsets, compute, by, bias.defined() ? std::optional(bias) : std::nullopt);
}

bool own_grouped_product(const Tensor& rows, const Tensor& weight) {
  if (rows.is_cpu() || rows.scalar_type() != at::kBFloat16 || weight.size(1) % 8 != 0 || weight.size(2) % 8 != 0)
    return false;
  static const bool hopper = device_facts(rows.device()).at("compute_capability") == "9.0";
  const auto whole = [](const Tensor& t) {
    return t.is_contiguous() && reinterpret_cast<std::uintptr_t>(t.data_ptr()) % 16 == 0;
  };
  return hopper && whole(rows) && whole(weight) && weight.size(0) <= 1024;
}

std::vector<Tensor> rope_split(const Tensor& qkv, const RopeTable& table, std::int64_t batch, std::int64_t heads,
                               std::int64_t kv_heads) {
  return RopeSplit::apply(qkv, table.cosine, table.sine, batch, heads, kv_heads);
}

Tensor permute(const Tensor& x, const RouterChoice& choice, std::int64_t top_k) {
  return Permute::apply(x, choice.order, choice.inverse, top_k);
}

Tensor swiglu(const Tensor& gate_up) { return SwiGlu::apply(gate_up); }

Tensor combine(const Tensor& rows, const RouterChoice& choice, const Tensor& weights, const Tensor& residual) {
  Tensor out = at::empty_like(residual);
  check_kernel(wt_combine_forward(stream_of_all(rows, choice.inverse, weights, residual), dtype_of(rows),
                                  rows.data_ptr(), choice.inverse.data_ptr<std::int64_t>(), weights.data_ptr<float>(),
                                  residual.data_ptr(), residual.size(0), weights.size(1), residual.size(1),
                                  out.data_ptr()));
  return out;
}

std::pair<Tensor, Tensor> combine_backward(const Tensor& gradient, const Tensor& rows, const RouterChoice& choice,
                                           const Tensor& weights) {
  Tensor drows = at::empty_like(rows), dweights = at::empty_like(weights);
  check_kernel(wt_combine_backward(stream_of_all(rows, gradient, choice.inverse, weights), dtype_of(rows),
                                   gradient.data_ptr(), rows.data_ptr(), choice.inverse.data_ptr<std::int64_t>(),
                                   weights.data_ptr<float>(), gradient.size(0), weights.size(1), gradient.size(1),
                                   drows.data_ptr(), dweights.data_ptr<float>()));
  return {drows, dweights};
}

PackedRows pack_rows(const Tensor& x, Compression compression) {
  PackedRows out{
      at::empty({x.size(0), x.size(1)}, x.options().dtype(at::kByte)),
      at::empty({x.size(0), (x.size(1) + WT_QUANTIZE_BLOCK - 1) / WT_QUANTIZE_BLOCK}, x.options().dtype(at::kFloat))};
  check_kernel(wt_quantize_blocks(stream_of(x), dtype_of(x), block_format(compression), x.data_ptr(), x.size(0),
                                  x.size(1), out.codes.data_ptr(), out.scales.data_ptr<float>()));
  return out;
}

Tensor unpack_rows(const PackedRows& packed, Compression compression, at::ScalarType type) {
  Tensor x = at::empty(packed.codes.sizes(), packed.codes.options().dtype(type));
  check_kernel(wt_dequantize_blocks(stream_of_all(x, packed.codes, packed.scales), dtype_of(x),
                                    block_format(compression), packed.codes.data_ptr(), packed.scales.data_ptr<float>(),
                                    x.size(0), x.size(1), x.data_ptr()));
  return x;
}

void sort_rows(const Tensor& slot, std::int64_t slots, Tensor& order, Tensor& inverse, const Tensor& counts,
               const Tensor& renamed) {
  const auto data = [](const Tensor& t) { return t.defined() ? t.data_ptr<std::int64_t>() : nullptr; };
  check_kernel(wt_sort_by_expert(stream_of_all(slot, order, inverse), data(slot), data(renamed), slot.numel(), slots,
                                 data(order), data(inverse), data(counts)));
}

Tensor gather_rows(const Tensor& x, const Tensor& index) {
  Tensor y = at::empty({index.size(0), x.size(1)}, x.options());
  check_kernel(wt_gather_rows(stream_of_all(x, index), dtype_of(x), x.data_ptr(), index.data_ptr<std::int64_t>(),
                              x.size(0), index.size(0), x.size(1), y.data_ptr()));
  return y;
}

void cross_entropy_in_place(Tensor& logits, const Tensor& targets, double scale, const Tensor& loss) {
  check_kernel(wt_cross_entropy_forward_backward(stream_of_all(logits, targets, loss), dtype_of(logits),
                                                 logits.data_ptr(), targets.data_ptr<std::int64_t>(), logits.size(0),
                                                 logits.size(1), static_cast<float>(scale), loss.data_ptr<double>()));
}

}  // namespace wt
