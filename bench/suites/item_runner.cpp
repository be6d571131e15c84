#include "bench/suites/item_runner.hpp"

#include "configs/spec/error.hpp"
#include "trainer/pch.hpp"

namespace wt {

using at::Tensor;

double largest_allowed_error(Precision precision) { return precision == Precision::fp32 ? 1e-4 : 3e-2; }

ItemRunner::ItemRunner(const WorkItem& item, const RunSpec& run, NormalPool& normal, GroupedAs as)
    : item_(item), run_(run), normal_(normal), as_(as) {}

ItemRunner::Set ItemRunner::make_set() {
  Set set{make_problem(item_, run_, normal_, as_), {}, {}};
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
  (void)keep;  // on a device nobody waits: the host's wait would be timed
}

void ItemRunner::release() {
  sets_ = std::vector<Set>(1);
  next_ = 0;
}

Tensors ItemRunner::expected() const {
  const Set& set = sets_.front();
  const bool backwards = backward(set.problem);
  Tensors inputs;
  for (const Tensor& input : set.problem.inputs)
    inputs.push_back(input.detach().to(at::kCPU, at::kDouble).requires_grad_(backwards));
  const at::AutoGradMode mode(backwards);
  const Tensors outputs = set.problem.reference(inputs);
  if (!backwards) return outputs;
  Tensors gradients;
  for (const Tensor& gradient : set.gradients) gradients.push_back(gradient.to(at::kCPU, at::kDouble));
  while (gradients.size() < outputs.size()) gradients.push_back(at::ones_like(outputs[gradients.size()]));
  return torch::autograd::grad(outputs, inputs, gradients);
}

double ItemRunner::compare(const Tensors& outputs, const Tensors& expected) const {
  const double limit = largest_allowed_error(item_.precision);
  double worst = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor want = expected[i].detach(), got = outputs[i].detach().to(at::kCPU, at::kDouble);
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
