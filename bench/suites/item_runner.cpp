#include "bench/suites/item_runner.hpp"

#include "bench/work/cases.hpp"
#include "configs/base/error.hpp"
#include "trainer/pch.hpp"

namespace wt {

using at::Tensor;

ItemRunner::ItemRunner(BenchCase what, NormalPool& normal) : what_(std::move(what)), normal_(normal) {}

ItemRunner::ItemRunner(const WorkItem& item, const RunSpec& run, NormalPool& normal, GroupedAs as)
    : ItemRunner(bench_case(item, run, normal.device(), as), normal) {}

ItemRunner::Set ItemRunner::make_set() {
  Set set{what_.make(normal_), {}, {}};
  if (!set.problem.through_autograd) return set;
  for (Tensor& input : set.problem.inputs) input.requires_grad_(true);
  if (!backward(set.problem)) return set;
  const at::AutoGradMode mode(true);
  set.outputs = set.problem.run(set.problem.inputs);
  for (const Tensor& output : set.outputs)
    set.gradients.push_back(normal_.take(output.sizes().vec(), output.scalar_type()));
  return set;
}

void ItemRunner::prepare(int sets) {
  release();
  sets_.front() = make_set();
  while (static_cast<int>(sets_.size()) < sets) sets_.push_back(make_set());
}

Tensors ItemRunner::call() {
  const Set& set = sets_[next_];
  if (++next_ == sets_.size()) next_ = 0;
  const at::AutoGradMode mode(set.problem.through_autograd);
  if (!backward(set.problem)) return set.problem.run(set.problem.inputs);
  return torch::autograd::grad(set.outputs, set.problem.inputs, set.gradients, /*retain_graph=*/true);
}

std::int64_t ItemRunner::input_bytes() const {
  std::int64_t bytes = 0;
  for (const Tensors* tensors : {&sets_.front().problem.inputs, &sets_.front().gradients})
    for (const Tensor& tensor : *tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

void ItemRunner::touch() const {
  const KernelProblem& problem = sets_.front().problem;
  volatile double keep = 0;
  for (std::size_t input : problem.still_warm)
    if (const Tensor sum = problem.inputs[input].sum(); sum.is_cpu()) keep = sum.item<double>();
  (void)keep;  // no wait for the device: it would be timed
}

void ItemRunner::release() {
  sets_ = std::vector<Set>(1);
  next_ = 0;
}

at::Device ItemRunner::reference_device() const {
  const Tensors& inputs = sets_.front().problem.inputs;
  return input_bytes() <= kHostReference_bytes ? at::Device(at::kCPU) : inputs.front().device();
}

Tensors ItemRunner::expected() const {
  const Set& set = sets_.front();
  const bool backwards = backward(set.problem);
  const at::Device device = reference_device();
  Tensors inputs;
  for (const Tensor& input : set.problem.inputs)
    inputs.push_back(input.detach().to(device, at::kDouble).requires_grad_(backwards));
  const at::AutoGradMode mode(backwards);
  const Tensors outputs = set.problem.reference(inputs);
  if (!backwards) return outputs;
  Tensors gradients;
  for (const Tensor& gradient : set.gradients) gradients.push_back(gradient.to(device, at::kDouble));
  while (gradients.size() < outputs.size()) gradients.push_back(at::ones_like(outputs[gradients.size()]));
  return torch::autograd::grad(outputs, inputs, gradients);
}

double ItemRunner::within_limit(double error, std::size_t output) const {
  if (error <= what_.largest_error) return error;
  const auto rows = what_.row.shape.find("rows");
  throw_runtime(
      "{} {} {}{}: output {} is off by {:.2g} of its largest value, allowed {:.2g}; the kernel is wrong on this "
      "machine, its time is not kept",
      what_.row.kernel, what_.row.pass, what_.row.dtype,
      rows == what_.row.shape.end() ? "" : fmt::format(", {} rows", rows->second), output, error, what_.largest_error);
}

double ItemRunner::compare(const Tensors& outputs, const Tensors& expected) const {
  double worst = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor want = expected[i].detach(), got = outputs[i].detach().to(want.device(), at::kDouble);
    const double largest = want.abs().max().item<double>();
    worst = std::max(worst, within_limit((got - want).abs().max().item<double>() / std::max(largest, 1e-30), i));
  }
  return worst;
}

double ItemRunner::check() {
  prepare();
  const KernelProblem& problem = sets_.front().problem;
  if (problem.verify) return within_limit(problem.verify(problem.inputs, call()), 0);
  const Tensors want = expected();
  return compare(call(), want);
}

}  // namespace wt
