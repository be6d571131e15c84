// The activation between the two products of an FFN or expert.
#include "trainer/model/functions.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <typename Visit>
void for_row_blocks(const Tensor& gate_up, Visit&& visit) {
  constexpr std::int64_t kElements = 1 << 13;  // eight fp32 tensors of half that size are 128 KiB
  const std::int64_t all = gate_up.size(0);
  const std::int64_t block = gate_up.is_cpu() ? std::max<std::int64_t>(1, kElements / gate_up.size(1)) : all;
  for (std::int64_t begin = 0; begin < all; begin += block) visit(begin, std::min(block, all - begin));
}

/// GPT-OSS's gate in fp32. On the CPU it processes some rows at a time, so that intermediate values stay in the cache
/// and use little memory.
struct ClampedSwiGlu : torch::autograd::Function<ClampedSwiGlu> {
  static constexpr double kLimit = 7, kSlope = 1.702;

  static Tensor forward(AutogradContext* ctx, const Tensor& gate_up) {
    Tensor out = at::empty({gate_up.size(0), gate_up.size(1) / 2}, gate_up.options());
    for_row_blocks(gate_up, [&](std::int64_t begin, std::int64_t rows) {
      const Part part(gate_up.narrow(0, begin, rows));
      out.narrow(0, begin, rows).copy_((part.up + 1).mul_(part.gate).mul_(part.sigmoid));
    });
    ctx->save_for_backward({gate_up});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const Tensor gate_up = ctx->get_saved_variables()[0];
    Tensor out = at::empty_like(gate_up);
    for_row_blocks(gate_up, [&](std::int64_t begin, std::int64_t rows) {
      const Part part(gate_up.narrow(0, begin, rows));
      const Tensor own = out.narrow(0, begin, rows), dact = gradients[0].narrow(0, begin, rows).to(at::kFloat);
      const Tensor slope = (1 - part.sigmoid).mul_(part.gate).mul_(kSlope).add_(1).mul_(part.sigmoid);
      const std::int64_t width = dact.size(1);
      own.narrow(1, 0, width).copy_(slope.mul_(part.up + 1).mul_(dact).mul_(part.gate_inside));
      own.narrow(1, width, width).copy_((part.gate * part.sigmoid).mul_(dact).mul_(part.up_inside));
    });
    return {out};
  }

 private:
  struct Part {
    explicit Part(const Tensor& gate_up) {
      const std::int64_t width = gate_up.size(1) / 2;
      gate = gate_up.narrow(1, 0, width).to(at::kFloat), up = gate_up.narrow(1, width, width).to(at::kFloat);
      gate_inside = gate.le(kLimit), up_inside = up.abs().le_(kLimit);
      gate = gate.clamp_max(kLimit), up = up.clamp(-kLimit, kLimit);
      sigmoid = (gate * kSlope).sigmoid_();
    }
    Tensor gate, up, gate_inside, up_inside, sigmoid;
  };
};

/// gelu(gate) * up. Saves only its input; on the CPU it processes some rows at a time, like the gate above.
struct GeGlu : torch::autograd::Function<GeGlu> {
  static Tensor forward(AutogradContext* ctx, const Tensor& gate_up, bool by_tanh) {
    const std::int64_t width = gate_up.size(1) / 2;
    Tensor out = at::empty({gate_up.size(0), width}, gate_up.options());
    for_row_blocks(gate_up, [&](std::int64_t begin, std::int64_t rows) {
      const Tensor part = gate_up.narrow(0, begin, rows);
      const Tensor gate = part.narrow(1, 0, width).to(at::kFloat), up = part.narrow(1, width, width).to(at::kFloat);
      out.narrow(0, begin, rows).copy_(at::gelu(gate, way(by_tanh)).mul_(up));
    });
    ctx->save_for_backward({gate_up});
    ctx->saved_data["by_tanh"] = by_tanh;
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const Tensor gate_up = ctx->get_saved_variables()[0];
    const bool by_tanh = ctx->saved_data["by_tanh"].toBool();
    const std::int64_t width = gate_up.size(1) / 2;
    Tensor out = at::empty_like(gate_up);
    for_row_blocks(gate_up, [&](std::int64_t begin, std::int64_t rows) {
      const Tensor part = gate_up.narrow(0, begin, rows), own = out.narrow(0, begin, rows);
      const Tensor gate = part.narrow(1, 0, width).to(at::kFloat), up = part.narrow(1, width, width).to(at::kFloat);
      const Tensor dact = gradients[0].narrow(0, begin, rows).to(at::kFloat);
      own.narrow(1, 0, width).copy_(at::gelu_backward(up.mul(dact), gate, way(by_tanh)));
      own.narrow(1, width, width).copy_(at::gelu(gate, way(by_tanh)).mul_(dact));
    });
    return {out, Tensor()};
  }
  static c10::string_view way(bool by_tanh) { return by_tanh ? "tanh" : "none"; }
};

}  // namespace

Tensor activate(const Tensor& first, Activation activation) {
  switch (activation) {
    case Activation::swiglu:
      return swiglu(first);
    case Activation::clamped_swiglu:
      return ClampedSwiGlu::apply(first);
    case Activation::geglu:
    case Activation::geglu_tanh:
      return GeGlu::apply(first, activation == Activation::geglu_tanh);
    case Activation::gelu_tanh:
      return at::gelu(first, "tanh");
    case Activation::gelu:
      break;
  }
  return at::gelu(first);
}

}  // namespace wt
