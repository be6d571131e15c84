#include "bench/suites/item_runner.hpp"

#include "configs/spec/error.hpp"
#include "trainer/pch.hpp"

namespace wt {

using at::Tensor;

double largest_allowed_error(Precision precision) { return precision == Precision::fp32 ? 1e-4 : 3e-2; }

ItemRunner::ItemRunner(const WorkItem& item, const RunSpec& run, NormalPool& normal)
    : item_(item), run_(run), normal_(normal) {}

void ItemRunner::prepare() {
  problem_ = make_problem(item_, run_, normal_);
  outputs_.clear();
  gradients_.clear();
  if (!problem_.through_autograd) return;
  for (Tensor& input : problem_.inputs) input.requires_grad_(true);
  if (!backward()) return;
  const at::AutoGradMode mode(true);
  outputs_ = problem_.run(problem_.inputs);
  for (const Tensor& output : outputs_) gradients_.push_back(normal_.take(output.sizes().vec(), output.scalar_type()));
}

Tensors ItemRunner::call() {
  const at::AutoGradMode mode(problem_.through_autograd);
  if (!backward()) return problem_.run(problem_.inputs);
  return torch::autograd::grad(outputs_, problem_.inputs, gradients_, /*retain_graph=*/true);
}

void ItemRunner::touch() const {
  volatile double keep = 0;
  for (std::size_t input : problem_.still_warm) keep = problem_.inputs[input].sum().item<double>();
  (void)keep;
}

void ItemRunner::release() {
  problem_ = {};
  outputs_.clear();
  gradients_.clear();
}

Tensors ItemRunner::expected() const {
  Tensors inputs;
  for (const Tensor& input : problem_.inputs)
    inputs.push_back(input.detach().to(at::kDouble).requires_grad_(backward()));
  const at::AutoGradMode mode(backward());
  const Tensors outputs = problem_.reference(inputs);
  if (!backward()) return outputs;
  Tensors gradients;
  for (const Tensor& gradient : gradients_) gradients.push_back(gradient.to(at::kDouble));
  while (gradients.size() < outputs.size()) gradients.push_back(at::ones_like(outputs[gradients.size()]));
  return torch::autograd::grad(outputs, inputs, gradients);
}

double ItemRunner::compare(const Tensors& outputs, const Tensors& expected) const {
  const double limit = largest_allowed_error(item_.precision);
  double worst = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor want = expected[i].detach(), got = outputs[i].detach().to(at::kDouble);
    const double largest = want.abs().max().item<double>();
    const double error = (got - want).abs().max().item<double>() / std::max(largest, 1e-30);
    if (!(error <= limit))
      throw_error(Code::runtime,
                  "{} {} {}, {} rows: output {} is off by {:.2g} of its largest value, allowed {:.2g}; the kernel is "
                  "wrong on this "
                  "machine, its time is not kept",
                  to_string(item_.kernel), to_string(item_.pass), to_string(item_.precision), item_.rows.fixed, i,
                  error, limit);
    worst = std::max(worst, error);
  }
  return worst;
}

double ItemRunner::check() {
  prepare();
  const Tensors want = expected();
  return compare(call(), want);
}

}  // namespace wt
