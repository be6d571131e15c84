// What stands between the two products of an FFN or expert, by the model's activation.
#include "trainer/model/functions.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// GPT-OSS's gate in fp32, some rows at a time on the CPU, so that what lies between stays in its cache and takes no
/// memory worth a word.
struct ClampedSwiGlu : torch::autograd::Function<ClampedSwiGlu> {
  static constexpr double kLimit = 7, kSlope = 1.702;

  static Tensor forward(AutogradContext* ctx, const Tensor& gate_up) {
    Tensor out = at::empty({gate_up.size(0), gate_up.size(1) / 2}, gate_up.options());
    for_blocks(gate_up, [&](std::int64_t begin, std::int64_t rows) {
      const Part part(gate_up.narrow(0, begin, rows));
      out.narrow(0, begin, rows).copy_((part.up + 1).mul_(part.gate).mul_(part.sigmoid));
    });
    ctx->save_for_backward({gate_up});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const Tensor gate_up = ctx->get_saved_variables()[0];
    Tensor out = at::empty_like(gate_up);
    for_blocks(gate_up, [&](std::int64_t begin, std::int64_t rows) {
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
  template <typename Visit>
  static void for_blocks(const Tensor& gate_up, Visit&& visit) {
    constexpr std::int64_t kElements = 1 << 13;  // eight fp32 tensors of half of them are 128 KiB
    const std::int64_t all = gate_up.size(0);
    const std::int64_t block = gate_up.is_cpu() ? std::max<std::int64_t>(1, kElements / gate_up.size(1)) : all;
    for (std::int64_t begin = 0; begin < all; begin += block) visit(begin, std::min(block, all - begin));
  }
};

}  // namespace

Tensor activate(const Tensor& first, Activation activation) {
  switch (activation) {
    case Activation::swiglu:
      return swiglu(first);
    case Activation::clamped_swiglu:
      return ClampedSwiGlu::apply(first);
    case Activation::gelu:
      break;
  }
  return at::gelu(first);
}

}  // namespace wt
