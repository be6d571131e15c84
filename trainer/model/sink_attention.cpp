#include <limits>

#include "trainer/model/attention.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Uses the CPU's flash attention. With s = sigmoid(logsumexp - sink), a key's share of the softmax is s times its
/// share without the sink, so that the output is s * output. With the logsumexp that includes the sink, the kernel's
/// backward returns exactly the gradients of that.
struct SinkAttention : torch::autograd::Function<SinkAttention> {
  static Tensor forward(AutogradContext* ctx, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& sinks,
                        const std::optional<Tensor>& mask, double scale) {
    auto [out, without] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, !mask, mask, scale);
    const Tensor with = at::logaddexp(without, by_head(sinks));
    out.mul_(without.sub_(with).exp_().unsqueeze(-1));
    ctx->save_for_backward({q, k, v, sinks, out, with});
    ctx->saved_data["mask"] = mask;
    ctx->saved_data["scale"] = scale;
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const Tensor &q = saved[0], &k = saved[1], &v = saved[2], &sinks = saved[3], &out = saved[4], &with = saved[5];
    const auto mask = ctx->saved_data["mask"].toOptional<Tensor>();
    const double scale = ctx->saved_data["scale"].toDouble();
    // Gradient of the softmax for the sink's logit: -(its share) * sum over keys of share * gradient of share.
    const Tensor shared = at::linalg_vecdot(gradients[0], out, -1).to(at::kFloat);
    const Tensor dsinks = (by_head(sinks) - with).exp_().mul_(shared).sum(at::IntArrayRef{0, 2}).neg_();
    auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(gradients[0], q, k, v, out, with, 0.0,
                                                                                 !mask, mask, scale);
    return {dq, dk, dv, dsinks.to(sinks.scalar_type()), Tensor(), Tensor()};
  }
  static Tensor by_head(const Tensor& sinks) { return sinks.to(at::kFloat).view({1, -1, 1}); }
};

}  // namespace

Tensor sink_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& sinks,
                      const std::optional<Tensor>& mask, double scale, bool fused) {
  if (fused) return SinkAttention::apply(q, k, v, sinks, mask, scale);
  const std::int64_t copies = q.size(1) / k.size(1);
  Tensor scores = at::matmul(q, k.repeat_interleave(copies, 1).transpose(2, 3)) * scale;
  if (mask)
    scores = scores + *mask;
  else
    scores = scores.masked_fill(at::ones({q.size(2), k.size(2)}, q.options().dtype(at::kBool)).tril().logical_not_(),
                                -std::numeric_limits<float>::infinity());
  const Tensor sink = sinks.view({1, -1, 1, 1}).to(scores.scalar_type()).expand({q.size(0), q.size(1), q.size(2), 1});
  const Tensor shares = at::softmax(at::cat({scores, sink}, -1), -1, at::kFloat).narrow(-1, 0, k.size(2));
  return at::matmul(shares.to(v.scalar_type()), v.repeat_interleave(copies, 1));
}

}  // namespace wt
