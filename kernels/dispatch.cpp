// The C API: checks arguments, then calls the stream's backend.
#include <cmath>

#include "kernels/checks.hpp"

using namespace wt::kernels;

namespace {

Checks router_checks(const char* function, WtStream stream, const WtRouterSpec& spec) {
  Checks check(function, stream, WT_FP32);
  check.size("T", spec.T, 0).size("E", spec.E, 1).size("k", spec.k, 1).divides("sequence", spec.sequence, "T", spec.T);
  check.size("score", spec.score, WT_SOFTMAX).at_most("score", spec.score, "WT_SIGMOID", WT_SIGMOID);
  check.divides("groups", spec.groups, "E", spec.E).size("top_groups", spec.top_groups, 1);
  check.at_most("top_groups", spec.top_groups, "groups", spec.groups);
  check.size("group_best", spec.group_best, 1).at_most("group_best", spec.group_best, "the best two", 2);
  if (!check.done(1)) check.at_most("k", spec.k, "experts of top_groups", spec.top_groups * (spec.E / spec.groups));
  if (stream.device >= 0) check.at_most("E", spec.E, "the CUDA limit", kMaxCudaRouterExperts);
  return check;
}

constexpr int64_t kInt32Max = 2147483647;

/// a_name and b_name are the operands' names in messages.
WtStatus grouped_gemm(const char* function, GroupedForm form, WtStream stream, WtDtype dtype, const char* a_name,
                      const void* a, const char* b_name, const void* b, const int32_t* ends, GroupedShape s,
                      const char* out_name, void* out) {
  Checks check(function, stream, dtype);
  check.size("groups", s.groups, 1).at_most("groups", s.groups, "the limit", kMaxGroups);
  check.size("rows", s.rows, 0).at_most("rows", s.rows, "int32", kInt32Max);
  check.size("N", s.n, 1).at_most("N", s.n, "int32", kInt32Max).size("K", s.k, 1).at_most("K", s.k, "int32", kInt32Max);
  const bool forward = form == GroupedForm::forward, weight = form == GroupedForm::backward_weight;
  check.array(a_name, a, s.rows, forward ? s.k : s.n);
  check.array(b_name, b, weight ? s.rows : s.groups * s.n, s.k);
  check.array(out_name, out, weight ? s.groups * s.n : s.rows, forward ? s.n : s.k);
  check.ends("ends", ends, s.groups, s.rows);
  if (check.done(weight ? 1 : s.rows)) return check.status();
  return check.backend().grouped_gemm(stream.handle, form, s, a, b, ends, out);
}

}  // namespace

extern "C" {

WtStatus wt_rmsnorm_forward(WtStream stream, WtDtype dtype, const void* x, const void* gain, float eps, int64_t T,
                            int64_t D, void* y, float* rstd) {
  Checks check("wt_rmsnorm_forward", stream, dtype);
  check.size("T", T, 0).size("D", D, 1);
  check.array("x", x, T, D).array("gain", gain, D).array("y", y, T, D).array("rstd", rstd, T);
  if (check.done(T)) return check.status();
  return check.backend().rmsnorm_forward(stream.handle, x, gain, eps, T, D, y, rstd);
}

WtStatus wt_rmsnorm_backward(WtStream stream, WtDtype dtype, const void* dy, const void* x, const void* gain,
                             const float* rstd, int64_t T, int64_t D, void* dx, float* dgain) {
  Checks check("wt_rmsnorm_backward", stream, dtype);
  check.size("T", T, 0).size("D", D, 1);
  check.array("dy", dy, T, D).array("x", x, T, D).array("gain", gain, D).array("rstd", rstd, T);
  check.array("dx", dx, T, D).array("dgain", dgain, D);
  if (check.done(T)) return check.status();
  return check.backend().rmsnorm_backward(stream.handle, dy, x, gain, rstd, T, D, dx, dgain);
}

WtStatus wt_rope_table(int64_t S, int64_t hd, const double* frequency, double amplitude, float* cos, float* sin) {
  Checks check("wt_rope_table", WtStream{-1, nullptr}, WT_FP32);
  check.size("S", S, 0).even("hd", hd).array("frequency", frequency, hd / 2);
  check.array("cos", cos, S, hd / 2).array("sin", sin, S, hd / 2);
  if (check.done(S)) return check.status();
  for (int64_t i = 0; i < hd / 2; ++i)
    for (int64_t s = 0; s < S; ++s) {
      const double angle = static_cast<double>(s) * frequency[i];
      cos[s * (hd / 2) + i] = static_cast<float>(amplitude * std::cos(angle));
      sin[s * (hd / 2) + i] = static_cast<float>(amplitude * std::sin(angle));
    }
  return WT_OK;
}

WtStatus wt_rope_split_forward(WtStream stream, WtDtype dtype, const void* qkv, const float* cos, const float* sin,
                               int64_t B, int64_t S, int64_t H, int64_t KV, int64_t hd, void* q, void* k, void* v) {
  Checks check("wt_rope_split_forward", stream, dtype);
  check.size("B", B, 0).size("S", S, 0).size("H", H, 0).size("KV", KV, 0).even("hd", hd);
  check.array("qkv", qkv, B * S, (H + 2 * KV) * hd).array("cos", cos, S, hd / 2).array("sin", sin, S, hd / 2);
  check.array("q", q, B * S, H * hd).array("k", k, B * S, KV * hd).array("v", v, B * S, KV * hd);
  if (check.done(B * S * (H + KV))) return check.status();
  return check.backend().rope_forward(stream.handle, qkv, cos, sin, {B, S, H, KV, hd}, q, k, v);
}

WtStatus wt_rope_split_backward(WtStream stream, WtDtype dtype, const void* dq, const void* dk, const void* dv,
                                const float* cos, const float* sin, int64_t B, int64_t S, int64_t H, int64_t KV,
                                int64_t hd, void* dqkv) {
  Checks check("wt_rope_split_backward", stream, dtype);
  check.size("B", B, 0).size("S", S, 0).size("H", H, 0).size("KV", KV, 0).even("hd", hd);
  check.array("dq", dq, B * S, H * hd).array("dk", dk, B * S, KV * hd).array("dv", dv, B * S, KV * hd);
  check.array("cos", cos, S, hd / 2).array("sin", sin, S, hd / 2).array("dqkv", dqkv, B * S, (H + 2 * KV) * hd);
  if (check.done(B * S * (H + KV))) return check.status();
  return check.backend().rope_backward(stream.handle, dq, dk, dv, cos, sin, {B, S, H, KV, hd}, dqkv);
}

WtStatus wt_router_forward(WtStream stream, WtRouterSpec spec, const float* logits, const float* bias, int64_t* index,
                           float* scores, float* weights, int64_t* counts, double* share_sums, double* lse_squares) {
  Checks check = router_checks("wt_router_forward", stream, spec);
  check.array("logits", logits, spec.T, spec.E).array("scores", scores, spec.T, spec.E);
  check.array("index", index, spec.T, spec.k).array("weights", weights, spec.T, spec.k);
  if (spec.given) check.index("index", index, spec.T * spec.k, spec.E);
  if (check.done(spec.T)) return check.status();
  return check.backend().router_forward(stream.handle, spec, logits, bias, index, scores, weights, counts, share_sums,
                                        lse_squares);
}

WtStatus wt_router_backward(WtStream stream, WtRouterSpec spec, const float* dweights, const float* scores,
                            const int64_t* index, const float* dshare_sums, const float* logits, float dlse_squares,
                            float* dlogits) {
  Checks check = router_checks("wt_router_backward", stream, spec);
  check.array("dweights", dweights, spec.T, spec.k).array("scores", scores, spec.T, spec.E);
  if (dlse_squares != 0) check.array("logits", logits, spec.T, spec.E);
  check.array("dlogits", dlogits, spec.T, spec.E).index("index", index, spec.T * spec.k, spec.E);
  if (check.done(spec.T)) return check.status();
  return check.backend().router_backward(stream.handle, spec, dweights, scores, index, dshare_sums, logits,
                                         dlse_squares, dlogits);
}

WtStatus wt_sort_by_expert(WtStream stream, const int64_t* index, const int64_t* slot_of_expert, int64_t n, int64_t E,
                           int64_t* order, int64_t* inverse, int64_t* slot_counts) {
  Checks check("wt_sort_by_expert", stream, WT_FP32);
  check.size("n", n, 0).size("E", E, 1);
  if (stream.device >= 0) check.at_most("E", E, "the CUDA limit", kMaxCudaExperts);
  check.array("order", order, n).array("inverse", inverse, n).index("index", index, n, E);
  if (slot_of_expert) check.index("slot_of_expert", slot_of_expert, E, E);
  if (check.done(1)) return check.status();
  return check.backend().sort_by_expert(stream.handle, index, slot_of_expert, n, E, order, inverse, slot_counts);
}

WtStatus wt_permute_forward(WtStream stream, WtDtype dtype, const void* x, const int64_t* order, int64_t T, int64_t k,
                            int64_t D, void* y) {
  Checks check("wt_permute_forward", stream, dtype);
  check.size("T", T, 0).size("k", k, 1).size("D", D, 1);
  check.array("x", x, T, D).array("y", y, T * k, D).index("order", order, T * k, T * k);
  if (check.done(T)) return check.status();
  return check.backend().gather(stream.handle, x, order, k, T * k, D, y);
}

WtStatus wt_permute_backward(WtStream stream, WtDtype dtype, const void* dy, const int64_t* inverse, int64_t T,
                             int64_t k, int64_t D, int accumulate, void* dx) {
  Checks check("wt_permute_backward", stream, dtype);
  check.size("T", T, 0).size("k", k, 1).size("D", D, 1);
  check.array("dy", dy, T * k, D).array("dx", dx, T, D).index("inverse", inverse, T * k, T * k, WT_DROPPED);
  if (check.done(T)) return check.status();
  return check.backend().permute_backward(stream.handle, dy, inverse, T, k, D, accumulate != 0, dx);
}

WtStatus wt_gather_rows(WtStream stream, WtDtype dtype, const void* x, const int64_t* index, int64_t rows, int64_t n,
                        int64_t D, void* y) {
  Checks check("wt_gather_rows", stream, dtype);
  check.size("rows", rows, 0).size("n", n, 0).size("D", D, 1);
  check.array("x", x, rows, D).array("y", y, n, D).index("index", index, n, rows);
  if (check.done(n)) return check.status();
  return check.backend().gather(stream.handle, x, index, 1, n, D, y);
}

WtStatus wt_combine_forward(WtStream stream, WtDtype dtype, const void* rows, const int64_t* inverse,
                            const float* weights, const void* residual, int64_t T, int64_t k, int64_t D, void* out) {
  Checks check("wt_combine_forward", stream, dtype);
  check.size("T", T, 0).size("k", k, 1).size("D", D, 1);
  check.array("rows", rows, T * k, D).array("weights", weights, T, k).array("out", out, T, D);
  check.index("inverse", inverse, T * k, T * k, WT_DROPPED);
  if (check.done(T)) return check.status();
  return check.backend().combine_forward(stream.handle, rows, inverse, weights, residual, T, k, D, out);
}

WtStatus wt_combine_backward(WtStream stream, WtDtype dtype, const void* dout, const void* rows, const int64_t* inverse,
                             const float* weights, int64_t T, int64_t k, int64_t D, void* drows, float* dweights) {
  Checks check("wt_combine_backward", stream, dtype);
  check.size("T", T, 0).size("k", k, 1).size("D", D, 1);
  check.array("dout", dout, T, D).array("rows", rows, T * k, D).array("weights", weights, T, k);
  check.array("drows", drows, T * k, D).array("dweights", dweights, T, k);
  check.index("inverse", inverse, T * k, T * k, WT_DROPPED);
  if (check.done(T)) return check.status();
  return check.backend().combine_backward(stream.handle, dout, rows, inverse, weights, T, k, D, drows, dweights);
}

WtStatus wt_swiglu_forward(WtStream stream, WtDtype dtype, const void* gate_up, int64_t R, int64_t F, void* act) {
  Checks check("wt_swiglu_forward", stream, dtype);
  check.size("R", R, 0).size("F", F, 1).array("gate_up", gate_up, R, 2 * F).array("act", act, R, F);
  if (check.done(R)) return check.status();
  return check.backend().swiglu_forward(stream.handle, gate_up, R, F, act);
}

WtStatus wt_swiglu_backward(WtStream stream, WtDtype dtype, const void* dact, const void* gate_up, int64_t R, int64_t F,
                            void* dgate_up) {
  Checks check("wt_swiglu_backward", stream, dtype);
  check.size("R", R, 0).size("F", F, 1).array("dact", dact, R, F);
  check.array("gate_up", gate_up, R, 2 * F).array("dgate_up", dgate_up, R, 2 * F);
  if (check.done(R)) return check.status();
  return check.backend().swiglu_backward(stream.handle, dact, gate_up, R, F, dgate_up);
}

WtStatus wt_grouped_gemm_forward(WtStream stream, WtDtype dtype, const void* x, const void* weight, const int32_t* ends,
                                 int64_t rows, int64_t groups, int64_t N, int64_t K, void* y) {
  return grouped_gemm("wt_grouped_gemm_forward", GroupedForm::forward, stream, dtype, "x", x, "weight", weight, ends,
                      {groups, rows, N, K}, "y", y);
}

WtStatus wt_grouped_gemm_backward_rows(WtStream stream, WtDtype dtype, const void* dy, const void* weight,
                                       const int32_t* ends, int64_t rows, int64_t groups, int64_t N, int64_t K,
                                       void* dx) {
  return grouped_gemm("wt_grouped_gemm_backward_rows", GroupedForm::backward_rows, stream, dtype, "dy", dy, "weight",
                      weight, ends, {groups, rows, N, K}, "dx", dx);
}

WtStatus wt_grouped_gemm_backward_weight(WtStream stream, WtDtype dtype, const void* dy, const void* x,
                                         const int32_t* ends, int64_t rows, int64_t groups, int64_t N, int64_t K,
                                         void* dweight) {
  return grouped_gemm("wt_grouped_gemm_backward_weight", GroupedForm::backward_weight, stream, dtype, "dy", dy, "x", x,
                      ends, {groups, rows, N, K}, "dweight", dweight);
}

WtStatus wt_quantize_blocks(WtStream stream, WtDtype dtype, WtBlockFormat format, const void* x, int64_t T, int64_t D,
                            void* q, float* scale) {
  Checks check("wt_quantize_blocks", stream, dtype);
  check.size("format", format, WT_INT8).at_most("format", format, "WT_FP8", WT_FP8).size("T", T, 0).size("D", D, 1);
  check.array("x", x, T, D).array("q", q, T, D).array("scale", scale, T, (D + kQuantizeBlock - 1) / kQuantizeBlock);
  if (check.done(T)) return check.status();
  return check.backend().quantize_blocks(stream.handle, x, format == WT_FP8, T, D, q, scale);
}

WtStatus wt_dequantize_blocks(WtStream stream, WtDtype dtype, WtBlockFormat format, const void* q, const float* scale,
                              int64_t T, int64_t D, void* x) {
  Checks check("wt_dequantize_blocks", stream, dtype);
  check.size("format", format, WT_INT8).at_most("format", format, "WT_FP8", WT_FP8).size("T", T, 0).size("D", D, 1);
  check.array("q", q, T, D).array("scale", scale, T, (D + kQuantizeBlock - 1) / kQuantizeBlock).array("x", x, T, D);
  if (check.done(T)) return check.status();
  return check.backend().dequantize_blocks(stream.handle, q, scale, format == WT_FP8, T, D, x);
}

WtStatus wt_cross_entropy_forward_backward(WtStream stream, WtDtype dtype, void* logits, const int64_t* target,
                                           int64_t T, int64_t V, float scale, double* loss_sum) {
  Checks check("wt_cross_entropy_forward_backward", stream, dtype);
  check.size("T", T, 0).size("V", V, 1).array("logits", logits, T, V).array("loss_sum", loss_sum, 1);
  check.index("target", target, T, V, kIgnoredTarget);
  if (check.done(T)) return check.status();
  return check.backend().cross_entropy(stream.handle, logits, target, T, V, scale, loss_sum);
}

WtStatus wt_adamw(WtStream stream, float* p, float* m, float* v, const float* g, int64_t n, double lr, double beta1,
                  double beta2, double eps, double weight_decay, int64_t step, float grad_scale) {
  Checks check("wt_adamw", stream, WT_FP32);
  check.size("n", n, 0).size("step", step, 1).fraction("beta1", beta1).fraction("beta2", beta2);
  check.array("p", p, n).array("m", m, n).array("v", v, n).array("g", g, n);
  if (check.done(n)) return check.status();
  AdamwSettings settings;
  settings.one_minus_beta1 = static_cast<float>(1 - beta1);
  settings.beta2 = static_cast<float>(beta2);
  settings.one_minus_beta2 = static_cast<float>(1 - beta2);
  settings.eps = static_cast<float>(eps);
  settings.grad_scale = grad_scale;
  settings.keep = static_cast<float>(1 - lr * weight_decay);
  settings.step_size = static_cast<float>(lr / (1 - std::pow(beta1, static_cast<double>(step))));
  settings.inverse_sqrt_bc2 = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, static_cast<double>(step))));
  return check.backend().adamw(stream.handle, p, m, v, g, n, settings);
}

WtStatus wt_lion(WtStream stream, float* p, float* m, const float* g, int64_t n, double lr, double beta1, double beta2,
                 double weight_decay, float grad_scale) {
  Checks check("wt_lion", stream, WT_FP32);
  check.size("n", n, 0).fraction("beta1", beta1).fraction("beta2", beta2);
  check.array("p", p, n).array("m", m, n).array("g", g, n);
  if (check.done(n)) return check.status();
  LionSettings settings;
  settings.one_minus_beta1 = static_cast<float>(1 - beta1);
  settings.one_minus_beta2 = static_cast<float>(1 - beta2);
  settings.grad_scale = grad_scale;
  settings.keep = static_cast<float>(1 - lr * weight_decay);
  settings.step_size = static_cast<float>(lr);
  return check.backend().lion(stream.handle, p, m, g, n, settings);
}

}  // extern "C"
